//! All text indexes of this process. Each has a feeder, which begins when the index is first seen. One task runs all feeders:
//! they mostly wait, their heavy work is done on blocking threads, and all of them end with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lazuli_engine::{ContainerId, KeyRange, Lsn};
use lazuli_index::{Index, Indexes, Written};
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use crate::error::{Fault, Result};
use crate::limits::{LOOK_INTERVAL, SPREAD_INTERVAL, WAIT_MAX};
use crate::text_index::{Feeder, Visible};

type Seen = watch::Receiver<Option<Arc<Visible>>>;

/// Feeders that are to begin: at most one for each index.
pub(crate) type Wanted = mpsc::UnboundedReceiver<Feeder>;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Texts {
    indexes: Indexes,
    /// One folder for each index below it, named by the number of its container.
    folder: Arc<Path>,
    fed: Arc<Mutex<BTreeMap<ContainerId, Seen>>>,
    wanted: mpsc::UnboundedSender<Feeder>,
    /// One graph of neighbours is built at a time.
    building: Arc<Semaphore>,
    /// Told when an index was given another number of partitions.
    spreading: Arc<Notify>,
}

impl Texts {
    pub(crate) fn new(indexes: Indexes, folder: PathBuf) -> (Self, Wanted) {
        let (fed, spreading) = (Arc::default(), Arc::default());
        let (wanted, receiver) = mpsc::unbounded_channel();
        let building = Arc::new(Semaphore::new(1));
        (Self { indexes, folder: folder.into(), fed, wanted, building, spreading }, receiver)
    }

    /// Feeds all text indexes. Never ends.
    pub(crate) async fn run(self, mut wanted: Wanted) {
        let mut feeders = FuturesUnordered::new();
        let mut looking = std::pin::pin!(self.look_for_indexes());
        loop {
            tokio::select! {
                biased;
                Some(feeder) = wanted.recv() => feeders.push(feeder.run()),
                Some(()) = feeders.next() => {}
                () = &mut looking => {}
            }
        }
    }

    /// Looks for indexes again and again: those of the time before this start, and those that other processes make. Slices of
    /// indexes that were given another number of partitions are moved. Never ends.
    async fn look_for_indexes(&self) {
        let mut is_first = true;
        loop {
            let looked = self.look(is_first).await;
            is_first &= looked.is_err();
            let is_spreading = looked.unwrap_or_else(|fault| {
                let cause = fault.cause().unwrap_or(&fault.message).to_owned();
                tracing::warn!(cause, "search indexes cannot be listed");
                false
            });
            let interval = if is_spreading { SPREAD_INTERVAL } else { LOOK_INTERVAL };
            tokio::select! {
                biased;
                () = self.spreading.notified() => {}
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    /// Has slices moved as the scales of their indexes want it, now.
    pub(crate) fn spread(&self) {
        self.spreading.notify_one();
    }

    /// Looks at all indexes once, and says whether slices of some of them are on their way.
    async fn look(&self, is_first: bool) -> Result<bool> {
        let all = self.indexes.all_indexes().await?;
        if is_first {
            let known: Vec<_> = all.iter().map(|(_, index)| index.id()).collect();
            self.clear(&known).await;
        }
        let mut is_spreading = false;
        for (account, index) in all {
            let index = Arc::new(index);
            is_spreading |= index.is_spreading;
            if index.is_spreading
                && let Err(error) = self.indexes.spread(&account, &index).await
            {
                tracing::warn!(index = index.name, %error, "slices of an index are not moved yet");
            }
            self.feed(&account, &index);
        }
        Ok(is_spreading)
    }

    /// Deletes folders of indexes that are gone.
    async fn clear(&self, known: &[ContainerId]) {
        let (folder, known) = (self.folder.clone(), known.to_vec());
        let clear = move || {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
                if number.is_some_and(|number| !known.contains(&ContainerId(number))) {
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
        };
        let _ = tokio::task::spawn_blocking(clear).await;
    }

    /// What searches of this index see, once there is something.
    pub(crate) fn feed(&self, account: &str, index: &Arc<Index>) -> Seen {
        let mut fed = self.fed.lock().unwrap_or_else(PoisonError::into_inner);
        // A task that has ended has dropped the other side.
        fed.retain(|_, seen| seen.has_changed().is_ok());
        if let Some(seen) = fed.get(&index.id()) {
            return seen.clone();
        }
        let (published, seen) = watch::channel(None);
        let feeder = Feeder {
            indexes: self.indexes.clone(),
            account: account.to_owned(),
            index: index.clone(),
            folder: self.folder.join(index.id().0.to_string()),
            published,
            building: self.building.clone(),
        };
        fed.insert(index.id(), seen.clone());
        // Without the task that runs feeders, the server is about to end and the watch says so.
        let _ = self.wanted.send(feeder);
        seen
    }

    /// What searches see of this index. Waits for a text index that is being opened or filled, and for the definition that the
    /// index has now.
    pub(crate) async fn visible(&self, account: &str, index: &Arc<Index>) -> Result<Arc<Visible>> {
        let is_ready = |visible: &Visible| {
            visible.index.version >= index.version && visible.positions.is_filled()
        };
        self.wait(account, index, is_ready).await
    }

    /// The same, with everything that was answered before.
    pub(crate) async fn visible_with_all(
        &self,
        account: &str,
        index: &Arc<Index>,
    ) -> Result<Arc<Visible>> {
        let writes = self.indexes.last_writes(index).await?;
        let has = |visible: &Visible, (routes, lsn): &(KeyRange, Lsn)| {
            visible.positions.has_all(routes, *lsn)
        };
        let is_ready = |visible: &Visible| {
            visible.index.version >= index.version && writes.iter().all(|one| has(visible, one))
        };
        self.wait(account, index, is_ready).await
    }

    /// Waits until these writes can be found.
    pub(crate) async fn wait_for(
        &self,
        account: &str,
        index: &Arc<Index>,
        written: &[Written],
    ) -> Result<()> {
        let done: Vec<_> = written.iter().filter(|one| one.lsn > Lsn::ZERO).collect();
        let is_ready =
            |visible: &Visible| done.iter().all(|one| visible.positions.has(&one.route, one.lsn));
        self.wait(account, index, is_ready).await.map(|_| ())
    }

    async fn wait(
        &self,
        account: &str,
        index: &Arc<Index>,
        is_ready: impl Fn(&Visible) -> bool,
    ) -> Result<Arc<Visible>> {
        let mut seen = self.feed(account, index);
        let ready = seen.wait_for(|visible| visible.as_deref().is_some_and(&is_ready));
        match tokio::time::timeout(WAIT_MAX, ready).await {
            Ok(Ok(visible)) => visible.clone().ok_or_else(|| Fault::no_index(&index.name)),
            // The task has ended: the index is gone.
            Ok(Err(_)) => Err(Fault::no_index(&index.name)),
            Err(_) => {
                let message = format!("The index '{}' is being built. Please retry.", index.name);
                Err(Fault::busy(message, Duration::from_secs(1)))
            }
        }
    }

    /// What searches see now, without waiting.
    pub(crate) fn seen(&self, account: &str, index: &Arc<Index>) -> Option<Arc<Visible>> {
        self.feed(account, index).borrow().clone()
    }
}
