//! One file per command. Each calls the server and prints the answer, or what it changed.

mod account;
mod advise;
mod audit;
mod backup;
mod blocks;
mod bus;
mod cache;
mod catalog;
mod config;
mod fsck;
mod hub;
mod job;
mod map;
mod node;
mod partition;
mod portal;
mod rebalance;
mod search;
mod serve;
mod shard;
mod shell_texts;
mod sql;
mod status;
mod transfer;

use crate::args::Command;
use lazuli_console::Result;
use lazuli_console::output;

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Serve { settings } => serve::run(settings),
        Command::Config { settings, json } => config::run(settings, json),
        Command::Status(target) => status::run(&target),
        Command::Node(command) => node::run(command),
        Command::Shard(command) => shard::run(command),
        Command::Map(command) => map::run(command),
        Command::Partition(command) => partition::run(command),
        Command::Job(command) => job::run(command),
        Command::Account(command) => account::run(command),
        Command::Backup(command) => backup::run(command),
        Command::Blob(command) => transfer::blob(command),
        Command::Documents(command) => transfer::documents(command),
        Command::Queue(command) => transfer::queue(command),
        Command::Cache(command) => cache::run(command),
        Command::Sql(command) => sql::run(command),
        Command::Search(command) => search::run(command),
        Command::Table(command) => transfer::table(command),
        Command::Bus(command) => bus::run(command),
        Command::Hub(command) => hub::run(command),
        Command::Fsck { repair, target } => fsck::run(&target, repair),
        Command::Catalog(command) => catalog::run(command),
        Command::Blocks(command) => blocks::run(command),
        Command::Advise(target) => advise::run(&target),
        Command::Audit { limit, before, target } => audit::run(&target, limit, before),
        Command::Rebalance(wanted) => rebalance::run(&wanted),
        Command::Simulate(wanted) => crate::simulate::run(&wanted),
        Command::Portal { container, target } => portal::run(container.as_deref(), &target),
        Command::Completions { shell } => {
            shell_texts::completions(shell);
            Ok(())
        }
        Command::Man { folder } => shell_texts::man(&folder),
        Command::Version => {
            output::line(&format!("lazuli {}", *crate::args::VERSION));
            Ok(())
        }
    }
}
