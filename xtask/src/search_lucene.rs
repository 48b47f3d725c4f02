//! `cargo xtask search-lucene`: the search engine beside Lucene, whose jars come from Debian's package.

use std::path::Path;

use crate::arguments::Arguments;
use crate::workspace::cargo;
use crate::{Result, debian, process};

/// The folder of Debian's jars.
const JARS: &str = "/usr/share/java";
/// The parts of Lucene that the Java program uses, with Debian's version.
const PARTS: [&str; 10] = [
    "core",
    "analyzers-common",
    "analyzers-kuromoji",
    "analyzers-nori",
    "analyzers-smartcn",
    "analyzers-stempel",
    "queries",
    "queryparser",
    "misc",
    "sandbox",
];

/// The command.
pub(crate) fn run(arguments: Arguments) -> Result {
    arguments.finish()?;
    compare()
}

/// The step of the test. Without Java or Lucene it says that it is skipped.
pub(crate) fn compare() -> Result {
    if !debian::has_lucene()? {
        return Ok(());
    }
    let arguments = [
        "test",
        "--locked",
        "--package",
        "lazuli-search-engine",
        "--test",
        "lucene",
        "--",
        "--ignored",
    ];
    process::run(cargo().args(arguments).env("LAZULI_LUCENE_JARS", class_path()))
}

/// `cargo xtask bench-compare search`: the engine alone against Lucene on one corpus.
pub(crate) fn measure() -> Result {
    if !debian::has_lucene()? {
        return Ok(());
    }
    let arguments =
        ["bench", "--locked", "--package", "lazuli-search-engine", "--bench", "compare"];
    process::run(cargo().args(arguments).env("LAZULI_LUCENE_JARS", class_path()))
}

/// The jars of Lucene, as Java's option takes them.
pub(crate) fn class_path() -> String {
    let jars = PARTS.iter().filter_map(|part| jar(part));
    jars.collect::<Vec<_>>().join(":")
}

/// The jar of a part, whatever version Debian has.
fn jar(part: &str) -> Option<String> {
    let prefix = format!("lucene-{part}-8");
    let entries = Path::new(JARS).read_dir().ok()?;
    let mut names = entries.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let name = names.find(|it| it.starts_with(&prefix) && it.ends_with(".jar"))?;
    Some(format!("{JARS}/{name}"))
}
