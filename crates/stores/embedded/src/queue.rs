//! The line in front of the committer: bounded in commits and in bytes, taken whole.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use lazuli_store::{Error, Result, Write};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// What a waiting commit costs, whatever it holds.
const COMMIT_COST_BYTES: usize = 16 * 1024;
/// The most that may wait: over it, callers wait before they enter. More than one largest commit.
const WAITING_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The unit in which room is counted.
const UNIT_BYTES: usize = 1024;

/// A commit on its way.
pub(crate) struct Job {
    pub(crate) guards: Vec<Bytes>,
    pub(crate) writes: Vec<Write>,
    answer: oneshot::Sender<Result<()>>,
    /// Gives its room back when the job is done with.
    _room: OwnedSemaphorePermit,
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
    closed: bool,
}

pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    room: Arc<Semaphore>,
}

/// What the committer finds when it looks.
pub(crate) enum Taken {
    Jobs(Vec<Job>),
    Nothing,
    Closed,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            room: Arc::new(Semaphore::new(WAITING_BYTES_MAX / UNIT_BYTES)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for room, then for the answer.
    pub(crate) async fn commit(&self, guards: Vec<Bytes>, writes: Vec<Write>) -> Result<()> {
        let bytes: usize = writes.iter().map(Write::bytes).sum();
        let units = (COMMIT_COST_BYTES + bytes).min(WAITING_BYTES_MAX).div_ceil(UNIT_BYTES);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(units).await.map_err(|_| closed())?;
        let (answer, answered) = oneshot::channel();
        self.push(Job { guards, writes, answer, _room: room })?;
        // The committer drops unanswered jobs only when it ends without being asked to.
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    fn push(&self, job: Job) -> Result<()> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        state.jobs.push(job);
        drop(state);
        self.filled.notify_one();
        Ok(())
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
        Taken::Jobs(std::mem::take(&mut state.jobs))
    }

    /// No job enters after this; those that wait are still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room.close();
        self.filled.notify_one();
    }

    /// Closes, and lets go of those that wait: nobody will take them.
    pub(crate) fn abandon(&self) {
        self.close();
        self.lock().jobs.clear();
    }
}

pub(crate) fn closed() -> Error {
    Error::unavailable("store-closed", "the store is closed")
}

fn ended() -> Error {
    Error::unavailable("store-failed", "the store's committer ended; start again")
}
