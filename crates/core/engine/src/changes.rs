//! Change records: that a key was written or deleted, in the order of its partition. Recorded only while the container's
//! policies ask for it, in the same commit as the write itself.
//!
//! Key: `container | CHANGES | LSN (8) | space (1) | route | row key`; value: `operation (1) | route length (2)`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::layout::{self, PREFIX_BYTES, Space};
use lazuli_store::{Error, KeyRange, PageLimit, Result, Write, after_key};

use crate::engine::Engine;
use crate::item::ItemKey;
use crate::lsn::Lsn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Put,
    Delete,
}

/// One write that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub lsn: Lsn,
    pub operation: Operation,
    pub key: ItemKey,
}

/// Changes that are forgotten in one commit.
const TRIM_KEYS: usize = 1_000;
/// Bytes of `LSN | space` behind the prefix.
const HEAD_BYTES: usize = 9;

/// A row of the space `CHANGES`, or of `MOVING`, which has the same form.
pub(crate) fn record(space: Space, lsn: Lsn, key: &ItemKey, operation: Operation) -> Write {
    let rest = &key.bytes()[PREFIX_BYTES..];
    let mut bytes = layout::start(key.container(), space, HEAD_BYTES + rest.len());
    bytes.put_u64(lsn.0);
    bytes.put_u8(key.space().0);
    bytes.put_slice(rest);
    let mut value = BytesMut::with_capacity(3);
    value.put_u8(match operation {
        Operation::Put => 1,
        Operation::Delete => 2,
    });
    value.put_slice(&crate::tx::route_length(key));
    Write::Put(bytes.freeze(), value.freeze())
}

/// The sort key of a change behind the prefix: where reading goes on.
pub(crate) fn position(key: &Bytes) -> Bytes {
    key.slice(PREFIX_BYTES..)
}

pub(crate) fn decode(key: &Bytes, mut value: Bytes) -> Result<Change> {
    let damaged = || Error::corrupt("bad-change", "a change record does not decode");
    let (container, _, mut rest) = layout::split(key).ok_or_else(damaged)?;
    if rest.len() < HEAD_BYTES || value.len() != 3 {
        return Err(damaged());
    }
    let (lsn, space) = (Lsn(rest.get_u64()), Space(rest.get_u8()));
    let operation = match value.get_u8() {
        1 => Operation::Put,
        2 => Operation::Delete,
        _ => return Err(damaged()),
    };
    let (route, row) = rest.split_at_checked(value.get_u16().into()).ok_or_else(damaged)?;
    Ok(Change { lsn, operation, key: ItemKey::new(container, space, route, row) })
}

/// Changes of one partition, in its order.
#[derive(Debug)]
pub struct ChangePage {
    pub changes: Vec<Change>,
    /// After which the next page goes on, also when this one is empty. It stays good across splits, merges and restarts.
    pub position: Bytes,
    /// Whether there is more already.
    pub more: bool,
    /// The routes that the partition held: the changes are theirs.
    pub routes: KeyRange,
}

impl Engine {
    /// What was written in the partition that holds the route, after a position; an empty one is the beginning.
    pub async fn changes(
        &self,
        container: ContainerId,
        route: &[u8],
        after: &Bytes,
        limit: PageLimit,
    ) -> Result<ChangePage> {
        let view = self.read(container, route, 1).await?;
        let start = if after.is_empty() { Bytes::new() } else { after_key(after) };
        let range = KeyRange::new(start, None);
        let page = view.scan_by_time(Space::CHANGES, &range, limit).await?;
        let last = page.items.last().map_or(after.clone(), |(key, _)| position(key));
        let mut changes = Vec::new();
        for (key, value) in page.items {
            let change = decode(&key, value)?;
            // The space holds the changes of all partitions of the container on this shard.
            if view.routes().contains(change.key.route()) {
                changes.push(change);
            }
        }
        let routes = view.routes().clone();
        Ok(ChangePage { changes, position: last, more: page.more, routes })
    }

    /// Forgets the changes before a number, on every shard.
    pub async fn trim_changes(&self, container: ContainerId, before: Lsn) -> Result<()> {
        let end = layout::key(container, Space::CHANGES, &before.0.to_be_bytes());
        let old = KeyRange::new(layout::prefix(container, Space::CHANGES), Some(end));
        for shard in self.shards.all() {
            while shard.store.delete_range(&old, TRIM_KEYS).await? == TRIM_KEYS {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazuli_shardmap::ContainerId;

    #[test]
    fn a_change_survives_its_record_and_damage_is_corrupt() {
        let key = ItemKey::new(ContainerId(3), Space::ITEMS, b"route", b"row");
        let Write::Put(at, value) = record(Space::CHANGES, Lsn(42), &key, Operation::Delete) else {
            panic!("a record is a put")
        };
        let change = decode(&at, value.clone()).unwrap();
        assert_eq!(change, Change { lsn: Lsn(42), operation: Operation::Delete, key });
        for length in 0..at.len() - 3 {
            assert!(decode(&at.slice(..length), value.clone()).is_err(), "{length}");
        }
        assert!(decode(&at, Bytes::from_static(&[3, 0, 5])).is_err());
    }
}
