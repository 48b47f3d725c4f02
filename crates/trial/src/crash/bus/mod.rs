//! The bus: every message whose send was answered is delivered at least once and stored once, no two receivers hold one at
//! the same time, sessions are delivered in order to one holder, ids that were sent before are suppressed, dead letters
//! stay, and transactions move a message whole or not at all.

mod audit;
mod movers;
mod sessions;
mod workers;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use lazuli_trial::server::Server;
use lazuli_trial::{Result, amqp};

use super::Load;
use audit::History;

/// Queues without sessions: one fragment, and several.
const QUEUES: [&str; 2] = ["crash-plain", "crash-parts"];
const SESSIONS: &str = "crash-sessions";
/// Suppresses messages with an id that was sent before.
const ONCE: &str = "crash-once";
/// Where transactions take messages from, and where they put them.
const FROM: &str = "crash-from";
const TO: &str = "crash-to";
/// As short as they can be: a server that is killed leaves locks behind.
const LOCK: &str = "<LockDuration>PT1S</LockDuration>";
const LOCK_MS: u64 = 1_000;

/// What became of a message that somebody held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Completed,
    DeadLettered,
    GivenBack,
}

/// What one worker did, in its order. What was not answered may have been done.
#[derive(Debug)]
pub(crate) enum Event {
    /// Sent to a queue; in a session, in the order of the numbers.
    Sent {
        queue: &'static str,
        tag: String,
        session: Option<(String, u64)>,
        answered: bool,
    },
    /// The worker has a session from now on.
    Held {
        session: String,
        hold: u64,
        until_ms: u64,
        at: Instant,
    },
    /// It gives the session back.
    Left {
        hold: u64,
        at: Instant,
    },
    Received {
        queue: &'static str,
        tag: String,
        number: i64,
        hold: u64,
        until_ms: u64,
        at: Instant,
        at_ms: u64,
    },
    Settled {
        queue: &'static str,
        tag: String,
        hold: u64,
        how: How,
        sent: Instant,
        answered: bool,
    },
    /// A transaction that takes a message from one queue and puts it into the other.
    Moved {
        tag: String,
        keeps: bool,
        answered: bool,
    },
    /// Found when nobody held anything any more.
    Remained {
        place: String,
        tag: String,
        number: i64,
    },
}

#[derive(Default)]
pub(crate) struct Bus(History);

impl Load for Bus {
    type Log = Vec<Event>;
    const FRONT: &str = "bus";
    const WRITERS: usize = 13;
    const LIFE_MS: Range<u64> = 100..1_500;

    fn create(&self, address: SocketAddr) -> Result {
        let make = |name: &str, inside: &str| {
            let inside = format!("{LOCK}{inside}<MaxDeliveryCount>2000</MaxDeliveryCount>");
            amqp::make(address, name, "QueueDescription", &inside)
        };
        make(QUEUES[0], "")?;
        make(QUEUES[1], "<EnablePartitioning>true</EnablePartitioning>")?;
        make(SESSIONS, "<RequiresSession>true</RequiresSession>")?;
        make(ONCE, "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>")?;
        make(FROM, "")?;
        make(TO, "")
    }

    fn write(&self, address: SocketAddr, round: u64, worker: usize) -> Result<Vec<Event>> {
        match worker {
            0..=3 => workers::mixed(address, round, worker, QUEUES[worker % 2]),
            4..=5 => sessions::send(address, round, worker),
            6..=8 => sessions::receive(address, round, worker),
            9..=10 => workers::repeat(address, round, worker),
            _ => movers::work(address, round, worker),
        }
    }

    fn settle(&mut self, _: SocketAddr, logs: Vec<Vec<Event>>) -> Result {
        logs.into_iter().flatten().try_for_each(|event| self.0.note(event))
    }

    fn finish(&mut self, server: &Server, _: &Path) -> Result {
        let address = server.endpoint(Self::FRONT)?;
        let queues = [QUEUES[0], QUEUES[1], ONCE, FROM, TO];
        let dead = queues.map(|queue| format!("{queue}/$DeadLetterQueue"));
        let places = queues.map(str::to_owned).into_iter().chain(dead).collect();
        let drain = |address, place: String| workers::drain(address, &place);
        for left in super::read_all(address, places, drain)? {
            left.into_iter().try_for_each(|event| self.0.note(event))?;
        }
        for event in sessions::drain(address)? {
            self.0.note(event)?;
        }
        self.0.check()
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
