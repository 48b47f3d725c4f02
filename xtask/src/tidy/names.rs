//! Names: files whose name says nothing, and code that tells errors apart by their text.

use super::lexer::Lexed;
use super::{File, Finding, Repository};

/// Names of files and folders that promise nothing, so that everything ends up in them.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager2"];

/// Ways to branch on the code of an error, which is a text for people and for the admin API.
const BRANCHES: &[&str] = &[".code() ==", ".code() !=", ".code() {", ".code().starts_with("];

/// No file or folder has a name that says nothing.
pub(super) fn files(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repository.files {
        for part in file.path.split('/') {
            let stem = part.split('.').next().unwrap_or(part);
            if EMPTY_NAMES.contains(&stem) {
                let message = format!("'{part}' says nothing: name it after what is in it");
                findings.push(Finding::at(&file.path, message));
            }
        }
    }
    findings
}

/// Code outside of tests and examples asks an error for its kind or its reason, never for the text of its code.
pub(super) fn reasons(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, lexed) in repository.rust().filter(|(file, _)| !is_test(file)) {
        let tests = lexed.test_lines();
        let is_code = |line| !tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
        for line in branches(lexed).filter(|line| is_code(*line)) {
            let message = "branches on the code of an error: use `Error::is` with a reason";
            findings.push(Finding::at_line(&file.path, line, message));
        }
    }
    findings
}

fn is_test(file: &File) -> bool {
    let folder = |name: &str| file.path.split('/').any(|part| part == name);
    folder("tests") || folder("examples") || file.name().ends_with("tests.rs")
}

fn branches(lexed: &Lexed) -> impl Iterator<Item = usize> {
    let code: String = lexed.code.iter().collect();
    let lines = code.lines().map(|line| BRANCHES.iter().any(|branch| line.contains(branch)));
    let found: Vec<usize> = (1..).zip(lines).filter_map(|(at, is)| is.then_some(at)).collect();
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, repository};
    use super::*;

    #[test]
    fn names_that_say_nothing_are_found() {
        let repository = repository(&[
            ("crates/core/store/src/range.rs", ""),
            ("crates/utils/src/lib.rs", ""),
            ("tests/helpers.py", ""),
            ("docs/common-sense.md", ""),
        ]);
        assert_eq!(places(&files(&repository)), ["crates/utils/src/lib.rs", "tests/helpers.py"]);
    }

    #[test]
    fn a_branch_on_the_text_of_an_error_is_found() {
        let bad = "fn f() {\n    if error.code() == \"x\" {}\n    match error.code() {}\n\
                   say(error.code());\n}\n#[cfg(test)]\nmod tests { fn t() { e.code() == y } }\n";
        let repository = repository(&[("a/src/b.rs", bad), ("a/tests/it/b.rs", bad)]);
        assert_eq!(places(&reasons(&repository)), ["a/src/b.rs:2", "a/src/b.rs:3"]);
    }
}
