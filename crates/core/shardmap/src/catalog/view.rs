//! Reading the catalog at one moment.

use bytes::Bytes;
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Result, after_key, limits};

use super::keys;
use super::rows::{Claim, Deleting, Entry, MapOperation};
use crate::manager::is_restore;
use crate::moves::Move;
use crate::record::{Record, decode};
use crate::{Container, ContainerId, Garbage, MapReason, PartitionId, Shard, ShardId};

/// The catalog as one snapshot or transaction sees it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(super) reader: &'a dyn Reader,
}

/// A row that stands for a stretch of routes and is kept under its first one.
trait Stretch: Record {
    fn routes(&self) -> &KeyRange;
}

impl Stretch for Entry {
    fn routes(&self) -> &KeyRange {
        &self.partition.routes
    }
}

impl Stretch for Claim {
    fn routes(&self) -> &KeyRange {
        &self.routes
    }
}

impl Stretch for Garbage {
    fn routes(&self) -> &KeyRange {
        &self.routes
    }
}

impl<'a> View<'a> {
    pub(crate) fn of(reader: &'a dyn Reader) -> Self {
        Self { reader }
    }

    pub(super) async fn row<T: Record>(&self, key: &[u8]) -> Result<Option<T>> {
        self.reader.get(key).await?.map(decode).transpose()
    }

    /// All rows of a range, at most `most` of them.
    pub(super) async fn rows<T: Record>(
        &self,
        mut range: KeyRange,
        most: usize,
    ) -> Result<Vec<(Bytes, T)>> {
        let mut rows = Vec::new();
        while rows.len() < most {
            let limit = PageLimit::items((most - rows.len()).min(limits::PAGE_ITEMS_MAX));
            let page = self.reader.scan(&range, Direction::Forward, limit).await?;
            let Some((last, _)) = page.items.last() else { break };
            range.start = after_key(last);
            for (key, value) in page.items {
                rows.push((key, decode(value)?));
            }
            if !page.more {
                break;
            }
        }
        Ok(rows)
    }

    async fn values<T: Record>(&self, prefix: Bytes) -> Result<Vec<T>> {
        let rows = self.rows(KeyRange::prefix(prefix), usize::MAX).await?;
        Ok(rows.into_iter().map(|(_, value)| value).collect())
    }

    /// The rows behind `prefix` that overlap `range`, in order, at most `most`. Rows never overlap each other.
    async fn overlapping<T: Stretch>(
        &self,
        prefix: &Bytes,
        range: &KeyRange,
        most: usize,
    ) -> Result<Vec<T>> {
        let whole = KeyRange::prefix(prefix.clone());
        let start = Bytes::from([&prefix[..], &range.start].concat());
        let end = match &range.end {
            Some(end) => Some(Bytes::from([&prefix[..], end].concat())),
            None => whole.end,
        };
        let before = KeyRange::new(whole.start, Some(start.clone()));
        let page = self.reader.scan(&before, Direction::Backward, PageLimit::items(1)).await?;
        let mut found = Vec::new();
        for (_, value) in page.items {
            let row: T = decode(value)?;
            if row.routes().overlaps(range) {
                found.push(row);
            }
        }
        let inside = self.rows(KeyRange::new(start, end), most.saturating_sub(found.len())).await?;
        found.extend(inside.into_iter().map(|(_, row)| row));
        Ok(found)
    }

    pub(crate) async fn shard(&self, id: ShardId) -> Result<Shard> {
        let missing =
            || Error::not_found("shard-not-found", format!("there is no shard with id {id}"));
        self.row(&keys::shard(id)).await?.ok_or_else(missing)
    }

    pub(crate) async fn shards(&self) -> Result<Vec<Shard>> {
        self.values(keys::space(keys::SHARD)).await
    }

    pub(crate) async fn has_shard(&self, id: ShardId) -> Result<bool> {
        Ok(self.row::<Shard>(&keys::shard(id)).await?.is_some())
    }

    pub(crate) async fn shard_named(&self, name: &str) -> Result<Option<ShardId>> {
        self.row(&keys::named(keys::SHARD_NAME, name)).await
    }

    pub(crate) async fn shard_at(&self, location: &str) -> Result<Option<ShardId>> {
        self.row(&keys::named(keys::SHARD_LOCATION, location)).await
    }

