//! One file per command. Each asks, prints, and says what it changed.

mod account;
mod advise;
mod audit;
mod backup;
mod blob;
mod blocks;
mod catalog;
mod config;
mod fsck;
mod job;
mod map;
mod partition;
mod rebalance;
mod remote;
mod serve;
mod shard;
mod simulate;
mod status;
mod table;

use crate::args::Command;
use crate::failure::Result;
use crate::output;

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Serve { settings } => serve::run(settings),
        Command::Config { settings, json } => config::run(settings, json),
        Command::Status(target) => status::run(&target),
        Command::Shard(command) => shard::run(command),
        Command::Map(command) => map::run(command),
        Command::Partition(command) => partition::run(command),
        Command::Job(command) => job::run(command),
        Command::Account(command) => account::run(command),
        Command::Backup(command) => backup::run(command),
        Command::Blob(command) => blob::run(command),
        Command::Table(command) => table::run(command),
        Command::Fsck { repair, target } => fsck::run(&target, repair),
        Command::Catalog(command) => catalog::run(command),
        Command::Blocks(command) => blocks::run(command),
        Command::Advise(target) => advise::run(&target),
        Command::Audit { limit, before, target } => audit::run(&target, limit, before),
        Command::Rebalance(wanted) => rebalance::run(&wanted),
        Command::Simulate(wanted) => simulate::run(&wanted),
        Command::Version => {
            output::line(&format!("lazuli {}", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
    }
}
