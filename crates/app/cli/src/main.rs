//! The command line of Lazuli: `args` parses, `commands` calls, one file per command. `simulate` runs the balancer on a
//! described fleet in virtual time, without a server.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage.

mod args;
mod client;
mod commands;
mod flags;
mod simulate;
mod told;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Wrong usage ends in here, with exit code 2.
    let args = args::Args::parse();
    match commands::run(args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            match wants_json() {
                true => eprintln!("{}", failure.json()),
                false => eprintln!("{failure}"),
            }
            failure.exit_code()
        }
    }
}

/// Whether the command was asked to print JSON. Every command that can has the same flag.
fn wants_json() -> bool {
    let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
    words.any(|word| word == "--json")
}
