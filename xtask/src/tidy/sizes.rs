//! Sizes: short files, short functions, lines that fit beside each other on a screen.

use std::collections::BTreeMap;

use super::lexer::Lexed;
use super::{File, Finding, Repository};

/// Lines of a file without its tests.
const CODE_LINES_MAX: usize = 400;

/// Lines of a file with everything in it. Nothing lifts this one.
const FILE_LINES_MAX: usize = 600;

const FUNCTION_LINES_MAX: usize = 70;

/// Characters of a line of code, as in `rustfmt.toml`.
const CODE_WIDTH_MAX: usize = 100;

/// Characters of a line that is only comment. Prose needs fewer breaks than code, and rustfmt leaves it alone.
const COMMENT_WIDTH_MAX: usize = 125;

/// Files above the limit, with the size they may not grow beyond: `path = lines`. Meant to be empty.
const RATCHET: &str = "xtask/ratchet.toml";

pub(super) fn files(repository: &Repository) -> Vec<Finding> {
    let ratchet = match ratchet(repository) {
        Ok(ratchet) => ratchet,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    for (file, lexed) in repository.rust() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            let message = format!("{lines} lines with tests, more than {FILE_LINES_MAX}");
            findings.push(Finding::at(&file.path, message));
        }
        let code = code_lines(file, lexed);
        let message = match ratchet.get(&file.path) {
            None if code > CODE_LINES_MAX => format!("{code} lines, more than {CODE_LINES_MAX}"),
            Some(listed) if code > *listed => format!("grew from {listed} to {code} lines"),
            Some(listed) if code < *listed => format!("shrank: write {code} into {RATCHET}"),
            Some(_) if code <= CODE_LINES_MAX => format!("fits: take it out of {RATCHET}"),
            _ => continue,
        };
        findings.push(Finding::at(&file.path, message));
    }
    for path in ratchet.keys().filter(|path| repository.file(path).is_none()) {
        findings.push(Finding::at(RATCHET, format!("{path} does not exist")));
    }
    findings
}

fn ratchet(repository: &Repository) -> Result<BTreeMap<String, usize>, Finding> {
    let Some(file) = repository.file(RATCHET) else { return Ok(BTreeMap::new()) };
    let table: toml::Table =
        file.text.parse().map_err(|error| Finding::at(RATCHET, format!("{error}")))?;
    let mut sizes = BTreeMap::new();
    for (path, value) in table {
        let size = value.as_integer().and_then(|size| usize::try_from(size).ok());
        let Some(size) = size else {
            return Err(Finding::at(RATCHET, format!("'{path}' needs a number of lines")));
        };
        sizes.insert(path, size);
    }
    Ok(sizes)
}

/// Lines outside of test modules; a file of tests has none.
fn code_lines(file: &File, lexed: &Lexed) -> usize {
    if file.path.contains("/tests/") || file.name() == "tests.rs" {
        return 0;
    }
    let tests: usize = lexed.test_lines().iter().map(|(first, last)| last - first + 1).sum();
    file.text.lines().count() - tests
}

pub(super) fn functions(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, lexed) in repository.rust() {
        for function in lexed.functions().iter().filter(|it| it.lines > FUNCTION_LINES_MAX) {
            let message = format!(
                "fn {} has {} lines, more than {FUNCTION_LINES_MAX}",
                function.name, function.lines
            );
            findings.push(Finding::at_line(&file.path, function.line, message));
        }
    }
    findings
}

pub(super) fn lines(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, lexed) in repository.rust() {
        let code: String = lexed.code.iter().collect();
        for (number, (line, code)) in (1..).zip(file.text.lines().zip(code.lines())) {
            let comment = line.trim_start().starts_with("//");
            let limit = if comment { COMMENT_WIDTH_MAX } else { CODE_WIDTH_MAX };
            // A literal that does not fit cannot be broken without harm; rustfmt leaves it alone as well.
            let literal = line.contains('"') || line.contains("://");
            let inside_literal = !comment && code.trim_end().chars().count() <= limit;
            let width = line.chars().count();
            if width > limit && !literal && !inside_literal {
                let message = format!("{width} characters, more than {limit}");
                findings.push(Finding::at_line(&file.path, number, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, repository};
    use super::*;

    fn code(lines: usize) -> String {
        "x();\n".repeat(lines)
    }

    #[test]
    fn a_file_may_have_as_much_code_as_the_limit_and_its_tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", code(150));
        let full = code(CODE_LINES_MAX) + &tests;
        let over = code(CODE_LINES_MAX + 1);
        let huge = code(FILE_LINES_MAX + 1);
        let repository =
            repository(&[("full.rs", &full), ("over.rs", &over), ("x/tests/huge.rs", &huge)]);
        assert_eq!(places(&files(&repository)), ["over.rs", "x/tests/huge.rs"]);
    }

    #[test]
    fn the_ratchet_only_turns_one_way() {
        let check = |listed: usize, actual: usize| {
            let ratchet = format!("\"old.rs\" = {listed}\n");
            files(&repository(&[(RATCHET, &ratchet), ("old.rs", &code(actual))])).len()
        };
        assert_eq!(check(450, 450), 0);
        assert_eq!(check(450, 451), 1, "it grew");
        assert_eq!(check(450, 449), 1, "the entry must follow when it shrinks");
        assert_eq!(check(400, 400), 1, "the entry must go when the file fits");
        let gone = repository(&[(RATCHET, "\"gone.rs\" = 450\n")]);
        assert_eq!(places(&files(&gone)), [RATCHET]);
    }

    #[test]
    fn a_long_function_is_found() {
        let function = |body| format!("fn f() {{\n{}}}\n", code(body));
        let fits = function(FUNCTION_LINES_MAX - 2);
        let long = function(FUNCTION_LINES_MAX - 1);
        let repository = repository(&[("fits.rs", &fits), ("long.rs", &long)]);
        assert_eq!(places(&functions(&repository)), ["long.rs:1"]);
    }

    #[test]
    fn a_long_line_is_found_unless_a_literal_makes_it_long() {
        let long = format!("let x = {};\n", "y".repeat(CODE_WIDTH_MAX));
        let comment = format!("// {}\n", "y ".repeat(COMMENT_WIDTH_MAX / 2));
        let literal = format!("let x = \"{}\";\n", "y".repeat(CODE_WIDTH_MAX));
        let inside = format!("let x = \"\\\n{}\\\n\";\n", "y ".repeat(CODE_WIDTH_MAX));
        let repository = repository(&[
            ("a.rs", &long),
            ("b.rs", &comment),
            ("c.rs", &literal),
            ("d.rs", &inside),
            ("e.md", &long),
        ]);
        assert_eq!(places(&lines(&repository)), ["a.rs:1", "b.rs:1"]);
    }
}
