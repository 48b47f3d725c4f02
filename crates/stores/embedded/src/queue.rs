//! The queue in front of the committer: bounded in commits and in bytes, taken as a whole.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use fjall::SeqNo;
use lazuli_store::{Dropped, Error, KeyRange, Result, StoreReason, Write};
use tokio::sync::{Notify, oneshot};

use crate::bulk::Load;
use crate::carry::Carried;
use crate::parcel::Content;

/// The minimum cost of a waiting commit.
const COMMIT_COST_BYTES: usize = 16 * 1024;
/// The most that may wait: above it, callers wait before they enqueue. As much again may be in the current batch.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A commit in the queue.
pub(crate) struct Job {
    pub(crate) guards: Vec<Bytes>,
    pub(crate) writes: Vec<Write>,
    /// A job without writes.
    pub(crate) other: Option<Other>,
    answer: oneshot::Sender<Result<()>>,
    bytes: usize,
}

/// A job with its own turn of the committer.
pub(crate) enum Other {
    /// Items that are already in tables.
    Load(Load),
    /// Tables to drop, and the caller, who gets the progress.
    Drop(KeyRange, oneshot::Sender<Dropped>),
    /// Ranges to pack, and the caller, who gets the parcel if it is available now.
    Pack(Vec<KeyRange>, oneshot::Sender<Option<Content>>),
    /// Adopted rows have sequence numbers below this one.
    Room(SeqNo),
    /// Adopted tables.
    Layer(Carried),
}

impl Job {
    pub(crate) fn answer(self, result: Result<()>) {
        // The caller may have gone.
        let _ = self.answer.send(result);
    }
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// The total cost of the jobs.
    bytes: usize,
    closed: bool,
}

impl State {
    /// The queue may exceed its bound by one commit, whose size is bounded too.
    fn is_full(&self) -> bool {
        self.bytes >= WAITING_BYTES_MAX && !self.closed
    }

    fn take(&mut self) -> Vec<Job> {
        self.bytes = 0;
        std::mem::take(&mut self.jobs)
    }
}

pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    emptied: Notify,
}

/// What the committer takes from the queue.
pub(crate) enum Taken {
    Jobs(Vec<Job>),
    Nothing,
    Closed,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), filled: Condvar::new(), emptied: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for room, then for the answer.
    pub(crate) async fn commit(&self, guards: Vec<Bytes>, writes: Vec<Write>) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.enter(Job { guards, writes, other: None, answer, bytes: 0 }, answered).await
    }

    /// The same for items that are already in tables.
    pub(crate) async fn load(&self, guards: Vec<Bytes>, load: Load) -> Result<()> {
        self.take_turn(guards, Other::Load(load)).await
    }

    /// The same for tables of a range to drop.
    pub(crate) async fn drop_range(&self, guards: Vec<Bytes>, range: KeyRange) -> Result<Dropped> {
        let (tell, told) = oneshot::channel();
        self.take_turn(guards, Other::Drop(range, tell)).await?;
        // A successful job has sent its result before.
        told.await.map_err(|_| ended())
    }

    /// A parcel of the ranges, if it is available now.
    pub(crate) async fn pack(&self, ranges: Vec<KeyRange>) -> Result<Option<Content>> {
        let (tell, told) = oneshot::channel();
        self.take_turn(Vec::new(), Other::Pack(ranges, tell)).await?;
        told.await.map_err(|_| ended())
    }

    /// Raises the store's sequence number, and flushes everything before.
    pub(crate) async fn make_room(&self, guards: Vec<Bytes>, until: SeqNo) -> Result<()> {
        self.take_turn(guards, Other::Room(until)).await
    }

    pub(crate) async fn add_layer(&self, guards: Vec<Bytes>, layer: Carried) -> Result<()> {
        self.take_turn(guards, Other::Layer(layer)).await
    }

    async fn take_turn(&self, guards: Vec<Bytes>, other: Other) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let job = Job { guards, writes: Vec::new(), other: Some(other), answer, bytes: 0 };
        self.enter(job, answered).await
    }

    async fn enter(&self, mut job: Job, answered: oneshot::Receiver<Result<()>>) -> Result<()> {
        job.bytes = COMMIT_COST_BYTES + job.writes.iter().map(Write::bytes).sum::<usize>();
        while let Some(refused) = self.push(job)? {
            job = refused;
            self.room().await;
        }
        // The committer drops unanswered jobs only when it fails.
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns the job if there is no room for it.
    fn push(&self, job: Job) -> Result<Option<Job>> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        if state.is_full() {
            return Ok(Some(job));
        }
        // The committer sleeps only while the queue is empty: the first job wakes it, for all that follow.
        let is_first = state.jobs.is_empty();
        state.bytes += job.bytes;
        state.jobs.push(job);
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
        Ok(None)
    }

    /// Waits until the committer has taken the queue, if it is still full.
    async fn room(&self) {
        let emptied = self.emptied.notified();
        // Subscribing before checking cannot miss the notification.
        let mut emptied = std::pin::pin!(emptied);
        emptied.as_mut().enable();
        let is_full = self.lock().is_full();
        if is_full {
            emptied.await;
        }
    }

    /// Takes all waiting jobs. Blocks until there is one, for at most `wait_max` if given.
    pub(crate) fn take(&self, wait_max: Option<Duration>) -> Taken {
        let mut state = self.lock();
        while state.jobs.is_empty() {
            if state.closed {
                return Taken::Closed;
            }
            state = match wait_max {
                None => self.filled.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(wait_max) => {
                    let waited = self.filled.wait_timeout(state, wait_max);
                    let (state, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
                    if timeout.timed_out() && state.jobs.is_empty() && !state.closed {
                        return Taken::Nothing;
                    }
                    state
                }
            };
        }
        let jobs = state.take();
        drop(state);
        self.emptied.notify_waiters();
        Taken::Jobs(jobs)
    }

    /// No job enters after this; waiting ones are still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.emptied.notify_waiters();
        self.filled.notify_one();
    }

    /// Closes, and drops the waiting jobs: no committer will take them.
    pub(crate) fn abandon(&self) {
        self.close();
        self.lock().take();
    }
}

