//! The one door to all tooling: `cargo xtask <command>`.
//!
//! Every command runs on a clean clone with nothing but Rust, Python 3, Node and Debian's packages: it fetches what it
//! needs at pinned versions into the target folder, takes free ports, waits for readiness instead of sleeping, and
//! ends the processes it started however it ends itself.

mod arguments;
mod azure_storage;
mod bench;
mod beside;
mod bullmq;
mod cache_moving;
mod chaos;
mod compare;
mod conformance;
mod crash;
mod debian;
mod differential;
mod differential_cache;
mod dist;
mod emulator;
mod freshness;
mod fuzz;
mod mutants;
mod node;
mod portal;
mod process;
mod programs;
mod python;
mod python_programs;
mod search_lucene;
mod server;
mod sim;
mod steps;
mod tidy;
mod tour;
mod workspace;

use std::process::ExitCode;

use arguments::Arguments;

/// Why a command did not do what it was asked for. The exit codes are those of `lazuli` itself: 1 failed, 2 wrong usage.
#[derive(Debug)]
pub(crate) enum Failure {
    Failed(String),
    Usage(String),
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

struct Command {
    name: &'static str,
    usage: &'static str,
    what: &'static str,
    run: fn(Arguments) -> Result,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        usage: "[--only STEP] [--front FRONT] [--list]",
        what: "everything that CI runs, in order; stops at the first failure",
        run: steps::run,
    },
    Command {
        name: "tidy",
        usage: "",
        what: "layers, sizes, names, and what the documents point at",
        run: tidy::run,
    },
    Command {
        name: "sim",
        usage: "[--seeds N] [--start N] [--scenario NAME] [--seed N]",
        what: "the simulator: many seeds, or one of them again",
        run: sim::run,
    },
    Command {
        name: "conformance",
        usage: "FRONT --sdk python|js [--target ours|fleet|azurite]",
        what: "a front judged by an official SDK, on Lazuli or on the emulator",
        run: conformance::run,
    },
    Command {
        name: "crash",
        usage: "[tables|queues|blobs|documents|bus|hub|search|cache|cache-everysec] [--rounds N]",
        what: "kill -9 under load, restart, look for every answered write or message",
        run: crash::run,
    },
    Command {
        name: "chaos",
        usage: "[--fleet|--mixed] [--minutes N] [--seconds N] [--seed S] [--no-kills]",
        what: "the SDKs' load while partitions are split, merged and moved, and the server is killed",
        run: chaos::run,
    },
    Command {
        name: "differential",
        usage: "[--seeds N] [--seed S] [--requests N]",
        what: "the same requests to an embedded server and to a fleet: the same answers",
        run: differential::run,
    },
    Command {
        name: "cache-moving",
        usage: "",
        what: "keys between Debian's redis-server and the cache, by RDB files and by replication under load",
        run: cache_moving::run,
    },
    Command {
        name: "differential-cache",
        usage: "[--seed S] [--first N] [--sequences N]",
        what: "the same commands to Debian's redis-server and to the cache: the same replies",
        run: differential_cache::run,
    },
    Command {
        name: "program",
        usage: "object-store|rclone|azure-storage|bullmq|adlfs|emulators|az",
        what: "a program as users have it, on a server of its own",
        run: programs::run,
    },
    Command {
        name: "portal",
        usage: "[--only FILE] [--screenshots]",
        what: "the portal judged in a browser; screenshots for the documents made anew",
        run: portal::run,
    },
    Command {
        name: "freshness",
        usage: "[--rate N] [--seconds N]",
        what: "how soon searches find a document that was answered, at a rate of uploads",
        run: freshness::run,
    },
    Command {
        name: "search-lucene",
        usage: "",
        what: "the search engine beside Lucene: tokens, queries and ranks",
        run: search_lucene::run,
    },
    Command {
        name: "fuzz",
        usage: "[--requests N] [--seed S]",
        what: "fuzzed requests: documented errors, no panic, memory flat, data sound",
        run: fuzz::run,
    },
    Command {
        name: "mutants",
        usage: "CRATE --sample N [--seed S]",
        what: "faults put into a crate one at a time; fails if its tests and the simulator miss too many",
        run: mutants::run,
    },
    Command {
        name: "dist",
        usage: "[--try]",
        what: "what people download: an archive and a Debian package, with checksums; tried with --try",
        run: dist::run,
    },
    Command {
        name: "bench",
        usage: "[NAME]",
        what: "the benchmarks in release mode; fails on a missed bound",
        run: bench::run,
    },
    Command {
        name: "bench-compare",
        usage: "FRONT [--quick] [--seconds N] [--entities N] [--only OPERATION]",
        what: "a front against the emulator, one load on both; fails on a missed bound",
        run: compare::run,
    },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let result = match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(Arguments::new(words)),
        None => Err(Failure::Usage(format!("there is no command '{name}'"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => {
            eprintln!("failed: {message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("wrong usage: {message}\n\n{}", usage());
            ExitCode::from(2)
        }
    }
}

fn usage() -> String {
    let mut text = String::from("usage:\n");
    for command in COMMANDS {
        let call = format!("cargo xtask {} {}", command.name, command.usage);
        text.push_str(&format!("  {call:<74} {}\n", command.what));
    }
    text
}
