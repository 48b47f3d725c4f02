//! Tidy: rules that compilers and formatters do not know and that a reviewer would miss: layers, sizes, names, and documents
//! that point nowhere.
//!
//! A rule is a function from the repository to what it finds wrong. Each has a test with a bad sample beside it, so
//! that the rule is known to be able to fail. The whole of tidy also runs in `cargo test -p xtask`.

mod documents;
mod layers;
mod lexer;
mod names;
mod sizes;

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::{self, Package, Workspace};
use crate::{Failure, Result};

use lexer::Lexed;

/// One text file of the repository.
pub(crate) struct File {
    /// From the root, with forward slashes.
    path: String,
    text: String,
    /// For Rust files: code and comments apart.
    lexed: Option<Lexed>,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        let lexed = path.ends_with(".rs").then(|| Lexed::new(text));
        Self { path: path.to_owned(), text: text.to_owned(), lexed }
    }

    /// The last part of the path.
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Everything that the rules look at.
pub(crate) struct Repository {
    files: Vec<File>,
    packages: Vec<Package>,
}

impl Repository {
    fn load() -> Result<Self> {
        let packages = Workspace::load()?.packages;
        let mut files = Vec::new();
        for path in tracked()? {
            // What is not text (images, sample data) has no lines to look at, but documents may point at it. What was
            // just deleted is no business of these rules.
            if let Ok(bytes) = std::fs::read(workspace::root().join(&path)) {
                files.push(File::new(&path, &String::from_utf8(bytes).unwrap_or_default()));
            }
        }
        Ok(Self { files, packages })
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    fn rust(&self) -> impl Iterator<Item = (&File, &Lexed)> {
        self.files.iter().filter_map(|file| file.lexed.as_ref().map(|lexed| (file, lexed)))
    }
}

/// Something that a rule does not like, and where.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    place: String,
    message: String,
}

impl Finding {
    fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { place: format!("{path}:{line}"), message: message.into() }
    }

    fn at(path: &str, message: impl Into<String>) -> Self {
        Self { place: path.to_owned(), message: message.into() }
    }
}

type Rule = fn(&Repository) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("crate edges", layers::edges),
    ("outside crates in core", layers::outside),
    ("file sizes", sizes::files),
    ("function lengths", sizes::functions),
    ("file names", names::files),
    ("reasons of errors", names::reasons),
    ("paths in documents", documents::paths),
    ("tests in documents", documents::tests),
    ("flows in documents", documents::flows),
    ("decision index", documents::decisions),
];

pub(crate) fn run(arguments: Arguments) -> Result {
    arguments.finish()?;
    check()
}

pub(crate) fn check() -> Result {
    let repository = Repository::load()?;
    let mut findings = 0;
    for (name, rule) in RULES {
        for finding in rule(&repository) {
            findings += 1;
            eprintln!("{}: {} [{name}]", finding.place, finding.message);
        }
    }
    if findings > 0 {
        return Err(Failure::failed(format!("tidy found {findings} things to mend")));
    }
    println!("tidy: {} rules, {} files, nothing found", RULES.len(), repository.files.len());
    Ok(())
}

/// The files that are in the repository or about to be: everything that git does not ignore.
pub(crate) fn tracked() -> Result<Vec<String>> {
    let output = Command::new("git")
        // The clone may belong to another user than the one who runs CI.
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(workspace::root())
        .output()
        .map_err(|error| Failure::failed(format!("git did not start: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::failed(format!("git ls-files: {said}")));
    }
    let list = String::from_utf8_lossy(&output.stdout);
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository made of these files alone.
    pub(super) fn repository(files: &[(&str, &str)]) -> Repository {
        let files = files.iter().map(|(path, text)| File::new(path, text)).collect();
        Repository { files, packages: Vec::new() }
    }

    /// The places of what a rule finds.
    pub(super) fn places(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.place.as_str()).collect()
    }

    #[test]
    fn the_house_is_tidy() {
        if let Err(Failure::Failed(message)) = check() {
            panic!("{message}; see above, or run `cargo xtask tidy`");
        }
    }
}
