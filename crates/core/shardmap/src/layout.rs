//! The first bytes of every key: `container id (4) | space (1) | …`. `docs/formats/keys.md` draws what follows.
//!
//! Key-ordered spaces go on with `route | row key`, where the route is the encoded partition key, behind its hash where
//! the map is a hash map. Time-ordered spaces go on with `LSN or time (8) | route | …`. So a partition is always a filter
//! on routes, whatever the space.

use bytes::{BufMut, Bytes, BytesMut};

use crate::ContainerId;

/// One byte that says what a key is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Space(pub u8);

impl Space {
    // The system container of a shard: what it knows about itself.
    /// Which shard this is, and the format of its keys.
    pub const IDENTITY: Self = Self(0x01);
    /// `partition id (8) | epoch (8)`: a row of the local map, the guard of every write.
    pub const LOCAL_MAP: Self = Self(0x02);
    /// `operation number (8)`: changes of the local map that were applied and that the catalog may not have finished.
    pub const APPLIED: Self = Self(0x03);
    /// `partition id (8)`: items, bytes and last LSN of a partition.
    pub const STATS: Self = Self(0x04);
    /// `name | key`: this shard's copy of reference data.
    pub const REFERENCE: Self = Self(0x05);
    /// `version (8)`: the head of the local map, the guard of every change of it.
    pub const LOCAL_HEAD: Self = Self(0x07);
    /// `garbage id (8)`: data that no partition of this shard owns any more. The guard of its deletion.
    pub const GARBAGE: Self = Self(0x08);
    /// `move (8) | job epoch (8)`: a partition that is on its way to this shard. The guard of what is copied.
    pub const ARRIVALS: Self = Self(0x09);
    /// `move (8)`: how far a partition on its way has come.
    pub const PROGRESS: Self = Self(0x0a);
    /// The last start that the shard took part in: see `lineage`.
    pub const STANDING: Self = Self(0x0b);
    /// Copies of rows of the catalog: see `mirror`.
    pub const COPIES: Self = Self(0x0c);

    // Every other container: key-ordered spaces.
    /// The items themselves. Shapes number further key-ordered spaces up to 0x3f.
    pub const ITEMS: Self = Self(0x10);

    /// `route | job id (16) | step (4)`: that a step of a multi-step job was made here.
    pub const MARKS: Self = Self(0x11);

    // The shape `bus`, 0x18 to 0x1f.
    /// `route | kind (1) | …`: what a fragment knows of its entity, and the states of its lines.
    pub const BUS_ROWS: Self = Self(0x18);
    /// `route | line (5) | number (8)`: a message.
    pub const BUS_MESSAGES: Self = Self(0x19);
    /// `route | line (5) | number (8)`: that a message was delivered, is locked or deferred.
    pub const BUS_DELIVERIES: Self = Self(0x1a);
    /// `route | number (8)`: what a message says, if it is long.
    pub const BUS_BODIES: Self = Self(0x1b);
    /// `route | line (5) | kind (1) | …`: messages that came back, messages of sessions, sessions that wait.
    pub const BUS_ORDER: Self = Self(0x1c);
    /// `route | line (5) | session id`: a session.
    pub const BUS_SESSIONS: Self = Self(0x1d);
    /// `route | message id`: that a message of this id was sent within the window.
    pub const BUS_SEEN: Self = Self(0x1e);
    /// `route | time in ms (8) | kind (1) | line (5) | number (8)`: what is to be done when.
    pub const BUS_TIMERS: Self = Self(0x1f);

    // The shape `blob`, whose items are the blobs as they are now.
    /// `route | time (8) | kind (1)`: what a blob was: snapshots, versions, what was deleted.
    pub const BLOB_PAST: Self = Self(0x20);
    /// `route | block id`: blocks that no commit has named yet.
    pub const BLOB_BLOCKS: Self = Self(0x21);
    /// `route | content (8) | offset (8)`: pieces of contents.
    pub const BLOB_PIECES: Self = Self(0x22);
    /// `route | file (16)`: files that more than one piece names, and `route | content (8)`: contents with several owners.
    pub const BLOB_SHARED: Self = Self(0x23);
    /// `route | time (8) | number (4)`: contents and files that nothing names any more.
    pub const BLOB_GARBAGE: Self = Self(0x24);

    // The shape `queue`, 0x28 to 0x2f.
    /// `route`: what a queue is called and what is kept about it.
    pub const QUEUES: Self = Self(0x28);
    /// `route`: where a queue's messages begin, and how many there are.
    pub const QUEUE_STATES: Self = Self(0x29);
    /// `route | line (8) | number (8)`: a message.
    pub const QUEUE_MESSAGES: Self = Self(0x2a);
    /// `route | line (8) | time of visibility in ms (8) | number (8)`: the order in which messages are received.
    pub const QUEUE_ORDER: Self = Self(0x2b);
    /// `route | line (8) | number (8)`: what a message says, if it is long.
    pub const QUEUE_CONTENTS: Self = Self(0x2c);
    /// `route | line (8)`: a line of messages that is being deleted.
    pub const QUEUE_DOOMED: Self = Self(0x2d);

