//! The store of a simulated process: a server seen through latency, failing reads, and a connection that may break.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::limits::SNAPSHOT_LIFE_MAX;
use lazuli_store::mem::Content;
use lazuli_store::{
    Direction, Dropped, Error, Handover, KeyRange, Packed, Page, PageLimit, Parcel, Reader, Reads,
    Result, Store, Txn, Write, check_sizes,
};
use tokio::sync::{OnceCell, mpsc, oneshot};

use crate::disk::{Committer, Disk, Entry, Job, at_once, down};
use crate::faults::{Planted, StoreFaults, Weather};
use crate::locks::Locked;
use crate::process::Process;

/// The lock of transactions without guards.
const NO_GUARDS: Bytes = Bytes::from_static(b"\xff\xff\xff\xff");

/// A server's store as one process has it open. Several processes may.
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
            process: process.life(),
            entries,
        };
        world.serve(Box::pin(task.run()));
        let shared = Shared { disk, process: process.clone(), weather, committer };
        Self { shared: Arc::new(shared) }
    }

    async fn write(&self, job: Job, locked: Option<Locked>) -> Result<usize> {
        let (answer, answered) = oneshot::channel();
        self.shared.committer.send(Entry { job, locked, answer }).map_err(|_| down())?;
        answered.await.map_err(|_| down())?
    }

    /// Latency and faults of every read.
    async fn reach(&self) -> Result<()> {
        let Shared { process, weather, .. } = &*self.shared;
        let delay = weather.up_to(weather.faults.read_max);
        if !delay.is_zero() {
            process.env().clock.sleep(delay).await;
        }
        if process.is_alive() && !weather.fails_read() { Ok(()) } else { Err(down()) }
    }

    /// Whether transactions lock their guards.
    fn locks(&self) -> bool {
        let faults = &self.shared.weather.faults;
        !faults.is_alone && faults.planted != Planted::NoExclusiveBegin
    }

    fn now(&self) -> Duration {
        self.shared.disk.world.now()
    }

    /// The newest state, in which the guards exist.
    fn view(&self, guards: &[Bytes]) -> Result<Box<dyn Reader>> {
        let planted = self.shared.weather.faults.planted;
        let guards = if planted == Planted::NoSnapshotGuards { &[] } else { guards };
        at_once(self.shared.disk.synced.snapshot(guards, Reads::Several))
    }
}

impl Store for SimStore {
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let weather = &self.shared.weather;
            let view = OnceCell::new();
            // One read may bring its guards along.
            if reads != Reads::One || weather.is_busy() {
                self.reach().await?;
                let _ = view.set(self.view(guards)?);
            }
            if reads == Reads::Long && weather.refuses_long() {
                return Err(Error::unavailable("snapshot-refused", "no long snapshots now"));
            }
            let (store, guards, opened) = (self.clone(), guards.to_vec(), self.now());
            let was_read = AtomicBool::new(false);
            let reader: Box<dyn Reader> =
                Box::new(SimReader { store, guards, reads, view, opened, was_read });
            Ok(reader)
        })
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        Box::pin(async move {
            self.reach().await?;
            let Shared { disk, weather, .. } = &*self.shared;
            let locked = disk.locks.begin();
            if self.locks() {
                let keys = if guards.is_empty() { vec![NO_GUARDS] } else { guards.clone() };
                locked.take(&keys).await?;
            }
            let guards = weather.guards(guards);
            let view = at_once(disk.synced.snapshot(&guards, Reads::Several))?;
            let store = self.clone();
            let txn: Box<dyn Txn> = Box::new(SimTxn { store, view, guards, locked });
            Ok(txn)
        })
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(self.write(Job::DeleteRange { range: range.clone(), keys_max }, None))
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        self.shared.disk.synced.size(range)
    }

    fn handover(&self) -> Option<&dyn Handover> {
        self.shared.weather.faults.handover.then_some(self)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Handover for SimStore {
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

    /// Takes it over in pieces, between which the process may die, or another one come.
    fn unpack(&self, guards: Vec<Bytes>, parcel: Parcel) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let Some(Content { ranges, items }) = parcel.open() else { return Ok(false) };
            self.reach().await?;
            let there = &self.shared.disk.synced;
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
            self.write(Job::DropRange { guards, range: range.clone() }, None).await?;
            Ok(if weather.is_busy() { Dropped::Part } else { Dropped::All })
        })
    }
}

struct SimReader {
    store: SimStore,
    guards: Vec<Bytes>,
    reads: Reads,
    view: OnceCell<Box<dyn Reader>>,
    opened: Duration,
    was_read: AtomicBool,
}

impl SimReader {
    async fn view(&self) -> Result<&dyn Reader> {
        let was_read = self.was_read.swap(true, Ordering::Relaxed);
        assert!(self.reads != Reads::One || !was_read, "a second read of a snapshot for one");
        self.store.reach().await?;
        let age = self.store.now().saturating_sub(self.opened);
        if self.reads == Reads::Several && age > SNAPSHOT_LIFE_MAX {
            return Err(Error::unavailable("snapshot-too-old", "the snapshot is too old"));
        }
        let view = || async { self.store.view(&self.guards) };
        self.view.get_or_try_init(view).await.map(|view| &**view)
    }
}

impl Reader for SimReader {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.view().await?.get(key).await })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { self.view().await?.scan(range, direction, limit).await })
    }
}

struct SimTxn {
    store: SimStore,
    view: Box<dyn Reader>,
    guards: Vec<Bytes>,
    locked: Locked,
}

impl SimTxn {
    async fn reach(&self) -> Result<()> {
        self.store.reach().await?;
        self.locked.touch()
    }
}

impl Reader for SimTxn {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            self.reach().await?;
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
            self.reach().await?;
            self.view.scan(range, direction, limit).await
        })
    }
}

impl Txn for SimTxn {
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            check_sizes(&writes)?;
            let Self { store, view, guards, locked } = *self;
            drop(view);
            locked.touch()?;
            if store.locks() {
                // A row that is deleted may be the guard of another transaction.
                let is_delete = |write: &&Write| matches!(write, Write::Delete(_));
                let deleted = writes.iter().filter(is_delete).map(|write| write.key().clone());
                locked.take(&deleted.collect::<Vec<_>>()).await?;
            }
            locked.commit()?;
            store.write(Job::Commit { guards, writes }, Some(locked)).await.map(|_| ())
        })
    }
}
