//! Documents: what they point at exists, so that they cannot go on telling of code that is gone.
//!
//! Only text between backticks and in links counts. A path is written from the root, or by its last parts where the
//! sentence makes clear which crate it speaks of; a test is written as `path::test_name` or `crate::test_name`.

use std::collections::BTreeSet;

use super::lexer::is_word;
use super::{Finding, Repository};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const REQUIREMENTS: &str = "docs/requirements.md";
const DECISIONS: &str = "docs/decisions/";
const DECISION_INDEX: &str = "docs/decisions/README.md";

/// The documents that lead people to places in the code.
const GUIDES: &[&str] = &[
    "README.md",
    ARCHITECTURE,
    "CONTRIBUTING.md",
    "docs/benchmarks.md",
    REQUIREMENTS,
    "tests/README.md",
];

/// Files with these endings are always named as files of ours.
const SOURCE_ENDINGS: &[&str] = &[".rs", ".py", ".mjs", ".md"];

/// The sections that lead through the code, file by file and function by function.
const FLOWS: &[&str] = &["## The flow of one request", "## The flow of one move"];

/// Every path that a guide names exists.
pub(super) fn paths(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, line, span) in guide_spans(repository) {
        let named = span.split("::").next().unwrap_or(&span);
        let named = named.split('#').next().unwrap_or(named).trim_end_matches('/');
        if looks_like_path(repository, named) && !exists(repository, &path, named) {
            findings.push(Finding::at_line(&path, line, format!("'{named}' does not exist")));
        }
    }
    findings
}

fn looks_like_path(repository: &Repository, span: &str) -> bool {
    if span.is_empty() || span.contains(|c: char| c.is_whitespace() || "<>*{}$|:…".contains(c)) {
        return false;
    }
    let top = span.split('/').next().unwrap_or(span);
    let below_root = |path: &str| path.strip_prefix(top).is_some_and(|it| it.starts_with('/'));
    let in_our_folders =
        span.contains('/') && repository.files.iter().any(|file| below_root(&file.path));
    in_our_folders || SOURCE_ENDINGS.iter().any(|ending| span.ends_with(ending))
}

/// Whether the path is there from the root, from the document's own folder, or as the last parts of a longer one.
fn exists(repository: &Repository, document: &str, path: &str) -> bool {
    let beside = match document.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{path}"),
        None => path.to_owned(),
    };
    let tail = format!("/{path}");
    repository.files.iter().any(|file| {
        [path, &beside].iter().any(|it| {
            let rest = file.path.strip_prefix(*it);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }) || file.path.ends_with(&tail)
    })
}

/// Every test, function or type that a guide names with its place exists there.
pub(super) fn tests(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, line, span) in guide_spans(repository) {
        let Some((place, _)) = span.split_once("::") else { continue };
        let name = span.rsplit("::").next().unwrap_or(&span).trim_end_matches("()");
        let Some(prefixes) = places_of(repository, place) else { continue };
        let there = repository.files.iter().any(|file| {
            prefixes.iter().any(|it| file.path.starts_with(it)) && defines(&file.text, name)
        });
        if !there {
            findings.push(Finding::at_line(&path, line, format!("no '{name}' in {place}")));
        }
    }
    findings
}

/// The files that a place stands for: a path, or a crate of ours by its name. Nothing for what is neither.
fn places_of(repository: &Repository, place: &str) -> Option<Vec<String>> {
    if let Some(package) =
        repository.packages.iter().find(|it| it.name.replace('-', "_") == place.replace('-', "_"))
    {
        return Some(vec![format!("{}/", package.folder)]);
    }
    if !looks_like_path(repository, place) {
        return None;
    }
    let tail = format!("/{place}");
    let found = repository.files.iter().map(|file| &file.path);
    Some(
        found
            .filter(|path| {
                *path == place || path.starts_with(&format!("{place}/")) || path.ends_with(&tail)
            })
            .cloned()
            .collect(),
    )
}

