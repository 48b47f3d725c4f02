//! A simulated store as its server keeps it: what is durable, the locks, and the commits under way.
//!
//! Several processes use one server at once (`store`). A commit waits in a group until the group is synced; only then is it
//! durable, visible and answered. The server outlives the processes: a commit whose process dies, or whose connection
//! breaks, is aborted, or made at once, or made a while later, but always whole and with its locks held until then. All of
//! it is the contract of `lazuli_store::Store` and nothing more.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::Random;
use lazuli_store::mem::MemStore;
use lazuli_store::{
    Direction, Error, Handover, Item, KeyRange, PageLimit, Result, Store, StoreReason, Write,
};
use tokio::sync::{mpsc, oneshot};

use crate::executor::World;
use crate::faults::{Planted, Weather};
use crate::lock;
use crate::locks::{Locked, Locks};
use crate::process::Life;
use crate::random::Seeded;

/// An atomic write of a store.
pub(crate) enum Job {
    Commit { guards: Vec<Bytes>, writes: Vec<Write> },
    DeleteRange { range: KeyRange, keys_max: usize },
    DropRange { guards: Vec<Bytes>, range: KeyRange },
}

pub(crate) struct Entry {
    pub(crate) job: Job,
    /// Held until the job is done or dropped.
    pub(crate) locked: Option<Locked>,
    /// How many keys were deleted, if that was the job.
    pub(crate) answer: oneshot::Sender<Result<usize>>,
}

/// The longest that a late commit takes beyond its turn.
const LATE_MAX: Duration = Duration::from_millis(300);
/// Within this time every commit is made or aborted whose process has died or was told of an error.
pub(crate) const DECIDED_MAX: Duration = Duration::from_millis(600);

/// What one shard has on disk. Clones mean the same disk.
#[derive(Clone)]
pub struct Disk {
    pub(crate) name: Arc<str>,
    pub(crate) world: World,
    /// Everything that was synced.
    pub(crate) synced: MemStore,
    pub(crate) locks: Locks,
    /// Until when it does not answer any process.
    pub(crate) out_until: Arc<Mutex<Duration>>,
}

impl Disk {
    pub fn new(world: &World, name: &str) -> Self {
        Self {
            name: name.into(),
            world: world.clone(),
            synced: MemStore::packing(),
            locks: Locks::new(world),
            out_until: Arc::default(),
        }
    }

    /// Makes it unavailable for a while.
    pub(crate) fn go_out(&self, time: Duration) {
        let until = self.world.now() + time;
        *lock(&self.out_until) = until;
    }

    /// All durable data, in order. For checks: it costs no time and never fails.
    pub fn items(&self, range: &KeyRange) -> Vec<Item> {
        let mut range = range.clone();
        let mut items = Vec::new();
        loop {
            let page = at_once(self.synced.scan(&range, Direction::Forward, PageLimit::MAX));
            let Ok(page) = page else { return items };
            items.extend(page.items);
            match items.last() {
                Some((last, _)) if page.more => range.start = lazuli_store::after_key(last),
                _ => return items,
            }
        }
    }

    /// Puts items for a test.
    pub(crate) fn put(&self, items: impl Iterator<Item = Item>) {
        let writes = items.map(|(key, value)| Write::Put(key, value)).collect();
        let _ = self.apply(Job::Commit { guards: vec![], writes });
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

/// The in-memory store answers at once, so it can be asked where waiting is not possible.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the in-memory store never waits"),
    }
}

pub(crate) fn down() -> Error {
    Error::unavailable(StoreReason::Down, "the store does not answer")
}

/// Writes the commits of one process, group after group. It is a part of the server: neither a pause nor the death of the
/// process stops it.
pub(crate) struct Committer {
    pub(crate) disk: Disk,
    pub(crate) weather: Arc<Weather>,
    pub(crate) random: Seeded,
    pub(crate) process: Life,
    pub(crate) entries: mpsc::UnboundedReceiver<Entry>,
}

impl Committer {
    pub(crate) async fn run(mut self) {
        while let Some(first) = self.entries.recv().await {
            let mut group = vec![first];
            let most = self.weather.faults.group_max;
            while most == 0 || group.len() < most {
                let Ok(entry) = self.entries.try_recv() else { break };
                group.push(entry);
            }
            self.write(group).await;
        }
    }

    async fn delay(&self, longest: Duration) {
        let delay = self.weather.up_to(longest);
        if !delay.is_zero() {
            self.disk.world.sleep(delay).await;
        }
    }

    async fn write(&mut self, mut group: Vec<Entry>) {
        let faults = self.weather.faults;
        self.delay(faults.sync_max).await;
        if faults.planted == Planted::EarlyAnswers {
            answer_early(&mut group);
            self.delay(faults.sync_max).await;
        }
        let out = self.weather.is_out();
        let mut answers = Vec::new();
        // From here to the next await nothing can come between: the group is synced as one.
        for entry in group {
            if !self.process.is_alive() {
                self.orphan(entry);
            } else if out || self.random.chance(faults.refused_per_mille) {
                // The connection breaks before the commit or after it was sent.
                let Entry { job, locked, answer } = entry;
                answers.push((answer, Err(down())));
                if faults.late && self.random.chance(500) {
                    self.make_late(job, locked);
                }
            } else {
                let applied = self.disk.apply(entry.job);
                drop(entry.locked);
                let is_lost = self.random.chance(faults.lost_answer_per_mille);
                answers.push((entry.answer, if is_lost { Err(down()) } else { applied }));
            }
        }
        self.delay(faults.answer_max).await;
        for (answer, result) in answers {
            // The caller may have stopped listening.
            let _ = answer.send(result);
        }
    }

    /// Decides what becomes of the commit of a dead process.
    fn orphan(&self, entry: Entry) {
        let Entry { mut job, locked, .. } = entry;
        if self.weather.faults.planted == Planted::TornTransactions
            && let Job::Commit { writes, .. } = &mut job
        {
            writes.truncate(self.random.index(writes.len() + 1));
        }
        let fate = self.random.below(3);
        self.disk.world.note(|| format!("{}: a commit of the dead, fate {fate}", self.disk.name));
        match fate {
            0 => {}
            1 => drop(self.disk.apply(job)),
            // The next process opens the store after the end of this one.
            _ if self.weather.faults.is_alone => drop(self.disk.apply(job)),
            _ => self.make_late(job, locked),
        }
    }

    fn make_late(&self, job: Job, locked: Option<Locked>) {
        let (disk, delay) = (self.disk.clone(), self.weather.up_to(LATE_MAX));
        self.disk.world.serve(Box::pin(async move {
            disk.world.sleep(delay).await;
            disk.world.note(|| format!("{}: a late commit", disk.name));
            let _ = disk.apply(job);
            drop(locked);
        }));
    }
}

/// The bug of a canary: says yes before anything is on disk.
fn answer_early(group: &mut [Entry]) {
    for entry in group {
        if let Job::Commit { .. } = &entry.job {
            let (deaf, _) = oneshot::channel();
            let _ = std::mem::replace(&mut entry.answer, deaf).send(Ok(0));
        }
    }
}
