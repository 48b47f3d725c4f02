//! Change records: that a key was written or deleted, in the order of its partition. Recorded only while the container's
//! policies ask for it, in the same commit as the write itself.
//!
//! Numbers are given out before the commit, by all lanes of a shard, so those of different partitions become visible out of
//! order. A position that a reader of one partition goes on from may therefore pass the rows of others only up to the
//! number that this partition itself has committed, as read in the same snapshot ([`horizon`]): all later writes of the
//! partition have greater numbers.
//!
//! Key: `container | CHANGES | LSN (8) | space (1) | route | row key`; value: `operation (1) | route length (2)`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::layout::{self, PREFIX_BYTES, Space};
use lazuli_shardmap::{ContainerId, PartitionId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Result, Write, after_key};

use crate::engine::Engine;
use crate::item::{ItemKey, keys_of};
use crate::lsn::Lsn;
use crate::stats::Counts;
use crate::tx::Tx;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemOperation {
    Put,
    Delete,
}

/// One write that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemChange {
    pub lsn: Lsn,
    pub operation: ItemOperation,
    pub key: ItemKey,
}

/// Changes that are forgotten in one commit.
const TRIM_KEYS: usize = 1_000;
/// Bytes of `LSN | space` behind the prefix.
const HEAD_BYTES: usize = 9;

/// A row of the space `CHANGES`, or of `MOVING`, which has the same form.
pub(crate) fn record(space: Space, lsn: Lsn, key: &ItemKey, operation: ItemOperation) -> Write {
    let rest = &key.bytes()[PREFIX_BYTES..];
    let mut bytes = layout::start(key.container(), space, HEAD_BYTES + rest.len());
    bytes.put_u64(lsn.0);
    bytes.put_u8(key.space().0);
    bytes.put_slice(rest);
    let mut value = BytesMut::with_capacity(3);
    value.put_u8(match operation {
        ItemOperation::Put => 1,
        ItemOperation::Delete => 2,
    });
    value.put_slice(&crate::tx::route_length(key));
    Write::Put(bytes.freeze(), value.freeze())
}

impl Tx<'_> {
    /// Forgets that an item was written or deleted by the write with this number, for data models whose readers want only
    /// the last change of each item.
    pub fn forget_change(&mut self, key: &ItemKey, lsn: Lsn) -> Result<()> {
        let record = record(Space::CHANGES, lsn, key, ItemOperation::Put);
        self.write(Write::Delete(record.key().clone()))
    }
}

/// The sort key of a change behind the prefix: where reading goes on.
pub(crate) fn position_of(key: &Bytes) -> Bytes {
    key.slice(PREFIX_BYTES..)
}

/// How far a reader of one partition may go in a space that it shares with others: the snapshot shows all writes of the
/// partition up to this number, and every later one has a greater number. None if nothing was ever written in it.
pub(crate) async fn horizon(reader: &dyn Reader, partition: PartitionId) -> Result<Option<Lsn>> {
    Ok(Counts::read(reader, partition).await?.and_then(|counts| counts.settled()))
}

/// The rows behind a position, up to a horizon; an empty position is the beginning.
pub(crate) fn rows_after(
    container: ContainerId,
    space: Space,
    position: &Bytes,
    horizon: Lsn,
) -> KeyRange {
    let start = if position.is_empty() { Bytes::new() } else { after_key(position) };
    let end = Bytes::copy_from_slice(&(horizon.0 + 1).to_be_bytes());
    keys_of(container, space, &KeyRange::new(start, Some(end)))
}

pub(crate) fn decode(key: &Bytes, mut value: Bytes) -> Result<ItemChange> {
    let damaged = || Error::corrupt("bad-change", "a change record does not decode");
    let (container, _, mut rest) = layout::split(key).ok_or_else(damaged)?;
    if rest.len() < HEAD_BYTES || value.len() != 3 {
        return Err(damaged());
    }
    let (lsn, space) = (Lsn(rest.get_u64()), Space(rest.get_u8()));
    let operation = match value.get_u8() {
        1 => ItemOperation::Put,
        2 => ItemOperation::Delete,
        _ => return Err(damaged()),
    };
    let (route, row) = rest.split_at_checked(value.get_u16().into()).ok_or_else(damaged)?;
    Ok(ItemChange { lsn, operation, key: ItemKey::new(container, space, route, row) })
}

/// Changes of one partition, in its order.
#[derive(Debug)]
pub struct ChangePage {
    pub changes: Vec<ItemChange>,
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
        let routes = view.routes().clone();
        let mut page =
            ChangePage { changes: Vec::new(), position: after.clone(), more: false, routes };
        let Some(horizon) = horizon(&*view.reader, view.partition()).await? else {
            // Figures of a former version may lack the number. Counting gives it one.
            self.count_soon(view.partition(), view.shard);
            return Ok(page);
        };
        let rows = rows_after(container, Space::CHANGES, after, horizon);
        if rows.is_empty() {
            return Ok(page);
        }
        let found = view.reader.scan(&rows, Direction::Forward, limit).await?;
        page.more = found.more;
        for (key, value) in found.items {
            page.position = position_of(&key);
            let change = decode(&key, value)?;
            // The space holds the changes of all partitions of the container on this shard.
            if page.routes.contains(change.key.route()) {
                page.changes.push(change);
            }
        }
        Ok(page)
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
        let Write::Put(at, value) = record(Space::CHANGES, Lsn(42), &key, ItemOperation::Delete)
        else {
            panic!("a record is a put")
        };
        let change = decode(&at, value.clone()).unwrap();
        assert_eq!(change, ItemChange { lsn: Lsn(42), operation: ItemOperation::Delete, key });
        for length in 0..at.len() - 3 {
            assert!(decode(&at.slice(..length), value.clone()).is_err(), "{length}");
        }
        assert!(decode(&at, Bytes::from_static(&[3, 0, 5])).is_err());
    }
}
