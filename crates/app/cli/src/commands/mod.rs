//! One file per command. Each asks, prints, and says what it changed.

mod config;

use crate::args::Command;
use crate::failure::Result;
use crate::output;

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Config { settings, json } => config::run(settings, json),
        Command::Version => {
            output::line(&format!("lazuli {}", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
    }
}
