//! The keys of the catalog's store: one byte that says what the row is, then ids and routes. `docs/formats/catalog.md`
//! draws them all.

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_env::Id;
use lazuli_store::KeyRange;

use crate::{ContainerId, PartitionId, ShardId};

pub(super) const IDENTITY: u8 = 0x01;
pub(super) const HEAD: u8 = 0x02;
pub(super) const LOG: u8 = 0x03;
pub(super) const SHARD: u8 = 0x10;
pub(super) const SHARD_NAME: u8 = 0x11;
pub(super) const SHARD_LOCATION: u8 = 0x12;
pub(super) const CONTAINER: u8 = 0x20;
pub(super) const CONTAINER_NAME: u8 = 0x21;
pub(super) const DELETING: u8 = 0x22;
pub(super) const ROUTE: u8 = 0x30;
pub(super) const PARTITION: u8 = 0x31;
pub(super) const ON_SHARD: u8 = 0x32;
pub(super) const COUNT: u8 = 0x33;
pub(super) const LOCKED: u8 = 0x34;
pub(super) const OPERATION: u8 = 0x40;
pub(super) const CLAIM: u8 = 0x41;
pub(super) const GARBAGE: u8 = 0x42;
pub(super) const PENDING: u8 = 0x43;
pub(super) const MOVE: u8 = 0x44;
pub(super) const RECORD_HEAD: u8 = 0x50;
pub(super) const RECORD: u8 = 0x51;
pub(super) const RECORD_LOG: u8 = 0x52;
pub(super) const NODE: u8 = 0x60;
pub(super) const LEASE: u8 = 0x61;
pub(super) const TOLD: u8 = 0x62;

fn key(space: u8, parts: &[&[u8]]) -> Bytes {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut key = BytesMut::with_capacity(1 + length);
    key.put_u8(space);
    for part in parts {
        key.put_slice(part);
    }
    key.freeze()
}

/// All rows of one space.
pub(super) fn space(space: u8) -> Bytes {
    key(space, &[])
}

/// `HEAD | version`, `LOG | version`, `OPERATION | number`, `MOVE | number`, `RECORD_HEAD | version`,
/// `RECORD_LOG | version`.
pub(super) fn numbered(space: u8, number: u64) -> Bytes {
    key(space, &[&number.to_be_bytes()])
}

/// The number at the end of a key that `numbered` made.
pub(super) fn number_of(key: &[u8]) -> Option<u64> {
    key.split_last_chunk::<8>().map(|(_, number)| u64::from_be_bytes(*number))
}

/// `SHARD_NAME | name` and the like.
pub(super) fn named(space: u8, name: &str) -> Bytes {
    key(space, &[name.as_bytes()])
}

pub(super) fn shard(id: ShardId) -> Bytes {
    key(SHARD, &[&id.0.to_be_bytes()])
}

/// `CONTAINER | id`, `DELETING | id`, and the prefixes `ROUTE | id`, `CLAIM | id`.
pub(super) fn of_container(space: u8, id: ContainerId) -> Bytes {
    key(space, &[&id.0.to_be_bytes()])
}

/// `ROUTE | container | first route` or `CLAIM | container | first route`.
pub(super) fn routed(space: u8, container: ContainerId, route: &[u8]) -> Bytes {
    key(space, &[&container.0.to_be_bytes(), route])
}

pub(super) fn partition(id: PartitionId) -> Bytes {
    key(PARTITION, &[&id.0.to_be_bytes()])
}

/// `ON_SHARD | shard | container | first route`, or a prefix of it.
pub(super) fn on_shard(shard: ShardId, rest: Option<(ContainerId, &[u8])>) -> Bytes {
    let shard = shard.0.to_be_bytes();
    match rest {
        Some((container, route)) => key(ON_SHARD, &[&shard, &container.0.to_be_bytes(), route]),
        None => key(ON_SHARD, &[&shard]),
    }
}

/// The container and first route of an `ON_SHARD` or `LOCKED` key, behind `skip` bytes.
pub(super) fn place_of(key: &[u8], skip: usize) -> Option<(ContainerId, &[u8])> {
    let (container, route) = key.get(skip..)?.split_first_chunk::<4>()?;
    Some((ContainerId(u32::from_be_bytes(*container)), route))
}

/// Bytes before the container in an `ON_SHARD` key.
pub(super) const ON_SHARD_SKIP: usize = 1 + 4;
/// Bytes before the container in a `LOCKED` key.
pub(super) const LOCKED_SKIP: usize = 1 + 16;

pub(super) fn count(shard: ShardId, container: Option<ContainerId>) -> Bytes {
    let shard = shard.0.to_be_bytes();
    match container {
        Some(container) => key(COUNT, &[&shard, &container.0.to_be_bytes()]),
        None => key(COUNT, &[&shard]),
    }
}

/// `LOCKED | token | container | first route`, or a prefix of it.
pub(super) fn locked(token: Id, container: ContainerId, route: &[u8]) -> Bytes {
    key(LOCKED, &[&token.to_bytes(), &container.0.to_be_bytes(), route])
}

/// `GARBAGE | container | shard | first route`, or a prefix of it.
pub(super) fn garbage(container: ContainerId, shard: ShardId, route: &[u8]) -> Bytes {
    key(GARBAGE, &[&container.0.to_be_bytes(), &shard.0.to_be_bytes(), route])
}

/// `RECORD | kind | key`.
pub(super) fn record(kind: u8, rest: &[u8]) -> Bytes {
    key(RECORD, &[&[kind], rest])
}

/// `NODE | id`.
pub(super) fn node(id: Id) -> Bytes {
    key(NODE, &[&id.to_bytes()])
}

pub(super) fn node_id(key: &[u8]) -> Option<Id> {
    key.get(1..)?.try_into().ok().map(Id::from_bytes)
}

/// `TOLD | id of a node | number`.
pub(super) fn told(node: Id, number: u64) -> Bytes {
    key(TOLD, &[&node.to_bytes(), &number.to_be_bytes()])
}

/// Everything that a node has told.
pub(super) fn told_by(node: Id) -> KeyRange {
    KeyRange::prefix(key(TOLD, &[&node.to_bytes()]))
}

/// `LEASE | length of the work (1) | work | epoch`. With the length in front no work's prefix covers another's.
pub(super) fn lease(work: &[u8], epoch: u64) -> Bytes {
    key(LEASE, &[&[work.len() as u8], work, &epoch.to_be_bytes()])
}

pub(super) fn lease_prefix(work: &[u8]) -> Bytes {
    key(LEASE, &[&[work.len() as u8], work])
}

/// The work and the epoch of a key that `lease` made.
pub(super) fn lease_parts(key: &[u8]) -> Option<(&[u8], u64)> {
    let (length, rest) = key.get(1..)?.split_first()?;
    let (work, epoch) = rest.split_at_checked(usize::from(*length))?;
    Some((work, u64::from_be_bytes(epoch.try_into().ok()?)))
}
