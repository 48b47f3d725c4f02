//! Reads each in a snapshot of its own: for work that takes longer than a snapshot may live.

use bytes::Bytes;
use lazuli_env::BoxFuture;

use crate::{Direction, KeyRange, Page, PageLimit, Reader, Reads, Result, Store, Visit};

/// A reader that shows the newest state at every read. Under guards, all reads show the same of what cannot change while the
/// guards exist; a read after one of them has gone answers [`crate::Kind::Moved`].
pub struct Newest<'s> {
    store: &'s dyn Store,
    guards: Vec<Bytes>,
}

impl<'s> Newest<'s> {
    pub fn of(store: &'s dyn Store) -> Self {
        Self::guarded(store, Vec::new())
    }

    pub fn guarded(store: &'s dyn Store, guards: Vec<Bytes>) -> Self {
        Self { store, guards }
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Box<dyn Reader>>> {
        self.store.snapshot(&self.guards, Reads::One)
    }
}

impl Reader for Newest<'_> {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.snapshot().await?.get(key).await })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { self.snapshot().await?.scan(range, direction, limit).await })
    }

    fn walk<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        visit: &'a mut Visit<'_>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move { self.snapshot().await?.walk(range, direction, limit, visit).await })
    }
}