    pub(crate) async fn container(&self, id: ContainerId) -> Result<Container> {
        let found = self.row(&keys::of_container(keys::CONTAINER, id)).await?;
        found.ok_or_else(|| no_container(format!("with id {id}")))
    }

    pub(crate) async fn container_named(&self, name: &str) -> Result<Container> {
        match self.container_id(name).await? {
            Some(id) => self.container(id).await,
            None => Err(no_container(format!("named {name}"))),
        }
    }

    /// Who has the name. The container itself may still be in the making.
    pub(crate) async fn container_id(&self, name: &str) -> Result<Option<ContainerId>> {
        self.row(&keys::named(keys::CONTAINER_NAME, name)).await
    }

    pub(crate) async fn containers(&self) -> Result<Vec<Container>> {
        self.values(keys::space(keys::CONTAINER)).await
    }

    pub(crate) async fn container_count(&self) -> Result<usize> {
        let mut rest = KeyRange::prefix(keys::space(keys::CONTAINER));
        let mut count = 0;
        loop {
            let page = self.reader.scan(&rest, Direction::Forward, PageLimit::MAX).await?;
            count += page.items.len();
            match (page.more, page.items.last()) {
                (true, Some((last, _))) => rest.start = after_key(last),
                _ => return Ok(count),
            }
        }
    }

    /// Containers from this id on, by id, at most `most`.
    pub(crate) async fn containers_from(
        &self,
        first: ContainerId,
        most: usize,
    ) -> Result<Vec<Container>> {
        let end = KeyRange::prefix(keys::space(keys::CONTAINER)).end;
        let range = KeyRange::new(keys::of_container(keys::CONTAINER, first), end);
        Ok(self.rows(range, most).await?.into_iter().map(|(_, container)| container).collect())
    }

