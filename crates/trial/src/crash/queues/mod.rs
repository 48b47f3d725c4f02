//! Queues: every message whose put was answered is delivered at least once, no two workers hold one at the same time,
//! none is delivered after its time to live, and they are delivered in the order in which they became visible.

mod consumers;
mod history;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use lazuli_trial::server::Server;
use lazuli_trial::{Result, queues};

use super::Load;
use consumers::{Event, HIDDEN_SECONDS_MAX, QUEUES};
use history::History;

#[derive(Default)]
pub(crate) struct Queues(History);

impl Load for Queues {
    type Log = Vec<Event>;
    const FRONT: &str = "queues";
    const WRITERS: usize = 12;
    const LIFE_MS: Range<u64> = 100..1_500;

    fn create(&self, address: SocketAddr) -> Result {
        QUEUES.iter().try_for_each(|queue| queues::create_at(address, queue))
    }

    fn write(&self, address: SocketAddr, round: u64, worker: usize) -> Result<Vec<Event>> {
        consumers::work(address, round, worker)
    }

    fn settle(&mut self, _: SocketAddr, logs: Vec<Vec<Event>>) -> Result {
        logs.into_iter().try_for_each(|events| self.0.note(events))?;
        self.0.check()
    }

    fn finish(&mut self, server: &Server, _: &Path) -> Result {
        // By then every message that a worker received is visible again.
        std::thread::sleep(Duration::from_secs(HIDDEN_SECONDS_MAX + 1));
        for queue in QUEUES {
            self.0.note(consumers::drain(server.endpoint(Self::FRONT)?, queue)?)?;
        }
        self.0.check()?;
        self.0.check_nothing_lost()
    }
}

impl fmt::Display for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
