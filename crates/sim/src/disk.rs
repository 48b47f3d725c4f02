//! A simulated disk: what survives a crash, and the journal that leads to it.
//!
//! Transactions wait in a group until the group is synced; only then are they durable, visible and answered. A crash
//! before that loses the group, or keeps its first few transactions, each whole (a torn batch). A crash after that loses
//! only the answer. All of it is the contract of `lazuli_store::Store` and nothing more: what the embedded store promises
//! beyond, nobody may lean on.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::Random;
use lazuli_store::mem::MemStore;
use lazuli_store::{Direction, Error, Item, KeyRange, PageLimit, Result, Store, Write};
use tokio::sync::{mpsc, oneshot};

use crate::executor::World;
use crate::faults::{Planted, Weather};
use crate::random::Seeded;

/// What a store writes in one piece.
pub(crate) enum Job {
    Commit { guards: Vec<Bytes>, writes: Vec<Write> },
    DeleteRange { range: KeyRange, keys_max: usize },
    DropRange { guards: Vec<Bytes>, range: KeyRange },
}

pub(crate) struct Entry {
    pub(crate) job: Job,
    /// How many keys were deleted, for those who asked for that.
    pub(crate) answer: oneshot::Sender<Result<usize>>,
}

/// What one shard has on disk. Clones mean the same disk.
#[derive(Clone)]
pub struct Disk {
    pub(crate) name: Arc<str>,
    pub(crate) world: World,
    /// Everything that was synced.
    pub(crate) synced: MemStore,
    /// Until when it does not answer, whoever asks.
    pub(crate) out_until: Arc<Mutex<Duration>>,
}

impl Disk {
    pub fn new(world: &World, name: &str) -> Self {
        Self {
            name: name.into(),
            world: world.clone(),
            synced: MemStore::packing(),
            out_until: Arc::default(),
        }
    }

    /// Does not answer for a while.
    pub(crate) fn go_out(&self, time: Duration) {
        let until = self.world.now() + time;
        *self.out_until.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = until;
    }

    /// Everything that is durable, in order. For checks: it costs no time and never fails.
    pub fn items(&self, range: &KeyRange) -> Vec<Item> {
        let snapshot = self.synced.snapshot();
        let mut range = range.clone();
        let mut items = Vec::new();
        loop {
            let page = at_once(snapshot.scan(&range, Direction::Forward, PageLimit::MAX));
            let Ok(page) = page else { return items };
            items.extend(page.items);
            match items.last() {
                Some((last, _)) if page.more => range.start = lazuli_store::after_key(last),
                _ => return items,
            }
        }
    }

    fn apply(&self, job: Job) -> Result<usize> {
        self.record(&job);
        match job {
            Job::Commit { guards, writes } => {
                let txn = at_once(self.synced.begin(guards))?;
                at_once(txn.commit(writes)).map(|()| 0)
            }
            Job::DeleteRange { range, keys_max } => {
                at_once(self.synced.delete_range(&range, keys_max))
            }
            Job::DropRange { guards, range } => {
                at_once(self.synced.drop_range(guards, &range)).map(|_| 0)
            }
        }
    }

    fn record(&self, job: &Job) {
        let mut trace = self.world.trace();
        trace.bytes(self.name.as_bytes());
        match job {
            Job::Commit { writes, .. } => {
                for write in writes {
                    trace.bytes(write.key());
                    if let Write::Put(_, value) = write {
                        trace.bytes(value);
                    }
                }
            }
            Job::DeleteRange { range, .. } | Job::DropRange { range, .. } => {
                trace.bytes(&range.start)
            }
        }
    }
}

/// The in-memory store answers at once; so it can be asked where nobody may wait.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the in-memory store never waits"),
    }
}

pub(crate) fn down() -> Error {
    Error::unavailable("store-down", "the store does not answer")
}

/// Writes groups to a disk, one after another, for as long as its process lives.
pub(crate) struct Committer {
    pub(crate) disk: Disk,
    pub(crate) weather: Arc<Weather>,
    pub(crate) random: Seeded,
    pub(crate) entries: mpsc::UnboundedReceiver<Entry>,
}

impl Committer {
    pub(crate) async fn run(mut self) {
        while let Some(first) = self.entries.recv().await {
            let mut group = Group { committer: &mut self, entries: vec![first] };
            group.gather();
            group.write().await;
        }
    }

    async fn delay(&self, longest: Duration) {
        let delay = self.weather.up_to(longest);
        if !delay.is_zero() {
            self.disk.world.sleep(delay).await;
        }
    }
}

/// A group on its way to the disk. If it is dropped before it was synced, its process has crashed.
struct Group<'a> {
    committer: &'a mut Committer,
    entries: Vec<Entry>,
}

impl Group<'_> {
    fn gather(&mut self) {
        let most = self.committer.weather.faults.group_max;
        while most == 0 || self.entries.len() < most {
            let Ok(entry) = self.committer.entries.try_recv() else { return };
            self.entries.push(entry);
        }
    }

    async fn write(mut self) {
        let faults = self.committer.weather.faults;
        self.committer.delay(faults.sync_max).await;
        let out = self.committer.weather.is_out();
        let mut answers = Vec::new();
        if faults.planted == Planted::EarlyAnswers {
            self.answer_early();
            self.committer.delay(faults.sync_max).await;
        }
        // From here to the next await nothing can come between: the group is synced as one.
        for Entry { job, answer } in std::mem::take(&mut self.entries) {
            let Committer { disk, random, .. } = &*self.committer;
            let result = if out || random.chance(faults.refused_per_mille) {
                Err(down())
            } else {
                let applied = disk.apply(job);
                if random.chance(faults.lost_answer_per_mille) { Err(down()) } else { applied }
            };
            answers.push((answer, result));
        }
        self.committer.delay(faults.answer_max).await;
        for (answer, result) in answers {
            // Whoever asked may have stopped listening.
            let _ = answer.send(result);
        }
    }
}

impl Group<'_> {
    /// The bug of a canary: says yes before anything is on disk.
    fn answer_early(&mut self) {
        for entry in &mut self.entries {
            if let Job::Commit { .. } = &entry.job {
                let (deaf, _) = oneshot::channel();
                let _ = std::mem::replace(&mut entry.answer, deaf).send(Ok(0));
            }
        }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let Committer { disk, random, .. } = &*self.committer;
        let kept = match random.below(3) {
            0 => 0,
            1 => random.index(self.entries.len() + 1),
            _ => self.entries.len(),
        };
        disk.world.note(|| {
            format!("{}: crash keeps {kept} of {} commits", disk.name, self.entries.len())
        });
        let tears = self.committer.weather.faults.planted == Planted::TornTransactions;
        for Entry { job, .. } in self.entries.drain(..).take(kept) {
            let job = match job {
                Job::Commit { guards, mut writes } if tears => {
                    writes.truncate(random.index(writes.len() + 1));
                    Job::Commit { guards, writes }
                }
                whole => whole,
            };
            // Nobody is left to be told.
            let _ = disk.apply(job);
        }
    }
}
