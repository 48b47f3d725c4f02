//! Keys and rows of the local map in the shard's store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{BufMut, Bytes};
use lazuli_env::Id;
use lazuli_store::{
    Direction, Error, KeyRange, Newest, PageLimit, Reader, Result, Store, Write, after_key,
};

use super::{Arrival, Garbage, Identity, LocalChange};
use crate::layout::{self, Space};
use crate::record::{decode, encode, record_fields};
use crate::{ContainerId, Epoch, MapReason, Partition, PartitionId, ShardId};

/// The format of a shard's keys and rows. A shard of a newer one is refused.
pub const SHARD_FORMAT: u32 = 1;

pub(super) struct IdentityRow {
    pub(super) format: u32,
    pub(super) catalog: Id,
    pub(super) shard: ShardId,
}

pub(super) struct HeadRow {
    pub(super) finished_below: u64,
}

/// The rows in memory, all of one version of the map.
pub(super) struct Rows {
    /// The number in the key of the head row.
    pub(super) version: u64,
    pub(super) by_id: BTreeMap<PartitionId, Partition>,
    /// What is on its way here, by the number of its move.
    pub(super) arrivals: BTreeMap<u64, Arrival>,
    /// The highest number of an operation that this shard has taken.
    pub(super) seen: u64,
}

impl Rows {
    pub(super) fn is_arriving(&self, (number, epoch): &(u64, u64)) -> bool {
        self.arrivals.get(number).is_some_and(|arrival| arrival.epoch == *epoch)
    }

    /// The partitions that end with this change, and those that it makes of them.
    pub(super) fn heirs<'a>(
        &self,
        change: &'a LocalChange,
    ) -> (Vec<Partition>, Vec<&'a Partition>) {
        let is_new = |put: &&Partition| !self.by_id.contains_key(&put.id);
        let children: Vec<_> = change.puts.iter().filter(is_new).collect();
        let ends = |(id, _): &&(PartitionId, Epoch)| change.puts.iter().all(|put| put.id != *id);
        let is_parent = |row: &&Partition| {
            let is_of = |child: &&Partition| {
                child.container == row.container && child.routes.overlaps(&row.routes)
            };
            children.iter().any(is_of)
        };
        let ended = change.drops.iter().filter(ends).filter_map(|(id, _)| self.by_id.get(id));
        (ended.filter(is_parent).cloned().collect(), children)
    }

    /// The rows that the change takes away from this shard. They must be there, unless it is a repair.
    pub(super) fn dropped(
        &self,
        change: &LocalChange,
        shard: ShardId,
    ) -> Result<Vec<(PartitionId, Epoch)>> {
        let ids = change.puts.iter().map(|put| put.id);
        let rows = &self.by_id;
        if change.forced {
            let ids = ids.chain(change.drops.iter().map(|(id, _)| *id));
            return Ok(ids.filter_map(|id| rows.get(&id)).map(|row| (row.id, row.epoch)).collect());
        }
        let differs = |message| Err(Error::precondition(MapReason::LocalMapDiffers, message));
        let operation = change.operation;
        if let Some((number, epoch)) = change.arrived.iter().find(|row| !self.is_arriving(row)) {
            return differs(format!(
                "operation {operation} does not find move {number} at epoch {epoch} on shard {shard}"
            ));
        }
        let present = |(id, epoch): &(PartitionId, Epoch)| {
            rows.get(id).is_some_and(|row| row.epoch == *epoch)
        };
        let replaced: BTreeSet<PartitionId> = change.drops.iter().map(|(id, _)| *id).collect();
        let missing = change.drops.iter().find(|row| !present(row)).map(|(id, _)| *id);
        let extra = ids.filter(|id| rows.contains_key(id)).find(|id| !replaced.contains(id));
        match missing.or(extra) {
            None => Ok(change.drops.clone()),
            Some(partition) => differs(format!(
                "operation {operation} does not fit partition {partition} as shard {shard} has it"
            )),
        }
    }

    /// What the change makes garbage. What has come by an arrival that is over already, which only a repair may name, is
    /// not its to give away.
    pub(super) fn garbage_of<'a>(&self, change: &'a LocalChange) -> &'a [Garbage] {
        let is_over = change.arrived.iter().any(|row| !self.is_arriving(row));
        if is_over { &[] } else { &change.garbage }
    }
}

record_fields!(IdentityRow { format, catalog, shard });
record_fields!(HeadRow { finished_below });

pub(super) fn identity_key() -> Bytes {
    layout::prefix(ContainerId::SYSTEM, Space::IDENTITY)
}

pub(super) fn head_key(version: u64) -> Bytes {
    layout::key(ContainerId::SYSTEM, Space::LOCAL_HEAD, &version.to_be_bytes())
}

pub(super) fn applied_key(operation: u64) -> Bytes {
    layout::key(ContainerId::SYSTEM, Space::APPLIED, &operation.to_be_bytes())
}

pub(super) fn garbage_key(id: u64) -> Bytes {
    layout::key(ContainerId::SYSTEM, Space::GARBAGE, &id.to_be_bytes())
}

pub(super) fn arrival_key(number: u64, epoch: u64) -> Bytes {
    let mut key = layout::start(ContainerId::SYSTEM, Space::ARRIVALS, 16);
    key.put_u64(number);
    key.put_u64(epoch);
    key.freeze()
}

pub(super) fn progress_key(number: u64) -> Bytes {
    layout::key(ContainerId::SYSTEM, Space::PROGRESS, &number.to_be_bytes())
}

pub(super) fn row_key(partition: PartitionId, epoch: Epoch) -> Bytes {
    let mut key = layout::start(ContainerId::SYSTEM, Space::LOCAL_MAP, 16);
    key.put_u64(partition.0);
    key.put_u64(epoch.0);
    key.freeze()
}

