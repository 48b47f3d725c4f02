//! Copies of what otherwise only the catalog knows, kept on the shards, so that a catalog that is lost can be made again.
//!
//! With every partition goes a copy of its container, in the commit that gives the partition to the shard. What is changed
//! more rarely, and the records of accounts and services, is copied a few seconds later, to all shards.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_store::{
    Direction, Error, KeyRange, Newest, PageLimit, Reader, Result, Store, Write, after_key,
};

use crate::catalog::{Catalog, kinds};
use crate::layout::{self, Space};
use crate::record::{decode, encode};
use crate::{
    Container, ContainerId, Epoch, LocalChange, Manager, Partition, PartitionId, Shard, ShardId,
};

/// What a copy is of: the byte behind the prefix of its key.
const OF_PARTITION: u8 = 1;
const OF_RECORD: u8 = 2;
const OF_SHARD: u8 = 3;

/// The records that are copied, and how many of each kind.
const KINDS: [u8; 3] = [kinds::ACCOUNT, kinds::SERVICE, kinds::SHARD_DRAINED];
const RECORDS_MAX: usize = 100_000;
/// How many copies are written with one commit.
const COPIES_AT_ONCE: usize = 1_000;

/// A record of the catalog, as a shard knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedRecord {
    pub kind: u8,
    pub key: Bytes,
    pub value: Bytes,
    /// The version that the catalog gave it: the higher one is the newer one.
    pub version: u64,
}

/// All that a shard knows of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// What the catalog says of the shard itself.
    pub shard: Option<Shard>,
    pub containers: BTreeMap<PartitionId, Container>,
    pub records: Vec<CopiedRecord>,
}

fn key(of: u8, rest: &[u8]) -> Bytes {
    let mut key = layout::start(ContainerId::SYSTEM, Space::COPIES, 1 + rest.len());
    key.put_u8(of);
    key.put_slice(rest);
    key.freeze()
}

/// Where the copy of a partition's container is.
fn container_key(partition: PartitionId) -> Bytes {
    key(OF_PARTITION, &partition.0.to_be_bytes())
}

/// The copies that come and go with the partitions of a change.
pub(crate) fn writes(change: &LocalChange, dropped: &[(PartitionId, Epoch)]) -> Vec<Write> {
    let mut writes: Vec<_> =
        dropped.iter().map(|(id, _)| Write::Delete(container_key(*id))).collect();
    if let Some(row) = change.container.as_ref().map(encode) {
        let ids = change.puts.iter().map(|put| put.id);
        writes.extend(ids.map(|id| Write::Put(container_key(id), row.clone())));
    }
    writes
}

fn record_key(kind: u8, name: &[u8]) -> Bytes {
    let mut rest = BytesMut::with_capacity(1 + name.len());
    rest.put_u8(kind);
    rest.put_slice(name);
    key(OF_RECORD, &rest)
}

/// Reads all that a shard knows of its catalog.
pub async fn read(store: &Arc<dyn Store>) -> Result<Copies> {
    let mut copies = Copies::default();
    for (key, row) in scan(&Newest::of(&**store), &[]).await? {
        let Some((_, _, [of, rest @ ..])) = layout::split(&key) else { return Err(unreadable()) };
        match *of {
            OF_SHARD => copies.shard = Some(decode(row)?),
            OF_PARTITION => {
                let id = rest.try_into().map_err(|_| unreadable())?;
                let container: Container = decode(row)?;
                copies.containers.insert(PartitionId(u64::from_be_bytes(id)), container);
            }
            OF_RECORD => {
                let (kind, name) = rest.split_first().ok_or_else(unreadable)?;
                let (version, value) = decode(row)?;
                let (kind, key) = (*kind, Bytes::copy_from_slice(name));
                copies.records.push(CopiedRecord { kind, key, value, version });
            }
            _ => return Err(unreadable()),
        }
    }
    Ok(copies)
}

