//! The in-memory store: every version of every key that some snapshot may still read. For tests and the simulator.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use lazuli_env::BoxFuture;

use crate::{
    Direction, Dropped, Error, Handover, Item, KeyRange, Packed, Page, PageLimit, Parcel, Reader,
    Reads, Result, Store, Txn, Write, check_sizes,
};

/// Versions of one key, oldest first; `None` is a deletion.
type Versions = Vec<(u64, Option<Bytes>)>;

#[derive(Default)]
struct Inner {
    version: u64,
    keys: BTreeMap<Bytes, Versions>,
    /// How many snapshots read each version.
    readers: BTreeMap<u64, usize>,
}

impl Inner {
    fn visible(versions: &Versions, at: u64) -> Option<&Bytes> {
        versions.iter().rev().find(|(version, _)| *version <= at)?.1.as_ref()
    }

    fn get(&self, key: &[u8], at: u64) -> Option<Bytes> {
        Self::visible(self.keys.get(key)?, at).cloned()
    }

    fn apply(&mut self, writes: Vec<Write>) {
        self.version += 1;
        let version = self.version;
        let oldest = self.readers.keys().next().copied().unwrap_or(version);
        for write in writes {
            let (key, value) = match write {
                Write::Put(key, value) => (key, Some(value)),
                Write::Delete(key) => (key, None),
            };
            let versions = self.keys.entry(key.clone()).or_default();
            versions.push((version, value));
            Self::forget(versions, oldest);
            if versions.iter().all(|(_, value)| value.is_none()) && versions.len() == 1 {
                self.keys.remove(&key);
            }
        }
    }

    /// Drops the versions that no snapshot from `oldest` on can see.
    fn forget(versions: &mut Versions, oldest: u64) {
        let last_seen = versions.iter().rposition(|(version, _)| *version <= oldest).unwrap_or(0);
        versions.drain(..last_seen);
    }

    /// The keys of a range with all their versions.
    fn within(&self, range: &KeyRange) -> impl DoubleEndedIterator<Item = (&Bytes, &Versions)> {
        // A map does not take a range that ends before it begins.
        let start = range.start.clone();
        let end = range.end.clone().map(|end| end.max(start.clone()));
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        self.keys.range::<Bytes, _>((Bound::Included(start), end))
    }

    /// The newest of all that the ranges hold.
    fn items(&self, ranges: &[KeyRange]) -> Vec<Item> {
        let live = |(key, versions): (&Bytes, &Versions)| {
            Some((key.clone(), Self::visible(versions, self.version)?.clone()))
        };
        ranges.iter().flat_map(|range| self.within(range)).filter_map(live).collect()
    }

    fn scan(&self, range: &KeyRange, at: u64, direction: Direction, limit: PageLimit) -> Page {
        match direction {
            Direction::Forward => fill(self.within(range), at, limit),
            Direction::Backward => fill(self.within(range).rev(), at, limit),
        }
    }
}

fn fill<'a>(
    keys: impl Iterator<Item = (&'a Bytes, &'a Versions)>,
    at: u64,
    limit: PageLimit,
) -> Page {
    let mut page = Page::default();
    let mut bytes = 0;
    for (key, versions) in keys {
        let Some(value) = Inner::visible(versions, at) else { continue };
        let size = key.len() + value.len();
        if limit.is_full(page.items.len(), bytes, size) {
            page.more = true;
            break;
        }
        bytes += size;
        page.items.push((key.clone(), value.clone()));
    }
    page
}

/// A parcel of such stores: what some ranges held, in the order of keys.
pub struct Content {
    pub ranges: Vec<KeyRange>,
    pub items: Vec<Item>,
}

/// A store that lives as long as the value does. Clones share the data.
#[derive(Clone, Default)]
pub struct MemStore {
    inner: Arc<Mutex<Inner>>,
    packs: bool,
}

impl MemStore {
    /// One without [`Handover`].
    pub fn new() -> Self {
        Self::default()
    }

