//! Logs: hubs of partitions to which batches of records are appended and from which they are read by offset (E1, E2). The
//! model behind Event Hubs, over AMQP and over Kafka.
//!
//! A hub is a container with a list map, one partition of the map for each partition of the hub, so that each can be watched
//! and moved like any other. A batch is one row, and an append writes that row, the state of the log and, for idempotent
//! producers, one more. The state says where the log begins, so that what was deleted costs nothing again.
//! `docs/decisions/0185-logs.md` says why, `docs/formats/log.md` what the rows look like.

mod append;
mod claims;
mod compaction;
mod directory;
mod growth;
mod hash;
mod hub;
pub mod limits;
mod offsets;
mod read;
mod retention;
mod rows;
mod wake;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lazuli_engine::Engine;

pub use append::Appended;
pub use claims::{CLAIM_LIFE, CLAIM_RENEWAL, Claim, Claimed};
pub use compaction::{KeyedRecord, ReadRecords};
pub use hash::{key_hash, partition_of_key};
pub use hub::{Capture, Cleanup, Compaction, Hub, HubSettings, check_group_name, check_hub_name};
pub use offsets::{CommittedOffset, GroupOffset};
pub use read::{Page, ReadLimit, Start};
pub use rows::{Batch, Form, LogState, NewBatch, Producer};
pub use wake::Waiter;

use hub::Known;
use wake::Wakes;

lazuli_engine::reasons! {
    /// Errors of logs that callers tell apart.
    pub enum LogReason {
        HubNotFound = "hub-not-found",
        HubExists = "hub-exists",
        BadName = "bad-hub-name",
        BadSettings = "bad-hub-settings",
        NoSuchPartition = "no-such-hub-partition",
        BatchTooLarge = "batch-too-large",
        /// The hub gets more partitions: route the key anew.
        LayoutChanged = "hub-layout-changed",
        /// A newer instance of the producer has begun.
        ProducerFenced = "producer-fenced",
        /// A batch of the producer is missing in front of this one.
        OutOfSequence = "out-of-sequence",
        /// The batch came before, and too long ago to say where it went.
        DuplicateSequence = "duplicate-sequence",
        /// An offset behind the end of the log.
        OffsetOutOfRange = "offset-out-of-range",
        /// Another process coordinates the group.
        NotCoordinator = "not-coordinator",
    }
}

/// All hubs of all namespaces. Cheap to clone.
#[derive(Clone)]
pub struct Logs {
    engine: Arc<Engine>,
    wakes: Arc<Wakes>,
    /// What the containers of hubs say, read once for each version of them.
    known: Arc<Mutex<BTreeMap<String, Known>>>,
    /// Held while partitions are added: one at a time in this process.
    growing: Arc<tokio::sync::Mutex<()>>,
    /// How often a waiting reader looks by itself, if other processes share the stores.
    poll: Option<Duration>,
    /// What knows the keys of records; without it nothing is compacted.
    records: Option<Arc<dyn ReadRecords>>,
}

impl Logs {
    /// For a process that has the stores to itself, unless `is_shared`.
    pub fn new(engine: Arc<Engine>, is_shared: bool) -> Self {
        let poll = is_shared.then_some(limits::SHARED_POLL);
        let (known, growing) = (Arc::default(), Arc::default());
        Self { engine, wakes: Arc::default(), known, growing, poll, records: None }
    }

    /// The same logs, with what knows the keys of records.
    pub fn reading(self, records: Arc<dyn ReadRecords>) -> Self {
        Self { records: Some(records), ..self }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// One that waits for appends to the logs that it is told of.
    pub fn waiter(&self) -> Waiter {
        Waiter::new(self.wakes.clone())
    }

    /// The longest time that a reader waits before it looks by itself.
    pub fn poll(&self) -> Option<Duration> {
        self.poll
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