/// The copies whose keys go on with these bytes behind the prefix.
async fn scan(reader: &dyn Reader, rest: &[u8]) -> Result<BTreeMap<Bytes, Bytes>> {
    let first = layout::key(ContainerId::SYSTEM, Space::COPIES, rest);
    let mut range = KeyRange::prefix(first);
    let mut found = BTreeMap::new();
    loop {
        let page = reader.scan(&range, Direction::Forward, PageLimit::MAX).await?;
        let Some((last, _)) = page.items.last() else { return Ok(found) };
        range.start = after_key(last);
        found.extend(page.items);
        if !page.more {
            return Ok(found);
        }
    }
}

fn unreadable() -> Error {
    Error::corrupt("row-corrupt", "a copy of the catalog's rows on a shard cannot be read")
}

impl Manager {
    /// Makes a shard's copies of its containers what the catalog says now.
    pub async fn mirror_containers(&self, shard: ShardId) -> Result<()> {
        let local = self.local(shard)?;
        // In this order: a partition that comes meanwhile brings its copy with it.
        let found = scan(&Newest::of(&*local.store), &[OF_PARTITION]).await?;
        local.refresh().await?;
        let partitions = local.partitions()?;
        let (mut known, mut wanted) = (BTreeMap::new(), BTreeMap::new());
        for partition in partitions {
            let (id, place) = (partition.container, container_key(partition.id));
            if let Entry::Vacant(unread) = known.entry(id) {
                unread.insert(self.catalog().container(id).await.ok().map(|it| encode(&it)));
            }
            // A container that is being deleted stays as the shard knows it.
            let row = known.get(&id).cloned().flatten().or_else(|| found.get(&place).cloned());
            wanted.extend(row.map(|row| (place, row)));
        }
        replace(&local.store, found, wanted).await
    }

    /// Copies a container that has changed to the shards that hold partitions of it. One that is down gets its copy when
    /// the server starts again.
    pub async fn mirror_container(&self, container: &Container) -> Result<()> {
        let all = KeyRange::all();
        let mut held: BTreeMap<ShardId, Vec<Write>> = BTreeMap::new();
        let row = encode(container);
        for entry in self.catalog().partitions_in(container.id, &all, usize::MAX).await? {
            let Partition { id, shard, .. } = entry.partition;
            held.entry(shard).or_default().push(Write::Put(container_key(id), row.clone()));
        }
        for (shard, writes) in held {
            if let Ok(local) = self.local(shard) {
                let _ = commit(&local.store, &writes).await;
            }
        }
        Ok(())
    }

    /// The same for what concerns all shards: records of accounts and services, and what the shard itself is called.
    pub async fn mirror_records(&self, shard: ShardId) -> Result<()> {
        let local = self.local(shard)?;
        let newest = Newest::of(&*local.store);
        let mut found = scan(&newest, &[OF_RECORD]).await?;
        found.extend(scan(&newest, &[OF_SHARD]).await?);
        let mut wanted = records(self.catalog()).await?;
        wanted.insert(key(OF_SHARD, &[]), encode(&self.catalog().shard(shard).await?));
        replace(&local.store, found, wanted).await
    }
}

async fn records(catalog: &Catalog) -> Result<BTreeMap<Bytes, Bytes>> {
    let mut rows = BTreeMap::new();
    for kind in KINDS {
        for record in catalog.scan_records(kind, &KeyRange::all(), RECORDS_MAX).await? {
            let row = encode(&(record.version, record.value));
            rows.insert(record_key(kind, &record.key), row);
        }
    }
    Ok(rows)
}

/// Writes what differs.
async fn replace(
    store: &Arc<dyn Store>,
    found: BTreeMap<Bytes, Bytes>,
    wanted: BTreeMap<Bytes, Bytes>,
) -> Result<()> {
    let gone = found.keys().filter(|key| !wanted.contains_key(*key));
    let mut writes: Vec<_> = gone.map(|key| Write::Delete(key.clone())).collect();
    let new = wanted.iter().filter(|(key, row)| found.get(*key) != Some(row));
    writes.extend(new.map(|(key, row)| Write::Put(key.clone(), row.clone())));
    commit(store, &writes).await
}

async fn commit(store: &Arc<dyn Store>, writes: &[Write]) -> Result<()> {
    for writes in writes.chunks(COPIES_AT_ONCE) {
        store.begin(vec![]).await?.commit(writes.to_vec()).await?;
    }
    Ok(())
}