/// Whether the text defines this name: as a function, or for names in capitals as anything at all.
fn defines(text: &str, name: &str) -> bool {
    if name.starts_with(char::is_uppercase) {
        return text.split(|c: char| !is_word(c)).any(|word| word == name);
    }
    ["fn ", "def ", "mod "].iter().any(|keyword| {
        let wanted = format!("{keyword}{name}");
        let ends = |at: usize| !text[at..].starts_with(is_word);
        text.match_indices(&wanted).any(|(at, _)| ends(at + wanted.len()))
    })
}

/// In the flows of ARCHITECTURE.md, each function that is named behind its file (`path`: `Type::function` or `function`) is
/// in that file, and each `Type::function` that stands alone is somewhere.
pub(super) fn flows(repository: &Repository) -> Vec<Finding> {
    let Some(file) = repository.file(ARCHITECTURE) else { return Vec::new() };
    let mut findings = Vec::new();
    for flow in FLOWS.iter().filter(|flow| !file.text.lines().any(|line| line == **flow)) {
        findings.push(Finding::at(ARCHITECTURE, format!("the section '{flow}' is gone")));
    }
    let (mut in_flow, mut before) = (false, None);
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.starts_with("## ") {
            (in_flow, before) = (FLOWS.contains(&line), None);
        }
        // Text and spans take turns, and a line begins with text.
        for (at, part) in line.split('`').enumerate().filter(|_| in_flow) {
            if at % 2 == 0 {
                before = before.filter(|_| matches!(part, ": " | "" | "   ") || part == ":");
            } else if part.ends_with(".rs") {
                before = Some(part.to_owned());
            } else if !is_function(part) {
                before = None;
            } else if !names_function(repository, before.take(), part) {
                findings.push(Finding::at_line(ARCHITECTURE, number, format!("no fn '{part}'")));
            }
        }
    }
    findings
}

/// `function` or `Type::function`, and not a type, a variant or a phrase.
fn is_function(span: &str) -> bool {
    let name = span.rsplit("::").next().unwrap_or(span);
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && span.chars().all(|c| is_word(c) || c == ':')
}

/// Whether the file has the function; without a file, whether any does. A plain word without a file means nothing.
fn names_function(repository: &Repository, file: Option<String>, span: &str) -> bool {
    let (owner, name) = match span.split_once("::") {
        Some((owner, name)) => (Some(owner), name),
        None if file.is_none() => return true,
        None => (None, span),
    };
    repository.rust().any(|(it, lexed)| {
        let is_meant = file.as_ref().is_none_or(|path| it.path == *path);
        is_meant && lexed.has_function(owner, name)
    })
}

/// The index lists every decision and nothing else, and no number is given twice.
pub(super) fn decisions(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let index = repository.file(DECISION_INDEX).map(|file| file.text.as_str()).unwrap_or_default();
    let mut numbers = BTreeSet::new();
    for file in repository.files.iter().filter(|file| file.path.starts_with(DECISIONS)) {
        let name = file.name();
        if file.path == DECISION_INDEX {
            continue;
        }
        if !index.contains(&format!("]({name})")) {
            findings.push(Finding::at(&file.path, format!("is not in {DECISION_INDEX}")));
        }
        let number = name.split('-').next().unwrap_or(name);
        if number.len() != 4 || !number.chars().all(|c| c.is_ascii_digit()) {
            findings.push(Finding::at(&file.path, "has no number of four digits"));
        } else if !numbers.insert(number) {
            findings.push(Finding::at(&file.path, format!("number {number} is taken")));
        }
    }
    for (number, line) in (1..).zip(index.lines()) {
        for link in links(line).filter(|it| it.ends_with(".md")) {
            if repository.file(&format!("{DECISIONS}{link}")).is_none() {
                let message = format!("'{link}' does not exist");
                findings.push(Finding::at_line(DECISION_INDEX, number, message));
            }
        }
    }
    findings
}

