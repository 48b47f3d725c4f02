//! Event Hubs over AMQP, on the same connections and with the same tokens as the bus. A hub is told from a queue or topic by
//! its name; a namespace that has both under one name has the hub first.
//!
//! `sender` appends what publishers send, `receiver` reads a partition for one group of consumers, `management` says what
//! hubs and partitions are like, `event` turns what is stored into messages, `readers` knows who reads with which epoch in this process, `ownership` in all.

pub(crate) mod event;
pub(crate) mod management;
mod ownership;
mod position;
mod readers;
pub(crate) mod receiver;
pub(crate) mod sender;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lazuli_log::{Hub, LogReason, Logs};

use crate::access::Right;
use crate::error::{Fault, Result, from_core};
use crate::limits::DECOMPRESSED_AT_ONCE;
use crate::peer::Peer;
use readers::Readers;
use tokio::sync::Semaphore;

/// The largest event or batch of events, as the service has it.
pub(crate) const EVENT_BYTES_MAX: u64 = 1024 * 1024;

/// What all connections share.
pub(crate) struct EventHubs {
    pub(crate) logs: Logs,
    readers: Readers,
    /// Who reads records that may be compressed takes one.
    decompressing: Semaphore,
    /// Events without a key go to one partition after another.
    turn: AtomicU32,
}

impl EventHubs {
    pub(crate) fn new(logs: Logs) -> Self {
        let decompressing = Semaphore::new(DECOMPRESSED_AT_ONCE);
        Self { logs, readers: Readers::default(), decompressing, turn: AtomicU32::new(0) }
    }

    fn next_turn(&self) -> u32 {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }
}

/// A path that may name a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HubAddress {
    /// All of it: tokens are for a path, and those of readers for the path of their partition.
    pub(crate) path: String,
    pub(crate) hub: String,
    pub(crate) group: Option<String>,
    pub(crate) partition: Option<String>,
}

impl HubAddress {
    /// `hub`, `hub/Partitions/N` or `hub/ConsumerGroups/G/Partitions/N`.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let is = |at: usize, word: &str| parts[at].eq_ignore_ascii_case(word);
        let (hub, group, partition) = match parts.len() {
            1 => (parts[0], None, None),
            3 if is(1, "Partitions") => (parts[0], None, Some(parts[2])),
            5 if is(1, "ConsumerGroups") && is(3, "Partitions") => {
                (parts[0], Some(parts[2]), Some(parts[4]))
            }
            _ => return None,
        };
        let owned = |part: Option<&str>| part.map(str::to_owned);
        let is_named = !hub.is_empty();
        is_named.then(|| Self {
            path: path.to_owned(),
            hub: hub.to_owned(),
            group: owned(group),
            partition: owned(partition),
        })
    }

    /// The number of the partition; none if it is not one of this hub.
    fn partition(&self, hub: &Hub) -> Option<u32> {
        let number = self.partition.as_ref()?.parse().ok()?;
        (number < hub.settings.partitions).then_some(number)
    }
}

/// Whether a link is for a hub. Where nothing may be known of it the bus refuses.
pub(crate) async fn is_hub(peer: &Peer, address: &HubAddress) -> bool {
    // What has a group or a partition in its path can be nothing else.
    let is_below = address.partition.is_some();
    let HubAddress { hub, path, .. } = address;
    match find(peer, hub, path, Right::Send).await {
        Ok(_) => true,
        Err(_) => is_below || find(peer, hub, path, Right::Listen).await.is_ok(),
    }
}

/// A hub for somebody with a right to it, or to what is below it at this path.
pub(crate) async fn find(
    peer: &Peer,
    name: &str,
    path: &str,
    right: Right,
) -> Result<(String, Arc<Hub>)> {
    let namespace = peer.may(path, right)?;
    let hub = peer.front.hubs.logs.hub(&namespace, name).await.map_err(|error| match error
        .reason::<LogReason>()
    {
        Some(LogReason::HubNotFound) => Fault::entity_not_found(name),
        _ => from_log(error),
    })?;
    Ok((namespace, hub))
}

const PRODUCER_EPOCH_STOLEN: &str = "com.microsoft:producer-epoch-stolen";
const OUT_OF_SEQUENCE: &str = "com.microsoft:out-of-order-sequence";
const OUT_OF_RANGE: &str = "com.microsoft:argument-out-of-range";

const PARTITION_NOT_OWNED: &str = "com.microsoft:partition-not-owned";

/// What became of an operation that the logs refused.
pub(crate) fn from_log(error: lazuli_engine::Error) -> Fault {
    let said = || error.message().to_owned();
    match error.reason::<LogReason>() {
        Some(LogReason::HubNotFound) => Fault::new(404, lazuli_amqp::condition::NOT_FOUND, said()),
        Some(LogReason::NoSuchPartition | LogReason::OffsetOutOfRange) => {
            Fault::new(400, OUT_OF_RANGE, said())
        }
        Some(LogReason::HubExists) => {
            Fault::new(409, "com.microsoft:entity-already-exists", said())
        }
        Some(LogReason::BadName | LogReason::BadSettings) => Fault::argument(said()),
        Some(LogReason::BatchTooLarge) => {
            Fault::new(413, lazuli_amqp::condition::MESSAGE_SIZE, said())
        }
        Some(LogReason::LayoutChanged) => Fault::new(503, "com.microsoft:server-busy", said()),
        Some(LogReason::ProducerFenced) => Fault::new(409, PRODUCER_EPOCH_STOLEN, said()),
        Some(LogReason::NotCoordinator) => Fault::new(409, PARTITION_NOT_OWNED, said()),
        Some(LogReason::OutOfSequence | LogReason::DuplicateSequence) => {
            Fault::new(409, OUT_OF_SEQUENCE, said())
        }
        None => from_core(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_hubs_are_told_from_others() {
        let parse = |path: &str| HubAddress::parse(path).map(|it| (it.hub, it.group, it.partition));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parse("h"), Some(("h".into(), None, None)));
        assert_eq!(parse("h/Partitions/3"), Some(("h".into(), None, some("3"))));
        let reader = parse("h/consumergroups/$Default/partitions/0");
        assert_eq!(reader, Some(("h".into(), some("$Default"), some("0"))));
        for path in ["", "t/Subscriptions/s", "q/$DeadLetterQueue", "h/Publishers/p"] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