    // The shape `document`, whose items are the documents as they are now.
    /// `route | id | LSN (8)`: what a document was, while versions are kept.
    pub const DOCUMENT_PAST: Self = Self(0x30);

    // The shape `log`, 0x38 to 0x3b.
    /// `route`: where a log begins and ends.
    pub const LOG_STATES: Self = Self(0x38);
    /// `route | offset of the first record (8)`: a batch of records.
    pub const LOG_BATCHES: Self = Self(0x39);
    /// `route | producer id (8)`: the last batches of an idempotent producer.
    pub const LOG_PRODUCERS: Self = Self(0x3a);

    /// Every key-ordered space in use: what is counted, scanned and moved with a partition.
    pub const KEY_ORDERED: &[Self] = &[
        Self::ITEMS,
        Self::MARKS,
        Self::BUS_ROWS,
        Self::BUS_MESSAGES,
        Self::BUS_DELIVERIES,
        Self::BUS_BODIES,
        Self::BUS_ORDER,
        Self::BUS_SESSIONS,
        Self::BUS_SEEN,
        Self::BUS_TIMERS,
        Self::BLOB_PAST,
        Self::BLOB_BLOCKS,
        Self::BLOB_PIECES,
        Self::BLOB_SHARED,
        Self::BLOB_GARBAGE,
        Self::QUEUES,
        Self::QUEUE_STATES,
        Self::QUEUE_MESSAGES,
        Self::QUEUE_ORDER,
        Self::QUEUE_CONTENTS,
        Self::QUEUE_DOOMED,
        Self::DOCUMENT_PAST,
        Self::LOG_STATES,
        Self::LOG_BATCHES,
        Self::LOG_PRODUCERS,
    ];

    /// Spaces whose items have others hanging on them: once expired, they are deleted only by the shape that keeps them.
    pub const TENDED: &[Self] = &[
        Self::QUEUE_MESSAGES,
        Self::QUEUE_DOOMED,
        Self::DOCUMENT_PAST,
        Self::BUS_MESSAGES,
        Self::BUS_TIMERS,
    ];

    // Every other container: time-ordered spaces.
    /// `LSN (8) | space (1) | route | row key`: changes, recorded while the container's policies ask for it.
    pub const CHANGES: Self = Self(0x40);
    /// `time in ms (8) | space (1) | route | row key`: what expires when.
    pub const EXPIRY: Self = Self(0x41);
    /// `LSN (8) | space (1) | route | row key`: what was written in a partition while it is on its way to another shard.
    pub const MOVING: Self = Self(0x42);

    // Every other container: what is ordered by entries of indexes.
    /// `entry | route | row key`: entries that follow from items.
    pub const INDEX: Self = Self(0x43);

    /// Every time-ordered space: what is filtered by route when a partition goes.
    pub const TIME_ORDERED: &[Self] = &[Self::CHANGES, Self::EXPIRY, Self::MOVING];
}

/// Bytes of `container | space` in front of every key.
pub const PREFIX_BYTES: usize = 5;

/// The first bytes of all keys of one space of one container.
pub fn prefix(container: ContainerId, space: Space) -> Bytes {
    start(container, space, 0).freeze()
}

/// A key begun: the prefix, with room for `more` bytes.
pub fn start(container: ContainerId, space: Space, more: usize) -> BytesMut {
    let mut key = BytesMut::with_capacity(PREFIX_BYTES + more);
    key.put_u32(container.0);
    key.put_u8(space.0);
    key
}

/// A key of `prefix | rest`.
pub fn key(container: ContainerId, space: Space, rest: &[u8]) -> Bytes {
    let mut key = start(container, space, rest.len());
    key.put_slice(rest);
    key.freeze()
}

/// Splits a key into container, space and rest; none if it is shorter than a prefix.
pub fn split(key: &[u8]) -> Option<(ContainerId, Space, &[u8])> {
    let (container, rest) = key.split_first_chunk::<4>()?;
    let (space, rest) = rest.split_first()?;
    Some((ContainerId(u32::from_be_bytes(*container)), Space(*space), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_splits_into_what_it_was_made_of() {
        let made = key(ContainerId(7), Space::ITEMS, b"rest");
        assert_eq!(split(&made), Some((ContainerId(7), Space::ITEMS, &b"rest"[..])));
        assert!(made.starts_with(&prefix(ContainerId(7), Space::ITEMS)));
        assert_eq!(split(b"abcd"), None);
    }
}
