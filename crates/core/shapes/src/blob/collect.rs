//! The collector: deletes what nothing names any more, in transactions of bounded size, and removes the files that were only
//! named there; deleted containers as well, after their retention. All of its work is listed in rows, so a crash loses none.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Continuation, FanOut, Item, ItemKey, ItemScan, KeyPart, KeyRange, KeySchema,
    KeyType, OnFailure, PREFIX_BYTES, PageLimit, Result, Space, Transaction, Tx, after_prefix,
};

use super::Blobs;
use super::address::{BlobPlace, number_at};
use super::garbage::{Erase, Forget, Garbage, Look, Trim, Unravel};
use super::limits::DEAD_GENERATION_MS;
use super::pieces::is_cell;
use super::record::ContainerRecord;
use super::rows::damaged;

/// The rows of garbage that are looked at at once.
const ROWS_AT_ONCE: PageLimit = PageLimit { items: 500, bytes: 1024 * 1024 };
/// How often one call goes through the garbage, of which one kind can make another.
const PASSES_MAX: usize = 16;
/// The containers of the engine that are asked for at once.
const CONTAINERS_AT_ONCE: usize = 1_000;

/// What a round of the collector did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Files that were removed.
    pub files: u64,
    /// Rows of garbage that were dealt with.
    pub rows: u64,
    /// Blobs of deleted containers that were cleared away.
    pub blobs: u64,
}

impl Collected {
    pub(super) fn add(&mut self, other: Self) {
        self.files += other.files;
        self.rows += other.rows;
        self.blobs += other.blobs;
    }
}

impl Blobs {
    /// Clears away what there is to clear away now. What is being read stays for a later call.
    pub async fn collect(&self) -> Result<Collected> {
        let mut total = Collected::default();
        self.look_for_copies().await?;
        for directory in self.containers_of("blob-containers/").await? {
            total.add(self.collect_containers(&directory).await?);
        }
        for blobs in self.containers_of("blobs/").await? {
            for _ in 0..PASSES_MAX {
                let done = self.collect_garbage(&blobs).await?;
                total.add(done);
                if done == Collected::default() {
                    break;
                }
            }
        }
        Ok(total)
    }

    /// The engine's containers with such names.
    pub(super) async fn containers_of(&self, prefix: &str) -> Result<Vec<Arc<Container>>> {
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let found =
                self.engine.containers(prefix, after.as_deref(), CONTAINERS_AT_ONCE).await?;
            after = found.last().map(|container| container.name.clone());
            let is_last = found.len() < CONTAINERS_AT_ONCE;
            all.extend(found.into_iter().map(Arc::new));
            if is_last {
                return Ok(all);
            }
        }
    }

    /// One page of the rows of a space, with their places.
    pub(super) async fn page_of(
        &self,
        container: &Container,
        space: Space,
        range: &KeyRange,
        after: Option<&Continuation>,
    ) -> Result<(Vec<(BlobPlace, ItemKey, Item)>, Option<Continuation>)> {
        let scan = ItemScan { space, range: range.clone() };
        let request =
            FanOut { routes: range.clone(), limit: ROWS_AT_ONCE, on_failure: OnFailure::Fail };
        let page = self.engine.fan_out(container.id, &scan, &request, after).await?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for (key, item) in page.rows {
            let behind = &key[PREFIX_BYTES..];
            let (route, _) = container.kind.split(&container.key, behind)?;
            let length = route.len();
            let route = key.slice(PREFIX_BYTES..PREFIX_BYTES + length);
            let place = BlobPlace { container: container.id, route };
            rows.push((place, ItemKey::from_bytes(key, length)?, item));
        }
        Ok((rows, page.next))
    }

    async fn collect_garbage(&self, blobs: &Container) -> Result<Collected> {
        let mut done = Collected::default();
        let mut after = None;
        loop {
            let range = KeyRange::all();
            let (rows, next) =
                self.page_of(blobs, Space::BLOB_GARBAGE, &range, after.as_ref()).await?;
            // Readers from before this are those who may still need what the page calls garbage.
            let ticket = self.pins.ticket();
            for (place, key, item) in rows {
                done.add(self.collect_row(place, key, item, ticket).await?);
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(done),
            }
        }
    }

    async fn collect_row(
        &self,
        place: BlobPlace,
        key: ItemKey,
        item: Item,
        ticket: u64,
    ) -> Result<Collected> {
        let now_ms = self.now_ms();
        let is_young =
            self.grace_ms > 0 && item.version.millis().saturating_add(self.grace_ms) > now_ms;
        let is_read = || is_young || self.pins.is_read(&place.route, ticket);
        let nothing = Ok(Collected::default());
        let mut files = 0;
        match Garbage::decode(item.payload)? {
            Garbage::Files(ids) => {
                if is_read() {
                    return nothing;
                }
                let (cells, ids): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| is_cell(*id));
                for id in ids {
                    self.blocks.remove_of(&place.owner(), id).await?;
                    files += 1;
                }
                let forget = Forget { place: place.clone(), key, cells };
                self.commit(&place, forget, None).await?;
            }
            Garbage::Content(content) => {
                if is_read() {
                    return nothing;
                }
                let start = content.to_be_bytes();
                self.unravel(place, key, Space::BLOB_PIECES, &start).await?;
            }
            Garbage::Session(session) => {
                let start = session.to_be_bytes();
                self.unravel(place, key, Space::BLOB_BLOCKS, &start).await?;
            }
            Garbage::Former(content) => {
                if is_read() {
                    return nothing;
                }
                let trim = Trim { place: place.clone(), key, content };
                self.commit(&place, trim, None).await?;
            }
            Garbage::Due(due_ms) | Garbage::Idle { due_ms, .. } if due_ms > now_ms => {
                return nothing;
            }
            Garbage::Due(_) | Garbage::Idle { .. } => {
                let running = self.copies.clone();
                let look = Look { place: place.clone(), key, running };
                self.commit(&place, look, None).await?;
            }
        }
        Ok(Collected { files, rows: 1, blobs: 0 })
    }

    /// Deletes rows of pieces that nothing names any more, a few with each transaction, then the row that said so.
    async fn unravel(
        &self,
        place: BlobPlace,
        key: ItemKey,
        space: Space,
        start: &[u8],
    ) -> Result<()> {
        loop {
            let range = place.range(start);
            let unravel = Unravel { place: place.clone(), key: key.clone(), space, range };
            if self.commit(&place, unravel, None).await? {
                return Ok(());
            }
        }
    }
}

