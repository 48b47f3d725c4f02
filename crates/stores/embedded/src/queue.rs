//! The line in front of the committer: bounded in commits and in bytes, taken whole.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use fjall::SeqNo;
use lazuli_store::{Dropped, Error, KeyRange, Result, Write};
use tokio::sync::{Notify, oneshot};

use crate::bulk::Load;
use crate::carry::Carried;
use crate::parcel::Content;

/// What a waiting commit costs, whatever it holds.
const COMMIT_COST_BYTES: usize = 16 * 1024;
/// The most that may wait: while there is more, callers wait before they enter. As much again may be on its way to disk.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A commit on its way.
pub(crate) struct Job {
    pub(crate) guards: Vec<Bytes>,
    pub(crate) writes: Vec<Write>,
    /// What it is instead of writes.
    pub(crate) other: Option<Other>,
    answer: oneshot::Sender<Result<()>>,
    bytes: usize,
}

/// What has a turn of its own.
pub(crate) enum Other {
    /// Items that are in tables already.
    Load(Load),
    /// Tables that are to go, and whoever is to be told how far that came.
    Drop(KeyRange, oneshot::Sender<Dropped>),
    /// Ranges that are to be packed, and whoever is to have what they hold, if it can be had now.
    Pack(Vec<KeyRange>, oneshot::Sender<Option<Content>>),
    /// What comes has sequence numbers below this one.
    Room(SeqNo),
    /// Tables that have come.
    Layer(Carried),
}

impl Job {
    pub(crate) fn answer(self, result: Result<()>) {
        // The caller may have gone: then nobody wants to know.
        let _ = self.answer.send(result);
    }
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// What the jobs cost together.
    bytes: usize,
    closed: bool,
}

impl State {
    /// The line may be over its bound by one commit, which has a bound of its own.
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

/// What the committer finds when it looks.
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

    /// The same for items that are in tables already.
    pub(crate) async fn load(&self, guards: Vec<Bytes>, load: Load) -> Result<()> {
        self.take_turn(guards, Other::Load(load)).await
    }

    /// The same for tables of a range that is to be dropped.
    pub(crate) async fn drop_range(&self, guards: Vec<Bytes>, range: KeyRange) -> Result<Dropped> {
        let (tell, told) = oneshot::channel();
        self.take_turn(guards, Other::Drop(range, tell)).await?;
        // Whoever answers that it went well has told before.
        told.await.map_err(|_| ended())
    }

    /// What the ranges hold, if it can be had now.
    pub(crate) async fn pack(&self, ranges: Vec<KeyRange>) -> Result<Option<Content>> {
        let (tell, told) = oneshot::channel();
        self.take_turn(Vec::new(), Other::Pack(ranges, tell)).await?;
        told.await.map_err(|_| ended())
    }

    /// Has the store count on from there, and everything before written out.
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
        // The committer drops unanswered jobs only when it ends without being asked to.
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Gives the job back if there is no room for it.
    fn push(&self, job: Job) -> Result<Option<Job>> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        if state.is_full() {
            return Ok(Some(job));
        }
        // The committer sleeps only while nothing waits: the first to enter wakes it, for all who follow.
        let is_first = state.jobs.is_empty();
        state.bytes += job.bytes;
        state.jobs.push(job);
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
        Ok(None)
    }

    /// Waits until the committer has taken what waits, if the line is still full.
    async fn room(&self) {
        let emptied = self.emptied.notified();
        // Whoever asks to be told before looking cannot miss it.
        let mut emptied = std::pin::pin!(emptied);
        emptied.as_mut().enable();
        let is_full = self.lock().is_full();
        if is_full {
            emptied.await;
        }
    }

    /// Everything that waits. Blocks until something does, for at most `wait_max` if there is one.
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

    /// No job enters after this; those that wait are still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.emptied.notify_waiters();
        self.filled.notify_one();
    }

    /// Closes, and lets go of those that wait: nobody will take them.
    pub(crate) fn abandon(&self) {
        self.close();
        self.lock().take();
    }
}

pub(crate) fn closed() -> Error {
    Error::unavailable("store-closed", "the store is closed")
}

fn ended() -> Error {
    Error::unavailable("store-failed", "the store's committer ended; start again")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A commit that alone fills the line.
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
