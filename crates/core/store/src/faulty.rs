//! A store that fails on command: every commit asks a plan first. Tests and the simulator crash, lose acknowledgements
//! and delay with it, at exactly the durable step they choose.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::{BoxFuture, Env};

use crate::{
    Direction, Dropped, Error, Handover, KeyRange, Packed, Page, PageLimit, Parcel, Reader, Reads,
    Result, Store, StoreHealth, StoreReason, Txn, Write,
};

/// What happens to one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Nothing is written and the caller is told of an error.
    Before,
    /// Everything is written and the caller is told of an error all the same.
    After,
}

/// Decides the fate of each commit, in the order they arrive.
pub trait Plan: Send + Sync {
    fn commit(&self) -> Fault;

    /// Whether the store answers reads and new transactions.
    fn is_up(&self) -> bool {
        true
    }

    /// What the store can take, if that is less than the inner one's.
    fn health(&self) -> StoreHealth {
        StoreHealth::Well
    }

    /// How long the next operation takes before it reaches the store.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Counts rows that pass through, either way. A read that finds nothing counts as one.
    fn count(&self, _rows: usize) {}
}

/// Wraps a store; all other behaviour is the inner one's.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Arc<dyn Plan>,
    env: Env,
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn Store>, plan: Arc<dyn Plan>, env: Env) -> Self {
        Self { inner, plan, env }
    }

    async fn arrive(plan: &Arc<dyn Plan>, env: &Env) -> Result<()> {
        let delay = plan.delay();
        if !delay.is_zero() {
            env.clock.sleep(delay).await;
        }
        if plan.is_up() { Ok(()) } else { Err(down()) }
    }
}

fn down() -> Error {
    Error::unavailable(StoreReason::Down, "the store does not answer")
}

async fn apply<T>(plan: &Arc<dyn Plan>, write: impl Future<Output = Result<T>>) -> Result<T> {
    match plan.commit() {
        Fault::None => write.await,
        Fault::Before => Err(down()),
        Fault::After => write.await.and(Err(down())),
    }
}

impl Store for FaultyStore {
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let inner = self.inner.snapshot(guards, reads).await?;
            let (plan, env) = (self.plan.clone(), self.env.clone());
            let reader: Box<dyn Reader> = Box::new(FaultyReader { inner, plan, env });
            Ok(reader)
        })
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        Box::pin(async move {
            Self::arrive(&self.plan, &self.env).await?;
            let inner = self.inner.begin(guards).await?;
            let txn: Box<dyn Txn> =
                Box::new(FaultyTxn { inner, plan: self.plan.clone(), env: self.env.clone() });
            Ok(txn)
        })
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            Self::arrive(&self.plan, &self.env).await?;
            apply(&self.plan, self.inner.delete_range(range, keys_max)).await
        })
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        self.inner.size(range)
    }

    fn health(&self) -> StoreHealth {
        match self.plan.health() {
            StoreHealth::Well => self.inner.health(),
            other => other,
        }
    }

    fn handover(&self) -> Option<&dyn Handover> {
        self.inner.handover().map(|_| self as &dyn Handover)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.close()
    }
}

impl FaultyStore {
    fn inner(&self) -> Result<&dyn Handover> {
        self.inner.handover().ok_or_else(|| Error::internal("no-handover", "the store has none"))
    }
}

impl Handover for FaultyStore {
    fn pack<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<Packed>> {
        Box::pin(async move {
            Self::arrive(&self.plan, &self.env).await?;
            self.inner()?.pack(ranges).await
        })
    }

    fn unpack(&self, guards: Vec<Bytes>, parcel: Parcel) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            Self::arrive(&self.plan, &self.env).await?;
            apply(&self.plan, self.inner()?.unpack(guards, parcel)).await
        })
    }

    fn drop_range<'a>(
        &'a self,
        guards: Vec<Bytes>,
        range: &'a KeyRange,
    ) -> BoxFuture<'a, Result<Dropped>> {
        Box::pin(async move {
            Self::arrive(&self.plan, &self.env).await?;
            apply(&self.plan, self.inner()?.drop_range(guards, range)).await
        })
    }
}

struct FaultyReader {
    inner: Box<dyn Reader>,
    plan: Arc<dyn Plan>,
    env: Env,
}

impl Reader for FaultyReader {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            FaultyStore::arrive(&self.plan, &self.env).await?;
            self.plan.count(1);
            self.inner.get(key).await
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            FaultyStore::arrive(&self.plan, &self.env).await?;
            let page = self.inner.scan(range, direction, limit).await?;
            self.plan.count(1 + page.items.len());
            Ok(page)
        })
    }
}

struct FaultyTxn {
    inner: Box<dyn Txn>,
    plan: Arc<dyn Plan>,
    env: Env,
}

impl Reader for FaultyTxn {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        self.plan.count(1);
        self.inner.get(key)
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let page = self.inner.scan(range, direction, limit).await?;
            self.plan.count(1 + page.items.len());
            Ok(page)
        })
    }
}

impl Txn for FaultyTxn {
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let Self { inner, plan, env } = *self;
            FaultyStore::arrive(&plan, &env).await?;
            plan.count(writes.len());
            apply(&plan, inner.commit(writes)).await
        })
    }
}
