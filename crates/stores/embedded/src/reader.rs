//! Snapshots and transactions: reads go straight to the engine, commits to the queue.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use fjall::{Guard, Readable};
use lazuli_env::BoxFuture;
use lazuli_store::{
    Direction, Error, KeyRange, Page, PageLimit, Reader, Result, Txn, Visit, Write, check_sizes,
};

use crate::error::from_engine;
use crate::keyspaces::parts;
use crate::queue::Queue;
use crate::slot::Slot;
use crate::state::{Published, State};

/// A snapshot of the store after a batch. It does not keep the engine open: when the engine is reopened after a
/// failed write, older snapshots become invalid.
pub(crate) struct View {
    slot: Arc<Slot>,
    /// The engine it was taken from. Set at the first read, if the engine was being reopened.
    taken: OnceLock<Taken>,
}

struct Taken {
    state: Weak<State>,
    published: Arc<Published>,
}

/// A view for the length of one operation.
pub(crate) struct Open<'v> {
    pub(crate) state: Arc<State>,
    published: &'v Published,
}

impl View {
    pub(crate) fn newest(slot: &Arc<Slot>) -> Self {
        let view = Self { slot: slot.clone(), taken: OnceLock::new() };
        if let Ok(Some(state)) = slot.now() {
            view.take(&state);
        }
        view
    }

    fn take(&self, state: &Arc<State>) -> &Taken {
        let take = || Taken { state: Arc::downgrade(state), published: state.published() };
        self.taken.get_or_init(take)
    }

    /// The engine with the snapshot. None if it was taken while the engine was being reopened.
    pub(crate) fn now(&self) -> Option<Result<Open<'_>>> {
        let taken = self.taken.get()?;
        let open = |state| Open { state, published: &taken.published };
        Some(taken.state.upgrade().map(open).ok_or_else(gone))
    }

    /// The same, once the engine is open.
    pub(crate) async fn open(&self) -> Result<Open<'_>> {
        if let Some(open) = self.now() {
            return open;
        }
        let state = self.slot.engine().await?;
        self.take(&state);
        self.now().unwrap_or_else(|| Err(gone()))
    }
}

fn gone() -> Error {
    Error::unavailable("view-gone", "the store was reopened after this snapshot was taken")
}

