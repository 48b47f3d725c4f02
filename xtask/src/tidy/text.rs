//! Text: names that say nothing, files that do not say what they are for, things left behind, and traces of the
//! machine that somebody worked on.

use super::{File, Finding, Repository};

/// Names of files and folders that promise nothing, so that everything ends up in them.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager2"];

/// Words that say "not finished".
const LEFTOVER_WORDS: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// Calls that say the same.
const LEFTOVER_CALLS: &[&str] = &["dbg!(", "todo!(", "unimplemented!("];

/// Beginnings of paths that exist on one machine only. Written in two parts, so that this file does not find itself.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("C:", "\\"),
];

/// As above, but fine in code, where scratch files are made.
const MACHINE_PATHS_IN_DOCUMENTS: &[&str] = &[concat!("/tm", "p/")];

/// Hosts that packages come from. Which one to use is a setting of the machine, never of the repository.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("registry", ".npmjs.org"),
    concat!("registry", ".yarnpkg.com"),
    concat!("pypi", ".org"),
    concat!("files.python", "hosted.org"),
    concat!("index", ".crates.io"),
    concat!("static", ".crates.io"),
    concat!("arti", "factory"),
];

/// Cargo writes this one, with the name of its index in it.
const CARGO_LOCK: &str = "Cargo.lock";

/// Lock files are full of hashes, in which any word may turn up.
const LOCK_FILES: &[&str] = &[CARGO_LOCK, "package-lock.json"];

/// No file or folder has a name that says nothing.
pub(super) fn names(repository: &Repository) -> Vec<Finding> {
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

/// Every Rust file opens with a comment that says what it is and why.
pub(super) fn openings(repository: &Repository) -> Vec<Finding> {
    let silent = repository.rust().filter(|(file, _)| !file.text.starts_with("//! "));
    silent.map(|(file, _)| Finding::at_line(&file.path, 1, "does not open with `//!`")).collect()
}

/// Nothing is left for later: no such marks, no such calls, no code turned into comment.
pub(super) fn leftovers(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| !LOCK_FILES.contains(&file.name())) {
        let Some(lexed) = &file.lexed else {
            findings.extend(leftover_words(file));
            continue;
        };
        for comment in &lexed.comments {
            for word in LEFTOVER_WORDS.iter().filter(|word| has_word(&comment.text, word)) {
                let message = format!("'{word}': do it now or say it in an issue");
                findings.push(Finding::at_line(&file.path, comment.line, message));
            }
            if looks_like_code(&comment.text) {
                let message = "looks like code turned into comment: delete it";
                findings.push(Finding::at_line(&file.path, comment.line, message));
            }
        }
        let code: String = lexed.code.iter().collect();
        for (number, line) in (1..).zip(code.lines()) {
            for call in LEFTOVER_CALLS.iter().filter(|call| line.contains(*call)) {
                findings.push(Finding::at_line(&file.path, number, format!("{call}…) is left")));
            }
        }
    }
    findings
}

fn leftover_words(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for word in LEFTOVER_WORDS.iter().filter(|word| has_word(line, word)) {
            let message = format!("'{word}': do it now or say it in an issue");
            findings.push(Finding::at_line(&file.path, number, message));
        }
    }
    findings
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
}

/// Whether a plain comment line reads as Rust rather than as a sentence. Doc comments may hold examples.
fn looks_like_code(comment: &str) -> bool {
    let Some(text) = comment.strip_prefix("//") else { return false };
    if text.starts_with(['/', '!']) {
        return false;
    }
    let text = text.trim();
    let statements = ["let ", "use ", "pub ", "fn ", "if ", "for ", "while ", "match ", "return "];
    let opens = statements.iter().any(|it| text.starts_with(it)) && text.ends_with([';', '{']);
    opens || text.ends_with(");") || text == "}" || text.starts_with("#[")
}

/// No file names a place that exists on one machine only.
pub(super) fn machine_paths(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repository.files {
        let document = file.path.ends_with(".md");
        let more = if document { MACHINE_PATHS_IN_DOCUMENTS } else { &[] };
        for (number, line) in (1..).zip(file.text.lines()) {
            for path in MACHINE_PATHS.iter().chain(more).filter(|path| begins_in(line, path)) {
                let message = format!("'{path}' is a place on one machine");
                findings.push(Finding::at_line(&file.path, number, message));
            }
        }
    }
    findings
}

/// Whether a path that begins like this stands in the line, rather than in the middle of another path or address.
fn begins_in(line: &str, beginning: &str) -> bool {
    line.match_indices(beginning).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}>)]".contains(c))
    })
}

/// No file says where packages are fetched from.
pub(super) fn registries(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| file.path != CARGO_LOCK) {
        for (number, line) in (1..).zip(file.text.lines()) {
            for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(*host)) {
                let message = format!("'{host}' is a setting of the machine");
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

    #[test]
    fn names_that_say_nothing_are_found() {
        let repository = repository(&[
            ("crates/core/store/src/range.rs", ""),
            ("crates/utils/src/lib.rs", ""),
            ("tests/helpers.py", ""),
            ("docs/common-sense.md", ""),
        ]);
        assert_eq!(places(&names(&repository)), ["crates/utils/src/lib.rs", "tests/helpers.py"]);
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_for_is_found() {
        let repository = repository(&[("a.rs", "//! Says it.\n"), ("b.rs", "use std::fmt;\n")]);
        assert_eq!(places(&openings(&repository)), ["b.rs:1"]);
    }

    #[test]
    fn things_left_for_later_are_found() {
        let left = concat!("//! Fine.\n// TO", "DO: later\nfn f() { dbg", "!(1); }\n");
        let commented = "//! Fine.\n// let x = 1;\n// call(x);\n/// let x = 1;\n// }\n";
        let prose = "//! Fine.\n// If it is there, it counts; if not, not.\nlet x = \"TODO\";\n";
        let repository = repository(&[
            ("left.rs", left),
            ("commented.rs", commented),
            ("prose.rs", prose),
            ("run.sh", concat!("# FIX", "ME\n")),
        ]);
        let expected = [
            "left.rs:2",
            "left.rs:3",
            "commented.rs:2",
            "commented.rs:3",
            "commented.rs:5",
            "run.sh:1",
        ];
        assert_eq!(places(&leftovers(&repository)), expected);
    }

    #[test]
    fn places_on_one_machine_are_found() {
        let machine = concat!("see /ho", "me/ann/notes\n");
        let scratch = concat!("in /tm", "p/x\n");
        let repository = repository(&[
            ("a.toml", machine),
            ("b.md", scratch),
            ("c.rs", scratch),
            ("d.md", concat!("crates/wo", "rk/x, https://host/ro", "ot/x\n")),
        ]);
        assert_eq!(places(&machine_paths(&repository)), ["a.toml:1", "b.md:1"]);
    }

    #[test]
    fn hosts_of_registries_are_found() {
        let host = concat!("https://registry", ".npmjs.org/x\n");
        let repository = repository(&[("package-lock.json", host), (CARGO_LOCK, host)]);
        assert_eq!(places(&registries(&repository)), ["package-lock.json:1"]);
    }
}
