//! Change records: that a key was written or deleted, in the order of its partition. Recorded only while the container's
//! policies ask for it, in the same commit as the write itself.
//!
//! Numbers are given out before the commit, by all lanes of a shard, so those of different partitions become visible out of
//! order. A position that a reader of one partition goes on from may therefore pass the rows of others only up to the
//! number that this partition itself has committed, as read in the same snapshot ([`Horizon`]): all later writes of the
//! partition have greater numbers.
//!
//! Key: `container | CHANGES | LSN (8) | space (1) | route | row key`; value: `operation (1) | route length (2)`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::layout::{self, PREFIX_BYTES, Space};
use lazuli_shardmap::{ContainerId, PartitionId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Result, Write, after_key};

use crate::engine::Engine;
use crate::item::{ItemKey, keys_of};
use crate::join::yield_now;
use crate::lsn::Lsn;
use crate::stats::Counts;

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
pub(crate) fn position_of(key: &Bytes) -> Bytes {
    key.slice(PREFIX_BYTES..)
}

/// How far a reader of one partition may go in a space that it shares with others, in one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Horizon {
    /// The snapshot shows all writes of the partition up to this number, and every later one has a greater number.
    Settled(Lsn),
    /// The partition has not been written to under its id yet, so only its own rows, which those before it wrote, tell how
    /// far it has come.
    OwnRows,
}

impl Horizon {
    pub(crate) async fn of(snapshot: &dyn Reader, partition: PartitionId) -> Result<Self> {
        let counts = Counts::read(snapshot, partition).await?;
        Ok(counts.and_then(|counts| counts.settled()).map_or(Self::OwnRows, Self::Settled))
    }

    /// Whether a position may be that of another partition's row, if it is within [`Horizon::rows_after`].
    pub(crate) fn covers_rows_of_others(self) -> bool {
        matches!(self, Self::Settled(_))
    }

    /// The rows behind a position that may hold something of the partition; an empty position is the beginning.
    pub(crate) fn rows_after(
        self,
        container: ContainerId,
        space: Space,
        position: &Bytes,
    ) -> KeyRange {
        let start = if position.is_empty() { Bytes::new() } else { after_key(position) };
        let end = match self {
            Self::Settled(last) => Some(Bytes::copy_from_slice(&(last.0 + 1).to_be_bytes())),
            Self::OwnRows => None,
        };
        keys_of(container, space, &KeyRange::new(start, end))
    }
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
        let routes = view.routes().clone();
        let horizon = Horizon::of(&*view.reader, view.partition()).await?;
        if horizon == Horizon::OwnRows {
            self.count_soon(view.partition(), view.shard);
        }
        let (mut position, mut changes) = (after.clone(), Vec::new());
        let mut rows = horizon.rows_after(container, Space::CHANGES, after);
        let mut more = !rows.is_empty();
        while more && changes.is_empty() {
            let page = view.reader.scan(&rows, Direction::Forward, limit).await?;
            more = page.more;
            let Some((last, _)) = page.items.last() else { break };
            rows.start = after_key(last);
            if horizon.covers_rows_of_others() {
                position = position_of(last);
            }
            for (key, value) in page.items {
                let change = decode(&key, value)?;
                // The space holds the changes of all partitions of the container on this shard.
                if routes.contains(change.key.route()) {
                    position = position.max(position_of(&key));
                    changes.push(change);
                }
            }
            if horizon.covers_rows_of_others() {
                break;
            }
            yield_now().await;
        }
        Ok(ChangePage { changes, position, more, routes })
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
