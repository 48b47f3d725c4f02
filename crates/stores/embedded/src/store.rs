//! The store itself: opens, returns snapshots and transactions, closes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::limits::COMMIT_BYTES_MAX;
use lazuli_store::{
    Dropped, Error, Handover, Intake, KeyRange, Loading, Packed, Parcel, Reader, Reads, Result,
    Store, StoreHealth, Txn, Write,
};
use tokio::sync::oneshot;

use crate::adopt;
use crate::bulk::{Load, Tables};
use crate::error::{from_engine, from_io};
use crate::layout::Layout;
use crate::marker::Answered;
use crate::mend::Mender;
use crate::open::{self, Again, Recovery};
use crate::parcel::is_worth_it;
use crate::parts::Parts;
use crate::queue::{Queue, closed};
use crate::reader::{EmbeddedTxn, View, check_writes};
use crate::room::Room;
use crate::settings::Settings;
use crate::size;
use crate::slot::Slot;
use crate::state::State;
use crate::verify::{self, Verification};

/// How often closing checks whether the last memtable is flushed.
const FLUSH_LOOK_MS: u64 = 2;
/// How often a wait for the disk checks whether relaxed commits are synced.
const SETTLE_LOOK_MS: u64 = 5;

/// A shard's store in a directory of its own. Snapshots and transactions that outlive it keep the directory locked.
pub struct EmbeddedStore {
    slot: Arc<Slot>,
    queue: Arc<Queue>,
    recovery: Recovery,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl EmbeddedStore {
    /// Whether there is a store at `path`.
    pub fn exists(path: impl AsRef<Path>) -> bool {
        Layout::new(path.as_ref()).store().is_dir()
    }

    /// Creates an empty store at `path` without opening it.
    pub fn create(path: impl AsRef<Path>, settings: &Settings) -> Result<()> {
        let layout = Layout::new(path.as_ref());
        let _lock = layout.lock()?;
        open::create(&layout, settings)?;
        // Without it the next opening could not tell that nothing was answered yet.
        let path = layout.answered();
        let written = Answered::open(&path).and_then(|mut answered| answered.write(0));
        written.map_err(|error| from_io(path.display(), &error))
    }

    /// Opens the store at `path`, and creates it if there is none.
    pub fn open(path: impl AsRef<Path>, settings: &Settings) -> Result<Self> {
        let layout = Layout::new(path.as_ref());
        let lock = Arc::new(layout.lock()?);
        let opened = open::open(&layout, settings, &lock, Again::default())?;
        let recovery = opened.recovery.clone();
        let room = Room::new(&layout, settings);
        let slot = Arc::new(Slot::new(opened.state.clone(), room, lock));
        // The number of commits on disk may be asked for before the committer's thread runs.
        slot.note_batches(opened.last.number, opened.last.number);
        let queue = Arc::new(Queue::new());
        let settings = settings.clone();
        let mender = Mender { slot: slot.clone(), queue: queue.clone(), layout, settings };
        let thread = std::thread::Builder::new()
            .name("lazuli:committer".to_owned())
            .spawn(move || mender.run(opened))
            .map_err(|error| from_io("the committer's thread", &error))?;
        Ok(Self { slot, queue, recovery, thread: Mutex::new(Some(thread)) })
    }

    /// The result of recovery.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    #[cfg(test)]
    pub(crate) fn room(&self) -> &Room {
        &self.slot.room
    }

    /// How many commits are on disk for certain. It never shrinks: a store with fewer is an older copy.
    pub fn commits_synced(&self) -> u64 {
        self.slot.batches_synced()
    }

    /// Waits until all commits so far are on disk. Only relaxed commits are ever behind.
    pub async fn settle(&self) -> Result<()> {
        let written = self.slot.batches_written();
        while self.commits_synced() < written {
            if let Some(error) = self.slot.why_failed() {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(SETTLE_LOOK_MS)).await;
        }
        Ok(())
    }

    /// Reads everything and reports damage. Takes as long as reading the whole store, and blocks.
    pub fn verify(&self) -> Result<Verification> {
        let view = View::newest(&self.slot);
        let open = view.now().unwrap_or_else(|| Err(closed()))?;
        let _working = open.state.working();
        verify::verify(&open.state.folder, &open.state.keyspaces, &open)
    }

    /// Lets waiting commits be written, then ends the committer.
    fn stop(&self) {
        self.queue.close();
        if let Some(thread) = self.take_thread() {
            // The waiting callers got an error for a panic in there.
            let _ = thread.join();
        }
    }

    fn take_thread(&self) -> Option<JoinHandle<()>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the committer and flushes, in a separate thread: both wait for the disk.
    async fn close_all(&self) -> Result<()> {
        self.queue.close();
        let (committer, slot) = (self.take_thread(), self.slot.clone());
        let (answer, answered) = oneshot::channel();
        let close = move || {
            if let Some(committer) = committer {
                let _ = committer.join();
            }
            let flushed = slot.now().and_then(|state| state.map_or(Ok(()), |it| flush(&it)));
            // The caller may reopen the directory at once, or may have gone.
            drop(slot);
            let _ = answer.send(flushed);
        };
        let thread = std::thread::Builder::new().name("lazuli:close".to_owned()).spawn(close);
        thread.map_err(|error| from_io("the closing thread", &error))?;
        answered.await.unwrap_or_else(|_| Err(Error::internal("close-failed", "closing panicked")))
    }

    async fn write(&self, writes: Vec<Write>) -> Result<()> {
        check_writes(&writes)?;
        self.queue.commit(Vec::new(), writes).await
    }

    pub(crate) async fn write_tables(&self) -> Result<Tables> {
        self.health().check(Intake::default())?;
        Tables::begin(self.slot.engine().await?)
    }

    pub(crate) async fn put_tables(&self, guards: Vec<Bytes>, load: Load) -> Result<()> {
        self.queue.load(guards, load).await
    }

    /// The newest state, in which the guards exist.
    pub(crate) async fn view(&self, guards: &[Bytes]) -> Result<View> {
        let view = View::newest(&self.slot);
        view.open().await?.check_guards(guards)?;
        Ok(view)
    }

    async fn pack_ranges(&self, ranges: &[KeyRange]) -> Result<Packed> {
        let state = self.slot.engine().await?;
        state.check()?;
        let until = state.published().snapshot.seqno();
        if !is_worth_it(&state.keyspaces.data, ranges, until) {
            return Ok(Packed::Nothing);
        }
        drop(state);
        let content = self.queue.pack(ranges.to_vec()).await?;
        Ok(content.map_or(Packed::NotNow, |content| Packed::Parcel(Parcel::new(content))))
    }

    async fn adopt(&self, guards: Vec<Bytes>, parcel: Parcel) -> Result<bool> {
        // Bringing the tables would be in vain without the guards.
        self.view(&guards).await?;
        match parcel.open() {
            Some(content) => adopt::adopt(&self.slot, &self.queue, guards, content).await,
            None => Ok(false),
        }
    }

    async fn delete_keys(&self, range: &KeyRange, keys_max: usize) -> Result<usize> {
        let mut deleted = 0;
        // One round, unless the keys alone exceed the size of a commit.
        loop {
            let view = View::newest(&self.slot);
            let keys = view.open().await?.keys(range, keys_max - deleted, COMMIT_BYTES_MAX / 2)?;
            drop(view);
            if keys.is_empty() {
                return Ok(deleted);
            }
            let count = keys.len();
            self.write(keys.into_iter().map(Write::Delete).collect()).await?;
            deleted += count;
            if deleted >= keys_max {
                return Ok(deleted);
            }
        }
    }
}

/// Flushes memtables, so that the next start has nothing to replay.
fn flush(state: &State) -> Result<()> {
    state.check_engine()?;
    let keyspaces = state.keyspaces.all().map(|(keyspace, _)| keyspace);
    for keyspace in keyspaces {
        keyspace.rotate_memtable().map_err(|error| from_engine(&error))?;
    }
    if state.is_still {
        return keyspaces.into_iter().try_for_each(|keyspace| state.flush_here(keyspace));
    }
    while keyspaces.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0) {
        state.check_engine()?;
        std::thread::sleep(Duration::from_millis(FLUSH_LOOK_MS));
    }
    Ok(())
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Store for EmbeddedStore {
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        _: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        let view = View::newest(&self.slot);
        let checked = view.now().map(|open| open?.check_guards(guards));
        match checked {
            Some(checked) => {
                let view = checked.map(|()| Box::new(view) as Box<dyn Reader>);
                Box::pin(std::future::ready(view))
            }
            // The engine is being opened again.
            None => Box::pin(async move {
                view.open().await?.check_guards(guards)?;
                Ok(Box::new(view) as Box<dyn Reader>)
            }),
        }
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        Box::pin(async move {
            let view = self.view(&guards).await?;
            let txn: Box<dyn Txn> =
                Box::new(EmbeddedTxn { view, guards, queue: self.queue.clone() });
            Ok(txn)
        })
    }

    fn load(&self, guards: Vec<Bytes>) -> Box<dyn Loading + '_> {
        Box::new(Parts::new(self, guards))
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(self.delete_keys(range, keys_max))
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        Box::pin(async move { size::size(&View::newest(&self.slot).open().await?, range) })
    }

    fn handover(&self) -> Option<&dyn Handover> {
        Some(self)
    }

    fn health(&self) -> StoreHealth {
        self.slot.health()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.close_all())
    }
}

impl Handover for EmbeddedStore {
    fn pack<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<Packed>> {
        Box::pin(self.pack_ranges(ranges))
    }

    fn unpack(&self, guards: Vec<Bytes>, parcel: Parcel) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.adopt(guards, parcel))
    }

    fn drop_range<'a>(
        &'a self,
        guards: Vec<Bytes>,
        range: &'a KeyRange,
    ) -> BoxFuture<'a, Result<Dropped>> {
        Box::pin(self.queue.drop_range(guards, range.clone()))
    }
}