    pub(crate) async fn containers_named(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Container>> {
        let mut names = KeyRange::prefix(keys::named(keys::CONTAINER_NAME, prefix));
        if let Some(after) = after {
            let behind = after_key(&keys::named(keys::CONTAINER_NAME, after));
            names.start = names.start.max(behind);
        }
        let mut found = Vec::new();
        for (_, id) in self.rows::<ContainerId>(names, most).await? {
            // A container that is still in the making has its name already, and is not there yet.
            found.extend(self.row(&keys::of_container(keys::CONTAINER, id)).await?);
        }
        Ok(found)
    }

    pub(crate) async fn deleting(&self) -> Result<Vec<Deleting>> {
        self.values(keys::space(keys::DELETING)).await
    }

    pub(crate) async fn deleting_one(&self, id: ContainerId) -> Result<Option<Deleting>> {
        self.row(&keys::of_container(keys::DELETING, id)).await
    }

    pub(crate) async fn entry(&self, id: PartitionId) -> Result<Entry> {
        let missing = || {
            let message = format!("there is no partition with id {id}");
            Error::not_found(MapReason::PartitionNotFound, message)
        };
        let place: Option<(ContainerId, Bytes)> = self.row(&keys::partition(id)).await?;
        let (container, route) = place.ok_or_else(missing)?;
        self.entry_at(container, &route).await?.ok_or_else(missing)
    }

    /// The partition that begins at exactly this route.
    pub(crate) async fn entry_at(
        &self,
        container: ContainerId,
        route: &[u8],
    ) -> Result<Option<Entry>> {
        self.row(&keys::routed(keys::ROUTE, container, route)).await
    }

    /// Partitions of a container that overlap the range, in the order of routes.
    pub(crate) async fn entries(
        &self,
        container: ContainerId,
        range: &KeyRange,
        most: usize,
    ) -> Result<Vec<Entry>> {
        let prefix = keys::of_container(keys::ROUTE, container);
        self.overlapping(&prefix, range, most).await
    }

    /// Partitions on a shard, at most `most`.
    pub(crate) async fn entries_on(&self, shard: ShardId, most: usize) -> Result<Vec<Entry>> {
        let range = KeyRange::prefix(keys::on_shard(shard, None));
        let places: Vec<(Bytes, bool)> = self.rows(range, most).await?;
        let mut entries = Vec::with_capacity(places.len());
        for (key, _) in places {
            let place = keys::place_of(&key, keys::ON_SHARD_SKIP);
            let (container, route) = place.ok_or_else(torn_index)?;
            entries.push(self.entry_at(container, route).await?.ok_or_else(torn_index)?);
        }
        Ok(entries)
    }

    /// How many partitions a shard holds, of one container or of all.
    pub(crate) async fn count_on(
        &self,
        shard: ShardId,
        container: Option<ContainerId>,
    ) -> Result<u64> {
        Ok(self.values::<u64>(keys::count(shard, container)).await?.into_iter().sum())
    }

    /// Where partitions locked with this token begin.
    pub(crate) async fn locked_with(
        &self,
        token: lazuli_env::Id,
        container: ContainerId,
        most: usize,
    ) -> Result<Vec<Entry>> {
        let range = KeyRange::prefix(keys::locked(token, container, &[]));
        let places: Vec<(Bytes, bool)> = self.rows(range, most).await?;
        let mut entries = Vec::with_capacity(places.len());
        for (key, _) in places {
            let place = keys::place_of(&key, keys::LOCKED_SKIP);
            let (container, route) = place.ok_or_else(torn_index)?;
            entries.push(self.entry_at(container, route).await?.ok_or_else(torn_index)?);
        }
        Ok(entries)
    }

    /// A partition of the container that is locked, if there is one. Those that moves and restores have locked
    /// do not count: they have nothing against their partition's end.
    pub(crate) async fn locked_in(&self, container: ContainerId) -> Result<Option<Entry>> {
        let moves = self.moves().await?;
        let is_moves =
            |token| is_restore(token) || moves.iter().any(|moving| moving.token == token);
        let entries = self.entries(container, &KeyRange::all(), usize::MAX).await?;
        Ok(entries.into_iter().find(|entry| entry.lock.is_some_and(|token| !is_moves(token))))
    }

    /// Numbers and containers of the operations that are not finished: one row, which saves a walk over the
    /// traces of those that are.
    pub(super) async fn pending(&self) -> Result<Vec<(u64, ContainerId)>> {
        Ok(self.row(&keys::space(keys::PENDING)).await?.unwrap_or_default())
    }

    pub(crate) async fn operations(&self) -> Result<Vec<MapOperation>> {
        let mut operations = Vec::new();
        for (number, _) in self.pending().await? {
            operations.push(self.operation(number).await?.ok_or_else(torn_index)?);
        }
        Ok(operations)
    }

    pub(crate) async fn operation(&self, number: u64) -> Result<Option<MapOperation>> {
        self.row(&keys::numbered(keys::OPERATION, number)).await
    }

    /// The pending operation that has taken any of these routes.
    pub(crate) async fn claim(
        &self,
        container: ContainerId,
        range: &KeyRange,
    ) -> Result<Option<Claim>> {
        if self.pending().await?.iter().all(|(_, other)| *other != container) {
            return Ok(None);
        }
        let prefix = keys::of_container(keys::CLAIM, container);
        Ok(self.overlapping(&prefix, range, 1).await?.into_iter().next())
    }

    /// All moves that are not over, by number.
    pub(crate) async fn moves(&self) -> Result<Vec<Move>> {
        self.values(keys::space(keys::MOVE)).await
    }

    pub(crate) async fn moving(&self, number: u64) -> Result<Option<Move>> {
        self.row(&keys::numbered(keys::MOVE, number)).await
    }

    pub(crate) async fn garbage(&self) -> Result<Vec<Garbage>> {
        self.values(keys::space(keys::GARBAGE)).await
    }

    /// What is to be deleted on the shard among these routes.
    pub(crate) async fn garbage_in(
        &self,
        container: ContainerId,
        shard: ShardId,
        range: &KeyRange,
        most: usize,
    ) -> Result<Vec<Garbage>> {
        let prefix = keys::garbage(container, shard, &[]);
        self.overlapping(&prefix, range, most).await
    }
}

fn no_container(which: String) -> Error {
    Error::not_found(MapReason::ContainerNotFound, format!("there is no container {which}"))
}

fn torn_index() -> Error {
    Error::corrupt("row-corrupt", "an index of the catalog names a row that is not there")
}
