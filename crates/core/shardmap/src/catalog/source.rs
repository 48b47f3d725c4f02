//! The catalog as routers follow it: whole maps, and what has changed since a version.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::{KeyRange, Result};

use super::rows::{Head, LogRow};
use super::{Catalog, View, keys};
use crate::source::{MapDelta, MapSource};
use crate::{Container, ContainerId, Partition};

impl MapSource for Catalog {
    fn container(&self, id: ContainerId) -> BoxFuture<'_, Result<Container>> {
        Box::pin(self.container(id))
    }

    fn container_named<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Container>> {
        Box::pin(self.container_named(name))
    }

    fn partitions(&self, id: ContainerId) -> BoxFuture<'_, Result<(u64, Vec<Partition>)>> {
        Box::pin(async move {
            let snapshot = self.snapshot().await?;
            let view = View::of(&*snapshot);
            view.container(id).await?;
            let version = self.version_in(&*snapshot).await?;
            let entries = view.entries(id, &KeyRange::all(), usize::MAX).await?;
            Ok((version, entries.into_iter().map(|entry| entry.partition).collect()))
        })
    }

    fn changes_since(&self, id: ContainerId, version: u64) -> BoxFuture<'_, Result<MapDelta>> {
        Box::pin(async move {
            let snapshot = self.snapshot().await?;
            let view = View::of(&*snapshot);
            view.container(id).await?;
            let newest = self.version_in(&*snapshot).await?;
            let head: Option<Head> = view.row(&keys::numbered(keys::HEAD, newest)).await?;
            if version > newest || head.is_none_or(|head| version + 1 < head.log_from) {
                return Ok(MapDelta::Reload);
            }
            let start = keys::numbered(keys::LOG, version + 1);
            let end = keys::numbered(keys::LOG, newest + 1);
            let log: Vec<(Bytes, LogRow)> =
                view.rows(KeyRange::new(start, Some(end)), usize::MAX).await?;
            Ok(follow(id, newest, log.into_iter().map(|(_, row)| row)))
        })
    }
}

/// What others have changed since a version of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    pub version: u64,
    /// Whether shards came, went or changed.
    pub shards: bool,
    /// Containers that changed; none if so much did that all must be taken for changed.
    pub containers: Option<BTreeSet<ContainerId>>,
}

impl Catalog {
    /// What was changed since this version, for a process that shares the catalog with others.
    pub async fn changed_since(&self, version: u64) -> Result<Followed> {
        let snapshot = self.snapshot().await?;
        let newest = self.version_in(&*snapshot).await?;
        if newest == version {
            return Ok(Followed { version, shards: false, containers: Some(BTreeSet::new()) });
        }
        let view = View::of(&*snapshot);
        let head: Option<Head> = view.row(&keys::numbered(keys::HEAD, newest)).await?;
        if version > newest || head.is_none_or(|head| version + 1 < head.log_from) {
            return Ok(Followed { version: newest, shards: true, containers: None });
        }
        let start = keys::numbered(keys::LOG, version + 1);
        let end = keys::numbered(keys::LOG, newest + 1);
        let log: Vec<(Bytes, LogRow)> =
            view.rows(KeyRange::new(start, Some(end)), usize::MAX).await?;
        let (mut shards, mut containers) = (false, BTreeSet::new());
        for (_, row) in log {
            shards |= !row.shards.is_empty();
            containers.extend(row.containers.into_iter().chain(row.reloads));
            containers.extend(row.removes.iter().chain(&row.puts).map(|it| it.container));
        }
        Ok(Followed { version: newest, shards, containers: Some(containers) })
    }

    /// Grows with every write of a record.
    pub async fn records_version(&self) -> Result<u64> {
        self.record_version().await
    }
}

/// What the rows of the log together did to one container.
fn follow(id: ContainerId, version: u64, log: impl Iterator<Item = LogRow>) -> MapDelta {
    let mut removed = Vec::new();
    let mut put = BTreeMap::new();
    for row in log {
        if row.reloads.contains(&id) {
            return MapDelta::Reload;
        }
        for partition in row.removes.into_iter().filter(|it| it.container == id) {
            put.remove(&partition.id);
            removed.push(partition.id);
        }
        for partition in row.puts.into_iter().filter(|it| it.container == id) {
            put.insert(partition.id, partition);
        }
    }
    removed.sort_unstable();
    removed.dedup();
    MapDelta::Changes { version, removed, put: put.into_values().collect() }
}