/// What stands between backticks or in a link in the guides: path of the guide, line, text. Blocks of code do not count.
fn guide_spans(repository: &Repository) -> Vec<(String, usize, String)> {
    let mut found = Vec::new();
    for file in GUIDES.iter().filter_map(|path| repository.file(path)) {
        let mut in_block = false;
        for (number, line) in (1..).zip(file.text.lines()) {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            }
            if in_block {
                continue;
            }
            let links = links(line).filter(|link| !link.contains("://")).map(String::from);
            for span in spans(line).into_iter().map(String::from).chain(links) {
                found.push((file.path.clone(), number, span));
            }
        }
    }
    found
}

fn spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, repository};
    use super::*;
    use crate::workspace::Package;

    const CODE: (&str, &str) = ("crates/core/store/src/mem.rs", "//! x\nfn it_holds() {}\n");

    #[test]
    fn a_path_that_is_gone_is_found() {
        let guide = "`crates/core/store/src/mem.rs` `mem.rs` `crates/core/store/` [x](docs/x.md)\n\
                     `crates/core/gone.rs`\n`gone.rs`\n[x](docs/gone.md)\n\
                     `lazuli-data/shards/` `cargo xtask tidy` `a/b` `crates/*/src`\n\
                     ```\n`crates/gone.rs`\n```\n";
        let repository = repository(&[("README.md", guide), CODE, ("docs/x.md", "")]);
        assert_eq!(places(&paths(&repository)), ["README.md:2", "README.md:3", "README.md:4"]);
    }

    #[test]
    fn a_test_that_is_gone_is_found() {
        let guide = "`crates/core/store/src/mem.rs::it_holds` `lazuli-store::it_holds` `mem.rs::it_holds`\n\
                     `crates/core/store/src/mem.rs::it_hold`\n`lazuli_store::tests::it_breaks`\n\
                     `Kind::Moved` `std::fmt`\n";
        let mut repository = repository(&[("ARCHITECTURE.md", guide), CODE]);
        let folder = "crates/core/store".to_owned();
        let name = "lazuli-store".to_owned();
        repository.packages =
            vec![Package { name, folder, dependencies: Vec::new(), targets: Vec::new() }];
        assert_eq!(places(&tests(&repository)), ["ARCHITECTURE.md:2", "ARCHITECTURE.md:3"]);
    }

    #[test]
    fn a_function_of_a_flow_that_is_gone_is_found() {
        let flow = format!(
            "{}\n`a/src/x.rs`: `Lane::run` and `Lane::stop`, `match` `Moved`\n`a/src/x.rs`:\n`free`\n\
             `a/src/y.rs`: `Lane::run`\n`Lane::walk`\n`a/src/x.rs`: `freed`\n{}\n## More\n`A::b`\n",
            FLOWS[0], FLOWS[1]
        );
        let code = "struct Lane;\nimpl Lane { fn run() {} }\nimpl Drop for Lane { fn stop() {} }\n\
                    fn free() {}\nimpl Other { fn walk() {} }\n";
        let repository =
            repository(&[(ARCHITECTURE, &flow), ("a/src/x.rs", code), ("a/src/y.rs", "")]);
        let expected = ["ARCHITECTURE.md:5", "ARCHITECTURE.md:6", "ARCHITECTURE.md:7"];
        assert_eq!(places(&flows(&repository)), expected);
        let gone = super::super::tests::repository(&[(ARCHITECTURE, FLOWS[0])]);
        assert_eq!(places(&flows(&gone)), [ARCHITECTURE]);
    }

    #[test]
    fn a_decision_outside_of_the_index_and_a_dead_entry_are_found() {
        let index = "- [One](0001-one.md)\n- [Gone](0009-gone.md)\n- [Again](0001-again.md)\n";
        let repository = repository(&[
            (DECISION_INDEX, index),
            ("docs/decisions/0001-one.md", ""),
            ("docs/decisions/0001-again.md", ""),
            ("docs/decisions/0002-two.md", ""),
        ]);
        let expected = [
            "docs/decisions/0001-again.md",
            "docs/decisions/0002-two.md",
            "docs/decisions/README.md:2",
        ];
        assert_eq!(places(&decisions(&repository)), expected);
    }
}
