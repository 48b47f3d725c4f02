//! `cargo xtask mutants CRATE --sample N`: are the tests any good? cargo-mutants puts one fault at a time into a crate; its own
//! tests and a few seeds of the simulator must fail for each.
//!
//! It works on a copy of the tree at a fixed place, so that compilation is incremental and no fault is left behind in the
//! tree itself if the run is interrupted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Arguments;
use crate::process::{self, unusable};
use crate::tidy;
use crate::workspace::{self, Workspace, cargo};
use crate::{Failure, Result};

const VERSION: &str = "27.1.0";
/// The least share of viable mutants that must be caught, in percent.
const CAUGHT_MIN: usize = 95;
/// Seconds for the tests of one mutant. One that makes them hang counts as caught.
const TIMEOUT: &str = "180";
/// Seeds of every scenario of the simulator, for each mutant.
const SIM_SEEDS: &str = "2";
/// Tests of the simulator that take long and say nothing about the crate.
const SKIPPED: &[&str] = &[
    "work_goes_on_wherever_it_was_stopped",
    "every_canary_fails",
    "every_scenario_takes_the_same_way_with_the_same_seed",
];
/// Crates that the simulator runs.
const SIMULATED: &[&str] =
    &["lazuli-store", "lazuli-shardmap", "lazuli-balance", "lazuli-engine", "lazuli-shapes"];

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let sample = arguments.number("--sample")?;
    let seed = arguments.number("--seed")?.unwrap_or(1);
    let package = arguments.word();
    arguments.finish()?;
    let (Some(package), Some(sample)) = (package, sample) else {
        return Err(Failure::Usage("name a crate and --sample N".into()));
    };
    let workspace = Workspace::load()?;
    let program = program(&workspace)?;
    let tree = workspace.scratch.join("mutants/tree");
    copy_tree(&tree)?;
    let chosen = choose(list(&program, &tree, &package)?, sample, seed);
    println!("{} mutants of {package}, seed {seed}", chosen.len());
    let tests = Tests { workspace: &workspace, program, tree, package: &package };
    let mut tally = tests.run(&package, &chosen)?;
    // Only what its own tests have missed is put to the simulator, which is compiled anew for every mutant.
    if SIMULATED.contains(&package.as_str()) && !tally.missed.is_empty() {
        let simulated = tests.run("lazuli-sim", &tally.missed)?;
        tally.caught += simulated.caught;
        tally.missed = simulated.missed;
    }
    for name in &tally.missed {
        println!("missed: {name}");
    }
    let (line, is_enough) = tally.verdict();
    println!("{line}");
    if is_enough { Ok(()) } else { Err(Failure::failed(line)) }
}

/// A crate with mutants, and the copy of the tree that they are made in.
struct Tests<'a> {
    workspace: &'a Workspace,
    program: PathBuf,
    tree: PathBuf,
    package: &'a str,
}

impl Tests<'_> {
    /// Runs the tests of `tester` on each mutant.
    fn run(&self, tester: &str, names: &[String]) -> Result<Tally> {
        let out = self.workspace.scratch.join("mutants/out");
        process::fresh_folder(&out)?;
        let mut command = mutants(&self.program, &self.tree, self.package);
        // The compiled dependencies of the tree itself are good for the copy as well.
        command.env("CARGO_TARGET_DIR", self.workspace.target()).env("LAZULI_SIM_SEEDS", SIM_SEEDS);
        command.args(["--in-place", "--baseline", "skip", "--timeout", TIMEOUT]);
        command.args(["--test-package", tester, "--output"]).arg(&out);
        for name in names {
            command.arg("--re").arg(format!("^{}$", escaped(name)));
        }
        command.args(["--", "--lib", "--test", "it", "--"]);
        command.args(SKIPPED.iter().flat_map(|test| ["--skip", test]));
        // It ends with another code than 0 if a mutant was missed; its files say more.
        let _ = process::run(&mut command);
        Tally::read(&out.join("mutants.out"))
    }
}

/// cargo-mutants, installed on demand at its pinned version.
fn program(workspace: &Workspace) -> Result<PathBuf> {
    let root = workspace.scratch.join(format!("cargo-mutants-{VERSION}"));
    let program = root.join("bin/cargo-mutants");
    if !program.exists() {
        let words = ["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"];
        process::run(cargo().args(words).arg(&root))?;
    }
    Ok(program)
}