impl Open<'_> {
    /// Refuses if a guard is not in the state that is shown. Most are known from memory.
    pub(crate) fn check_guards(&self, guards: &[Bytes]) -> Result<()> {
        for guard in guards.iter().filter(|guard| !self.published.knows(guard)) {
            let found = self.published.snapshot.contains_key(self.state.keyspaces.of(guard), guard);
            if !found.map_err(|error| from_engine(&error))? {
                return Err(Error::moved("the guard is gone"));
            }
            self.published.note_found(guard);
        }
        Ok(())
    }

    fn find(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let found = self.published.snapshot.get(self.state.keyspaces.of(key), key);
        found.map(|value| value.map(Bytes::from)).map_err(|error| from_engine(&error))
    }

    /// The items of a non-empty range.
    fn items(&self, range: &KeyRange) -> Items {
        let Published { snapshot, .. } = self.published;
        let [own, data] = parts(range);
        Items {
            own: own.map(|bounds| snapshot.range::<&[u8], _>(&self.state.keyspaces.own, bounds)),
            data: data.map(|bounds| snapshot.range::<&[u8], _>(&self.state.keyspaces.data, bounds)),
        }
    }

    fn page(&self, range: &KeyRange, direction: Direction, limit: PageLimit) -> Result<Page> {
        let mut page = Page::default();
        page.more = self.show(range, direction, limit, |key, value| {
            page.items.push((key, value));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(page)
    }

    /// Passes the items of a page to the caller and returns whether there are more.
    fn show(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        visit: impl FnMut(Bytes, Bytes) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        if range.is_empty() {
            return Ok(false);
        }
        let items = self.items(range);
        match direction {
            Direction::Forward => show_items(items, limit, visit),
            Direction::Backward => show_items(items.rev(), limit, visit),
        }
    }

    /// The first keys of a range, up to `keys_max` of them and about `bytes_max` bytes.
    pub(crate) fn keys(
        &self,
        range: &KeyRange,
        keys_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Bytes>> {
        let mut keys = Vec::new();
        let mut bytes = 0;
        if range.is_empty() {
            return Ok(keys);
        }
        for item in self.items(range) {
            if keys.len() >= keys_max || bytes >= bytes_max {
                break;
            }
            let key = item.key().map_err(|error| from_engine(&error))?;
            bytes += key.len();
            keys.push(key.into());
        }
        Ok(keys)
    }

    /// Counts the first items of a range and their bytes.
    pub(crate) fn measure(&self, range: &KeyRange, items_max: u64) -> Result<Measure> {
        let mut measure = Measure { items: 0, bytes: 0, complete: true };
        if range.is_empty() {
            return Ok(measure);
        }
        for item in self.items(range) {
            if measure.items == items_max {
                measure.complete = false;
                break;
            }
            let (key, value) = item.into_inner().map_err(|error| from_engine(&error))?;
            measure.items += 1;
            measure.bytes += (key.len() + value.len()) as u64;
        }
        Ok(measure)
    }
}

fn show_items(
    items: impl Iterator<Item = Guard>,
    limit: PageLimit,
    mut visit: impl FnMut(Bytes, Bytes) -> Result<ControlFlow<()>>,
) -> Result<bool> {
    let (mut count, mut bytes) = (0, 0);
    for item in items {
        let (key, value) = item.into_inner().map_err(|error| from_engine(&error))?;
        let size = key.len() + value.len();
        if limit.is_full(count, bytes, size) {
            return Ok(true);
        }
        count += 1;
        bytes += size;
        if visit(key.into(), value.into())?.is_break() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The items of a range. Reads only the keyspaces that the range touches.
struct Items {
    own: Option<fjall::Iter>,
    data: Option<fjall::Iter>,
}

impl Iterator for Items {
    type Item = Guard;

    fn next(&mut self) -> Option<Guard> {
        if let Some(own) = &mut self.own {
            match own.next() {
                None => self.own = None,
                item => return item,
            }
        }
        self.data.as_mut()?.next()
    }
}

impl DoubleEndedIterator for Items {
    fn next_back(&mut self) -> Option<Guard> {
        if let Some(data) = &mut self.data {
            match data.next_back() {
                None => self.data = None,
                item => return item,
            }
        }
        self.own.as_mut()?.next_back()
    }
}

/// The result of a scan, and whether it is complete.
pub(crate) struct Measure {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    pub(crate) complete: bool,
}

impl Reader for View {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        match self.now() {
            Some(open) => Box::pin(std::future::ready(open.and_then(|open| open.find(key)))),
            None => Box::pin(async move { self.open().await?.find(key) }),
        }
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { self.open().await?.page(range, direction, limit) })
    }

    fn walk<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        visit: &'a mut Visit<'_>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move { self.open().await?.show(range, direction, limit, visit) })
    }
}

/// A transaction: a snapshot, its guards, and access to the committer.
pub(crate) struct EmbeddedTxn {
    pub(crate) view: View,
    pub(crate) guards: Vec<Bytes>,
    pub(crate) queue: Arc<Queue>,
}

impl Reader for EmbeddedTxn {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        self.view.get(key)
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        self.view.scan(range, direction, limit)
    }

    fn walk<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        visit: &'a mut Visit<'_>,
    ) -> BoxFuture<'a, Result<bool>> {
        self.view.walk(range, direction, limit, visit)
    }
}

impl Txn for EmbeddedTxn {
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let Self { view, guards, queue } = *self;
            check_writes(&writes)?;
            // A snapshot that waits for an fsync only delays the collection of old versions.
            drop(view);
            queue.commit(guards, writes).await
        })
    }
}

/// Refuses keys and values that the engine does not support.
pub(crate) fn check_writes(writes: &[Write]) -> Result<()> {
    check_sizes(writes)?;
    if writes.iter().any(|write| write.key().is_empty()) {
        return Err(Error::invalid("key-empty", "a key must have at least one byte"));
    }
    Ok(())
}
