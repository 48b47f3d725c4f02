//! Sizes: short files and short functions. rustfmt sees to the lines.

use super::lexer::Lexed;
use super::{File, Finding, Repository};

/// Lines of a file without its tests.
const CODE_LINES_MAX: usize = 400;

/// Lines of a file with everything in it.
const FILE_LINES_MAX: usize = 600;

const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn files(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, lexed) in repository.rust() {
        let (lines, code) = (file.text.lines().count(), code_lines(file, lexed));
        if lines > FILE_LINES_MAX {
            let message = format!("{lines} lines with tests, more than {FILE_LINES_MAX}");
            findings.push(Finding::at(&file.path, message));
        }
        if code > CODE_LINES_MAX {
            let message = format!("{code} lines, more than {CODE_LINES_MAX}");
            findings.push(Finding::at(&file.path, message));
        }
    }
    findings
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
    fn a_long_function_is_found() {
        let function = |body| format!("fn f() {{\n{}}}\n", code(body));
        let fits = function(FUNCTION_LINES_MAX - 2);
        let long = function(FUNCTION_LINES_MAX - 1);
        let repository = repository(&[("fits.rs", &fits), ("long.rs", &long)]);
        assert_eq!(places(&functions(&repository)), ["long.rs:1"]);
    }
}