pub(super) fn wrong_shard(found: Identity, meant: Identity) -> Error {
    let name = |it: Identity| format!("shard {} of catalog {}", it.shard, it.catalog);
    let message = format!("the store is {}, not {}", name(found), name(meant));
    Error::precondition("wrong-shard", message)
}

pub(super) async fn read_identity(reader: &dyn Reader) -> Result<Option<Identity>> {
    let Some(row) = reader.get(&identity_key()).await? else { return Ok(None) };
    let row: IdentityRow = decode(row)?;
    if row.format > SHARD_FORMAT {
        let message =
            format!("a shard of format {}; this version knows {SHARD_FORMAT}", row.format);
        return Err(Error::invalid("format-unknown", message));
    }
    Ok(Some(Identity { catalog: row.catalog, shard: row.shard }))
}

/// The one live row of the head. Walks backward, because older versions may still be in the way of a forward scan.
async fn read_head(reader: &dyn Reader) -> Result<(u64, HeadRow)> {
    let range = KeyRange::prefix(layout::prefix(ContainerId::SYSTEM, Space::LOCAL_HEAD));
    let page = reader.scan(&range, Direction::Backward, PageLimit::items(1)).await?;
    let lost = || Error::corrupt("row-corrupt", "the shard's local map has no head");
    let (key, row) = page.items.into_iter().next().ok_or_else(lost)?;
    let (_, version) = key.split_last_chunk::<8>().ok_or_else(lost)?;
    Ok((u64::from_be_bytes(*version), decode(row)?))
}

/// The row of the head at this version, which is a guard of the transaction.
pub(super) async fn read_head_at(reader: &dyn Reader, version: u64) -> Result<HeadRow> {
    let gone = || Error::moved("the local map has changed meanwhile");
    decode(reader.get(&head_key(version)).await?.ok_or_else(gone)?)
}

/// Reads the map page by page. The head row of its version is the guard of every page: fails with `Moved` if the map changes
/// meanwhile.
pub(super) async fn read_rows(store: &dyn Store) -> Result<Rows> {
    let (version, head) = read_head(&Newest::of(store)).await?;
    let reader = &Newest::guarded(store, vec![head_key(version)]);
    let rows = scan_all(reader, Space::LOCAL_MAP).await?;
    // The rows come in the order of ids, so the tree is built from below, at once.
    let by_id = rows
        .into_iter()
        .map(|(_, row)| decode::<Partition>(row).map(|partition| (partition.id, partition)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let arrivals = scan_all(reader, Space::ARRIVALS).await?;
    let arrivals = arrivals
        .into_iter()
        .map(|(_, row)| decode::<Arrival>(row).map(|arrival| (arrival.number, arrival)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let marks = KeyRange::prefix(layout::prefix(ContainerId::SYSTEM, Space::APPLIED));
    let last = reader.scan(&marks, Direction::Backward, PageLimit::items(1)).await?;
    let last = last.items.first().and_then(|(key, _)| key.split_last_chunk::<8>());
    let seen = last.map_or(0, |(_, number)| u64::from_be_bytes(*number));
    Ok(Rows { version, by_id, arrivals, seen: seen.max(head.finished_below) })
}

/// Arrivals that come and go. How far one has come is forgotten with it, unless it only changes its leader.
pub(super) fn arrival_writes(change: &LocalChange) -> Vec<Write> {
    let mut writes = Vec::new();
    for (number, epoch) in &change.arrived {
        writes.push(Write::Delete(arrival_key(*number, *epoch)));
        if change.arrivals.iter().all(|arrival| arrival.number != *number) {
            writes.push(Write::Delete(progress_key(*number)));
        }
    }
    let rows = change.arrivals.iter();
    writes.extend(rows.map(|row| Write::Put(arrival_key(row.number, row.epoch), encode(row))));
    writes
}

/// Deletions of the marks of operations that are finished everywhere, from where the last change left off.
pub(super) async fn forget_applied(reader: &dyn Reader, from: u64, to: u64) -> Result<Vec<Write>> {
    let marks = KeyRange::new(applied_key(from), Some(applied_key(to)));
    let items = scan(reader, marks).await?;
    Ok(items.into_iter().map(|(key, _)| Write::Delete(key)).collect())
}

/// Deletions of older garbage that the new one includes.
pub(super) async fn forget_garbage(reader: &dyn Reader, new: &[Garbage]) -> Result<Vec<Write>> {
    if new.is_empty() {
        return Ok(vec![]);
    }
    let mut writes = Vec::new();
    for (key, row) in scan_all(reader, Space::GARBAGE).await? {
        let old: Garbage = decode(row)?;
        let includes = |new: &Garbage| {
            new.container == old.container && new.routes.intersect(&old.routes) == old.routes
        };
        if new.iter().any(includes) {
            writes.push(Write::Delete(key));
        }
    }
    Ok(writes)
}

pub(super) async fn scan_all(reader: &dyn Reader, space: Space) -> Result<Vec<(Bytes, Bytes)>> {
    scan(reader, KeyRange::prefix(layout::prefix(ContainerId::SYSTEM, space))).await
}

async fn scan(reader: &dyn Reader, mut range: KeyRange) -> Result<Vec<(Bytes, Bytes)>> {
    let mut items = Vec::new();
    loop {
        let page = reader.scan(&range, Direction::Forward, PageLimit::MAX).await?;
        items.extend(page.items);
        match items.last() {
            Some((key, _)) if page.more => range.start = after_key(key),
            _ => return Ok(items),
        }
    }
}
