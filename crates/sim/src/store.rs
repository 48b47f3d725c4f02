//! The store of a simulated process: a disk seen through latency, failing reads, and a committer that dies with it.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::mem::Content;
use lazuli_store::{
    Direction, Dropped, Item, KeyRange, Packed, Page, PageLimit, Parcel, Reader, Result, Store,
    Txn, Write, check_sizes, check_sorted,
};
use tokio::sync::{mpsc, oneshot};

use crate::disk::{Committer, Disk, Entry, Job, down};
use crate::faults::{StoreFaults, Weather};
use crate::process::Process;

/// A disk opened by a process. Of one disk no two living processes may have one, as with the lock of the embedded store.
#[derive(Clone)]
pub struct SimStore {
    shared: Arc<Shared>,
}

struct Shared {
    disk: Disk,
    process: Process,
    weather: Arc<Weather>,
    committer: mpsc::UnboundedSender<Entry>,
}

impl SimStore {
    pub fn open(disk: &Disk, process: &Process, faults: StoreFaults) -> Self {
        let world = process.world();
        let (committer, entries) = mpsc::unbounded_channel();
        let (disk, weather) =
            (disk.clone(), Arc::new(Weather::new(world, faults, disk.out_until.clone())));
        let task = Committer {
            disk: disk.clone(),
            weather: weather.clone(),
            random: world.random("committer"),
            entries,
        };
        process.spawn("committer", Box::pin(task.run()));
        let shared = Shared { disk, process: process.clone(), weather, committer };
        Self { shared: Arc::new(shared) }
    }

    async fn write(&self, job: Job) -> Result<usize> {
        let (answer, answered) = oneshot::channel();
        self.shared.committer.send(Entry { job, answer }).map_err(|_| down())?;
        answered.await.map_err(|_| down())?
    }

    /// What every read goes through first.
    async fn reach(&self) -> Result<()> {
        let Shared { process, weather, .. } = &*self.shared;
        let delay = weather.up_to(weather.faults.read_max);
        if !delay.is_zero() {
            process.env().clock.sleep(delay).await;
        }
        if process.is_alive() && !weather.fails_read() { Ok(()) } else { Err(down()) }
    }
}

impl Store for SimStore {
    fn snapshot(&self) -> Box<dyn Reader> {
        Box::new(SimReader { store: self.clone(), view: self.shared.disk.synced.snapshot() })
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        Box::pin(async move {
            self.reach().await?;
            let view = self.shared.disk.synced.begin(guards.clone()).await?;
            let guards = self.shared.weather.guards(guards);
            let txn: Box<dyn Txn> = Box::new(SimTxn { store: self.clone(), view, guards });
            Ok(txn)
        })
    }

    fn ingest(&self, guards: Vec<Bytes>, items: Vec<Item>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            check_sorted(&items)?;
            let writes = items.into_iter().map(|(key, value)| Write::Put(key, value)).collect();
            // A load is guarded and whole as a transaction is.
            self.begin(guards).await?.commit(writes).await
        })
    }

    fn pack<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<Packed>> {
        Box::pin(async move {
            self.reach().await?;
            let Shared { weather, disk, .. } = &*self.shared;
            if weather.is_busy() {
                return Ok(Packed::NotNow);
            }
            if weather.is_busy() {
                return Ok(Packed::Nothing);
            }
            disk.synced.pack(ranges).await
        })
    }

    /// Takes it over in pieces, between which all may end, or somebody else come.
    fn unpack(&self, guards: Vec<Bytes>, parcel: Parcel) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let Some(Content { ranges, items }) = parcel.open() else { return Ok(false) };
            self.reach().await?;
            let there = self.shared.disk.synced.snapshot();
            for range in &ranges {
                let page = there.scan(range, Direction::Forward, PageLimit::items(1)).await?;
                if !page.items.is_empty() {
                    return Ok(false);
                }
            }
            if self.shared.weather.is_busy() {
                return Ok(false);
            }
            let puts: Vec<Write> = items.into_iter().map(|(k, v)| Write::Put(k, v)).collect();
            let (even, odd): (Vec<_>, Vec<_>) =
                puts.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
            for piece in [even, odd] {
                let writes = piece.into_iter().map(|(_, write)| write).collect();
                self.begin(guards.clone()).await?.commit(writes).await?;
            }
            Ok(true)
        })
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(self.write(Job::DeleteRange { range: range.clone(), keys_max }))
    }

    fn drop_range<'a>(
        &'a self,
        guards: Vec<Bytes>,
        range: &'a KeyRange,
    ) -> BoxFuture<'a, Result<Dropped>> {
        Box::pin(async move {
            let Shared { weather, .. } = &*self.shared;
            if weather.is_busy() {
                return Ok(Dropped::NotNow);
            }
            let guards = weather.guards(guards);
            self.write(Job::DropRange { guards, range: range.clone() }).await?;
            Ok(if weather.is_busy() { Dropped::Part } else { Dropped::All })
        })
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        self.shared.disk.synced.size(range)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

struct SimReader {
    store: SimStore,
    view: Box<dyn Reader>,
}

impl Reader for SimReader {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            self.store.reach().await?;
            self.view.get(key).await
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            self.store.reach().await?;
            self.view.scan(range, direction, limit).await
        })
    }
}

struct SimTxn {
    store: SimStore,
    view: Box<dyn Txn>,
    guards: Vec<Bytes>,
}

impl Reader for SimTxn {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            self.store.reach().await?;
            self.view.get(key).await
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            self.store.reach().await?;
            self.view.scan(range, direction, limit).await
        })
    }
}

impl Txn for SimTxn {
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            check_sizes(&writes)?;
            let Self { store, view, guards } = *self;
            drop(view);
            store.write(Job::Commit { guards, writes }).await.map(|_| ())
        })
    }
}