    /// One with [`Handover`].
    pub fn packing() -> Self {
        Self { packs: true, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn view(&self, guards: &[Bytes]) -> Result<View> {
        let mut inner = self.lock();
        Self::check_guards(&inner, guards)?;
        let version = inner.version;
        *inner.readers.entry(version).or_default() += 1;
        Ok(View { store: self.clone(), version })
    }

    fn check_guards(inner: &Inner, guards: &[Bytes]) -> Result<()> {
        match guards.iter().find(|guard| inner.get(guard, inner.version).is_none()) {
            Some(_) => Err(Error::moved("the guard is gone")),
            None => Ok(()),
        }
    }
}

impl Store for MemStore {
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        _: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let view: Box<dyn Reader> = Box::new(self.view(guards)?);
            Ok(view)
        })
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        Box::pin(async move {
            let txn: Box<dyn Txn> = Box::new(MemTxn { view: self.view(&guards)?, guards });
            Ok(txn)
        })
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let mut inner = self.lock();
            let now = inner.version;
            // Not a page: a caller that gets fewer than asked for takes the range to be empty.
            let live = |(key, versions): (&Bytes, &Versions)| {
                Inner::visible(versions, now).is_some().then(|| Write::Delete(key.clone()))
            };
            let deletions: Vec<Write> =
                inner.within(range).filter_map(live).take(keys_max).collect();
            let count = deletions.len();
            inner.apply(deletions);
            Ok(count)
        })
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        Box::pin(async move {
            let inner = self.lock();
            let live = inner.keys.iter().filter(|(key, _)| range.contains(key));
            let sizes = live.filter_map(|(key, versions)| {
                Inner::visible(versions, inner.version).map(|value| key.len() + value.len())
            });
            Ok(sizes.sum::<usize>() as u64)
        })
    }

    fn handover(&self) -> Option<&dyn Handover> {
        self.packs.then_some(self)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Handover for MemStore {
    fn pack<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<Packed>> {
        Box::pin(async move {
            let content = Content { ranges: ranges.to_vec(), items: self.lock().items(ranges) };
            Ok(Packed::Parcel(Parcel::new(content)))
        })
    }

    fn unpack(&self, guards: Vec<Bytes>, parcel: Parcel) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let Some(Content { ranges, items }) = parcel.open() else { return Ok(false) };
            let mut inner = self.lock();
            Self::check_guards(&inner, &guards)?;
            if !inner.items(&ranges).is_empty() {
                return Ok(false);
            }
            inner.apply(items.into_iter().map(|(key, value)| Write::Put(key, value)).collect());
            Ok(true)
        })
    }

    /// Drops every second key, so that no caller can rely on what stays or on what goes.
    fn drop_range<'a>(
        &'a self,
        guards: Vec<Bytes>,
        range: &'a KeyRange,
    ) -> BoxFuture<'a, Result<Dropped>> {
        Box::pin(async move {
            let mut inner = self.lock();
            Self::check_guards(&inner, &guards)?;
            let keys = inner.within(range).step_by(2).map(|(key, _)| Write::Delete(key.clone()));
            let deletions = keys.collect();
            inner.apply(deletions);
            Ok(Dropped::All)
        })
    }
}

/// The store as it was at one version.
struct View {
    store: MemStore,
    version: u64,
}

impl Drop for View {
    fn drop(&mut self) {
        let mut inner = self.store.lock();
        if let Some(count) = inner.readers.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                inner.readers.remove(&self.version);
            }
        }
    }
}

impl Reader for View {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { Ok(self.store.lock().get(key, self.version)) })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { Ok(self.store.lock().scan(range, self.version, direction, limit)) })
    }
}

struct MemTxn {
    view: View,
    guards: Vec<Bytes>,
}

impl Reader for MemTxn {
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
}

impl Txn for MemTxn {
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            check_sizes(&writes)?;
            let mut inner = self.view.store.lock();
            MemStore::check_guards(&inner, &self.guards)?;
            inner.apply(writes);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    #[tokio::test]
    async fn the_suite() {
        for (name, case) in suite::CASES.iter().chain(suite::ONE_PROCESS_CASES) {
            println!("case {name}");
            case(Arc::new(MemStore::new())).await;
            case(Arc::new(MemStore::packing())).await;
        }
    }

    #[tokio::test]
    async fn old_versions_are_forgotten_once_no_snapshot_reads_them() {
        let store = MemStore::new();
        let snapshot = store.snapshot(&[], Reads::Several).await.unwrap();
        for round in 0..100u8 {
            let txn = store.begin(vec![]).await.unwrap();
            txn.commit(vec![Write::Put("k".into(), vec![round].into())]).await.unwrap();
        }
        drop(snapshot);
        let txn = store.begin(vec![]).await.unwrap();
        txn.commit(vec![Write::Put("k".into(), "last".into())]).await.unwrap();
        assert!(store.lock().keys[&b"k"[..]].len() <= 2);
    }
}
