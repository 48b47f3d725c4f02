//! `cargo xtask chaos`: the official SDKs' load on a server whose map changes all the time, and which is killed again and
//! again (`tests/chaos`).
//!
//! With kills the SDKs do not retry, so that the checkers know which writes are in doubt. Without kills they retry as they
//! do by default, and one retry fails the run.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::arguments::Arguments;
use crate::workspace::{self, Workspace, cargo};
use crate::{Failure, Result, conformance, debian, process, python};

const FOLDER: &str = "tests/chaos";
const PROGRAM: &str = "chaos.py";

/// The test of sharded SQL.
const SQL_CHAOS: &str =
    "chaos::whatever_happens_every_answered_write_is_there_once_and_nothing_else_is";

/// The seconds of a run without `--seconds` and `--minutes`.
const SECONDS: u64 = 600;

/// What happens to the server beside changes of its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Killed,
    Unharmed,
}

/// What is under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One server on a data folder.
    Alone,
    /// One server with shards in its data folder and in a private PostgreSQL database.
    Mixed,
    /// Two nodes on private PostgreSQL servers, behind a proxy that sends every request to the next one.
    Fleet,
}

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let minutes = arguments.number("--minutes")?.map(|minutes| minutes * 60);
    let seconds = arguments.number("--seconds")?.or(minutes).unwrap_or(SECONDS);
    let seed = arguments.number("--seed")?;
    let fate = if arguments.flag("--no-kills") { Fate::Unharmed } else { Fate::Killed };
    if arguments.flag("--sql") {
        arguments.finish()?;
        return sql(seconds, seed);
    }
    let target = match (arguments.flag("--fleet"), arguments.flag("--mixed")) {
        (false, false) => Target::Alone,
        (false, true) => Target::Mixed,
        (true, false) => Target::Fleet,
        (true, true) => return Err(Failure::Usage("--fleet or --mixed, not both".into())),
    };
    arguments.finish()?;
    go_on_for(seconds, target, fate, seed)
}

/// Sharded SQL on three PostgreSQL servers: splits, merges, moves, kills of Lazuli and of shards, ended sessions. A test of the
/// program does it, here for longer.
pub(crate) fn sql(seconds: u64, seed: Option<u64>) -> Result {
    if !debian::has_postgres()? {
        return Ok(());
    }
    let words = ["test", "--workspace", "--locked", "--test", "sql", "--", "--nocapture"];
    let mut test = cargo();
    test.args(words).args(["--exact", SQL_CHAOS]);
    test.env("LAZULI_SQL_CHAOS_SECONDS", seconds.to_string());
    if let Some(seed) = seed {
        test.env("LAZULI_SQL_CHAOS_SEED", seed.to_string());
    }
    process::run(&mut test)
}

/// Chaos for so long; a seed that is not given is taken from the clock, and printed.
pub(crate) fn go_on_for(seconds: u64, target: Target, fate: Fate, seed: Option<u64>) -> Result {
    if target != Target::Alone && !debian::has_postgres()? {
        return Ok(());
    }
    let seed = seed.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(since.subsec_nanos())
    });
    let workspace = Workspace::load()?;
    let server = workspace.program("lazuli")?;
    let python = python::environment(&workspace)?;
    let kills = fate == Fate::Killed;
    let folder_name = match (target, fate) {
        (Target::Alone, Fate::Killed) => "chaos",
        (Target::Alone, Fate::Unharmed) => "chaos-unharmed",
        (Target::Mixed, Fate::Killed) => "chaos-mixed",
        (Target::Mixed, Fate::Unharmed) => "chaos-mixed-unharmed",
        (Target::Fleet, Fate::Killed) => "chaos-fleet",
        (Target::Fleet, Fate::Unharmed) => "chaos-fleet-unharmed",
    };
    // Runs at the same time do not share one. What a run leaves is worth a look only if it failed.
    let folder = workspace.scratch.join(format!("{folder_name}-{seed}"));
    process::fresh_folder(&folder)?;
    let (account, key) = conformance::account()?;
    println!("--- what the checkers find");
    process::run(
        Command::new(&python)
            .args(["-m", "pytest", "-p", "no:cacheprovider", "--quiet", "."])
            .current_dir(workspace::root().join(FOLDER))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )?;
    println!("--- chaos for {seconds} s with seed {seed}");
    let mut command = Command::new(python);
    command.arg(workspace::root().join(FOLDER).join(PROGRAM));
    command.arg("--binary").arg(server).arg("--folder").arg(&folder);
    command.args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
    command.args(["--account", &account, "--key", &key]);
    if kills {
        command.arg("--kills");
    }
    if target != Target::Alone {
        command.arg("--postgres").arg(workspace.program("postgres-server")?);
    }
    if target == Target::Mixed {
        command.arg("--mixed");
    }
    process::run(command.env("PYTHONDONTWRITEBYTECODE", "1"))?;
    std::fs::remove_dir_all(&folder).map_err(|error| process::unusable(&folder, &error))
}