fn mutants(program: &Path, tree: &Path, package: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["mutants", "--no-shuffle", "--package", package, "--dir"]).arg(tree);
    command.current_dir(tree);
    command
}

/// Makes `tree` the same as the tree we run in. Files that are the same already keep their times.
fn copy_tree(tree: &Path) -> Result {
    let tracked: BTreeSet<String> = tidy::tracked()?.into_iter().collect();
    let known = tree.join(".copied");
    for path in std::fs::read_to_string(&known).unwrap_or_default().lines() {
        if !tracked.contains(path) {
            // Gone already, or gone now.
            let _ = std::fs::remove_file(tree.join(path));
        }
    }
    for path in &tracked {
        let (from, to) = (workspace::root().join(path), tree.join(path));
        // Deleted, and not yet known to git as such.
        let Ok(bytes) = std::fs::read(&from) else { continue };
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        let folder = to.parent().unwrap_or(tree);
        std::fs::create_dir_all(folder).map_err(|error| unusable(folder, &error))?;
        std::fs::write(&to, bytes).map_err(|error| unusable(&to, &error))?;
    }
    let lines: Vec<&str> = tracked.iter().map(String::as_str).collect();
    std::fs::write(&known, lines.join("\n")).map_err(|error| unusable(&known, &error))
}

/// All mutants of a crate, by name.
fn list(program: &Path, tree: &Path, package: &str) -> Result<Vec<String>> {
    let output = mutants(program, tree, package)
        .arg("--list")
        .output()
        .map_err(|error| Failure::failed(format!("cargo-mutants did not start: {error}")))?;
    let names: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect();
    if !output.status.success() || names.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::failed(format!("there are no mutants of {package}: {said}")));
    }
    Ok(names)
}

/// So many of the names, chosen by the seed.
fn choose(mut names: Vec<String>, sample: u64, seed: u64) -> Vec<String> {
    let mut state = seed;
    let mut chosen = Vec::new();
    while (chosen.len() as u64) < sample && !names.is_empty() {
        // The step of splitmix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let at = (mixed ^ (mixed >> 31)) % names.len() as u64;
        chosen.push(names.swap_remove(usize::try_from(at).unwrap_or(0)));
    }
    chosen
}

/// The name as a regular expression that matches nothing else.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// What became of mutants.
#[derive(Default)]
struct Tally {
    /// Noticed by a failed test, or by one that did not end.
    caught: usize,
    missed: Vec<String>,
    /// Did not compile.
    unviable: usize,
}

impl Tally {
    /// From the lists of names that cargo-mutants leaves.
    fn read(folder: &Path) -> Result<Self> {
        let names = |list: &str| {
            let path = folder.join(list);
            let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
            Ok(text.lines().map(String::from).collect::<Vec<_>>())
        };
        let caught = names("caught.txt")?.len() + names("timeout.txt")?.len();
        Ok(Self { caught, missed: names("missed.txt")?, unviable: names("unviable.txt")?.len() })
    }

    /// A sentence, and whether enough was caught.
    fn verdict(&self) -> (String, bool) {
        let (caught, viable) = (self.caught, self.caught + self.missed.len());
        let percent = 100 * caught / viable.max(1);
        let unviable = self.unviable;
        let line = format!(
            "caught {caught} of {viable} viable mutants ({percent} %), {unviable} did not compile"
        );
        (line, viable > 0 && percent >= CAUGHT_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_chooses_the_same_mutants_each_once() {
        let names: Vec<String> = (0..50).map(|number| number.to_string()).collect();
        let first = choose(names.clone(), 20, 7);
        assert_eq!(first, choose(names.clone(), 20, 7));
        assert_ne!(first, choose(names.clone(), 20, 8));
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 20);
        assert_eq!(choose(names, 100, 7).len(), 50);
        assert_eq!(escaped("a.rs:1:2: -> bool"), r"a\.rs:1:2: -> bool");
    }

    #[test]
    fn too_few_caught_fail() {
        let outcomes = |caught, missed: usize| {
            let missed = vec![String::new(); missed];
            Tally { caught, missed, unviable: 3 }.verdict().1
        };
        assert!(outcomes(95, 5));
        assert!(!outcomes(94, 6));
        assert!(!outcomes(0, 0));
    }
}