/// The route of which a key is a row, as bytes of its own.
pub(super) fn route_of(key: &ItemKey) -> Bytes {
    Bytes::copy_from_slice(key.route())
}

/// Moves a deleted container whose time is over among the garbage.
struct Expire {
    key: ItemKey,
}

impl Transaction for Expire {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let Some(item) = tx.get(&self.key).await? else { return Ok(()) };
        let record = ContainerRecord::decode(item.payload.clone())?;
        if record.deleted.is_none_or(|deleted| deleted.until_ms > tx.now_ms()) {
            return Ok(());
        }
        tx.delete(&self.key).await?;
        let row = tx.lsn().0.to_be_bytes();
        let container = self.key.container();
        let garbage = ItemKey::new(container, Space::BLOB_GARBAGE, self.key.route(), &row);
        tx.put(&garbage, item.payload).await
    }

    fn cost(&self) -> u32 {
        0
    }
}

struct Delete {
    key: ItemKey,
}

impl Transaction for Delete {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.delete(&self.key).await.map(|_| ())
    }

    fn cost(&self) -> u32 {
        0
    }
}

impl Blobs {
    /// Clears away the blobs of containers that were deleted for good.
    pub(super) async fn collect_containers(&self, directory: &Container) -> Result<Collected> {
        let mut done = Collected::default();
        for space in [Space::BLOB_PAST, Space::BLOB_GARBAGE] {
            let mut after = None;
            loop {
                let range = KeyRange::all();
                let (rows, next) = self.page_of(directory, space, &range, after.as_ref()).await?;
                for (_, key, item) in rows {
                    let record = ContainerRecord::decode(item.payload)?;
                    let route = route_of(&key);
                    if space == Space::BLOB_PAST {
                        let now_ms = self.now_ms();
                        if record.deleted.is_some_and(|deleted| deleted.until_ms <= now_ms) {
                            self.engine.write(directory.id, &route, Expire { key }).await?;
                        }
                        continue;
                    }
                    done.blobs += self.erase_generation(directory, &key, &record).await?;
                }
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(done)
    }

    /// Clears away the blobs of one generation of a container. What says that it is dead stays for some time, because a
    /// write that had begun before may come late.
    async fn erase_generation(
        &self,
        directory: &Container,
        key: &ItemKey,
        record: &ContainerRecord,
    ) -> Result<u64> {
        let account = directory.name.strip_prefix("blob-containers/").unwrap_or_default();
        let Some(blobs) = self.contents(account).await? else { return Ok(0) };
        let names = directory.kind.key(&directory.key, key.route())?;
        let [KeyPart::Text(name)] = &names[..] else { return Err(damaged()) };
        let prefix = KeySchema::new(vec![KeyType::Text, KeyType::Int64])?;
        let parts = [KeyPart::Text(name.clone()), KeyPart::Int64(record.generation)];
        let start = blobs.kind.route(&prefix, &parts)?;
        let range = KeyRange::new(start.clone(), after_prefix(&start));
        let mut erased = 0;
        for space in [Space::ITEMS, Space::BLOB_PAST] {
            loop {
                let (rows, next) = self.page_of(&blobs, space, &range, None).await?;
                for (place, _, _) in rows {
                    self.commit(&place, Erase { place: place.clone() }, None).await?;
                    erased += 1;
                }
                if next.is_none() {
                    break;
                }
            }
        }
        let deleted_ms = number_at(key.row(), 0).ok_or_else(damaged)? >> 12;
        if erased == 0 && deleted_ms + DEAD_GENERATION_MS <= self.now_ms() {
            let delete = Delete { key: key.clone() };
            self.engine.write(directory.id, &route_of(key), delete).await?;
        }
        Ok(erased)
    }
}
