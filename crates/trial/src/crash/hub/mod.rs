//! Hubs: every event whose send was answered is in its partition once, numbers have no gap and change nothing that was
//! read before, and the events of a key are in the order in which they were sent, also while partitions are added.

mod check;
mod publishers;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use lazuli_trial::server::Server;
use lazuli_trial::{Result, amqp};

use super::Load;
use check::Logs;

const HUB: &str = "crash-hub";
const PARTITIONS: usize = 4;
/// Publishers come first, then a reader for each partition.
const PUBLISHERS: usize = 8;

/// Events that were sent together, and whether that was answered.
#[derive(Debug)]
pub(crate) struct Sent {
    key: Option<String>,
    tags: Vec<String>,
    answered: bool,
}

/// What one worker of a round did.
#[derive(Debug)]
pub(crate) enum Log {
    Published(Vec<Sent>),
    /// What a reader of a partition saw: numbers and tags.
    Read(usize, Vec<(i64, String)>),
}

#[derive(Default)]
pub(crate) struct Hub(Logs);

impl Load for Hub {
    type Log = Log;
    const FRONT: &str = "bus";
    const WRITERS: usize = PUBLISHERS + PARTITIONS;
    const LIFE_MS: Range<u64> = 100..1_500;

    fn create(&self, address: SocketAddr) -> Result {
        let inside = format!("<PartitionCount>{PARTITIONS}</PartitionCount>");
        amqp::make(address, HUB, "EventHubDescription", &inside)
    }

    fn write(&self, address: SocketAddr, round: u64, worker: usize) -> Result<Log> {
        match worker.checked_sub(PUBLISHERS) {
            None => publishers::publish(address, round, worker),
            Some(partition) => publishers::follow(address, partition, self.0.end(partition)),
        }
    }

    fn settle(&mut self, address: SocketAddr, logs: Vec<Log>) -> Result {
        for log in logs {
            match log {
                Log::Published(sent) => self.0.published(sent),
                Log::Read(partition, seen) => self.0.saw(partition, seen)?,
            }
        }
        for partition in 0..PARTITIONS {
            let from = self.0.end(partition);
            let seen = publishers::read_rest(address, partition, from)?;
            self.0.stored(partition, seen)?;
        }
        self.0.check_round()
    }

    fn check_all(&self, address: SocketAddr) -> Result {
        for partition in 0..PARTITIONS {
            let all = publishers::read_rest(address, partition, 0)?;
            self.0.same(partition, &all)?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Server, _: &Path) -> Result {
        self.0.check_order()
    }
}

impl fmt::Display for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