pub(crate) fn closed() -> Error {
    Error::unavailable(StoreReason::Closed, "the store is closed")
}

fn ended() -> Error {
    Error::unavailable(StoreReason::Failed, "the store's committer ended; start again")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A commit that alone fills the queue.
    fn huge() -> Vec<Write> {
        vec![Write::Put("key".into(), vec![0; WAITING_BYTES_MAX].into())]
    }

    fn take(queue: &Queue) -> Vec<Job> {
        match queue.take(None) {
            Taken::Jobs(jobs) => jobs,
            Taken::Nothing | Taken::Closed => panic!("the queue has jobs"),
        }
    }

    #[tokio::test]
    async fn callers_wait_outside_a_full_line_and_enter_when_it_is_taken() {
        let queue = Arc::new(Queue::new());
        let commit = |queue: Arc<Queue>| async move { queue.commit(vec![], huge()).await };
        let first = tokio::spawn(commit(queue.clone()));
        tokio::task::yield_now().await;
        let second = tokio::spawn(commit(queue.clone()));
        tokio::task::yield_now().await;
        let jobs = take(&queue);
        assert_eq!(jobs.len(), 1);
        jobs.into_iter().for_each(|job| job.answer(Ok(())));
        first.await.unwrap().unwrap();
        let jobs = take(&queue);
        assert_eq!(jobs.len(), 1);
        jobs.into_iter().for_each(|job| job.answer(Ok(())));
        second.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn whoever_waits_outside_is_refused_when_the_line_closes() {
        let queue = Arc::new(Queue::new());
        let commit = |queue: Arc<Queue>| async move { queue.commit(vec![], huge()).await };
        let inside = tokio::spawn(commit(queue.clone()));
        tokio::task::yield_now().await;
        let outside = tokio::spawn(commit(queue.clone()));
        tokio::task::yield_now().await;
        queue.abandon();
        assert_eq!(outside.await.unwrap().unwrap_err().code(), closed().code());
        assert_eq!(inside.await.unwrap().unwrap_err().code(), ended().code());
        assert!(queue.commit(vec![], vec![]).await.is_err());
    }
}
