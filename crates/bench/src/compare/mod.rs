//! A front against the emulator that people would use instead: both started here, both given the same requests by the
//! same load generator, in turns. Run by `cargo xtask bench-compare FRONT`.
//!
//! `server` starts, watches and ends the two; `start` times that; `connection` is one HTTP connection; `load` keeps many
//! of them busy; `report` is the table with its bounds. `blobs`, `documents`, `queues` and `tables` say what is sent. `bus`,
//! `cache` and `sql` have peers and loads of their own: they speak no HTTP. `search` has no peer here.

pub mod blobs;
pub mod bus;
pub mod cache;
mod connection;
pub mod documents;
mod load;
pub mod queues;
mod report;
pub mod search;
mod server;
pub mod sql;
mod start;
pub mod tables;

use std::path::PathBuf;
use std::time::Duration;

/// What went wrong, for a person to read.
pub type Result<T = ()> = std::result::Result<T, String>;

/// The front that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    Blobs,
    Bus,
    Cache,
    Documents,
    /// Hubs, which are served by the same port as the bus.
    Hub,
    Queues,
    Search,
    Sql,
    Tables,
}

/// What is compared, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    pub front: Front,
    /// Our program.
    pub binary: PathBuf,
    /// The emulator's script, for `node`, or the folder of its package for that of documents; the program of other peers.
    pub peer: PathBuf,
    /// Where both keep their data: on the disk that counts.
    pub folder: PathBuf,
    /// How long one figure is measured.
    pub time: Duration,
    /// The size of the large table, queue or container, and of the small one that it is compared with.
    pub entities: u64,
    pub entities_few: u64,
    /// Only operations whose names begin with these words, without the bounds of all others.
    pub only: Option<String>,
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        let begins = |only: &str| {
            let rest = name.strip_prefix(only);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        self.only.as_deref().is_none_or(begins)
    }
}
