//! Waking of readers that wait at the end of a log, right after the commit of an append.
//!
//! A [`Waiter`] is registered before its reader looks, and keeps a wake-up that came while nobody waited. So no append
//! between the look and the wait is missed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_engine::ContainerId;
use tokio::sync::Notify;

/// One partition of one hub.
pub(crate) type LogId = (ContainerId, u32);

#[derive(Default)]
pub(crate) struct Wakes {
    waiting: Mutex<BTreeMap<LogId, Vec<Arc<Notify>>>>,
}

impl Wakes {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<LogId, Vec<Arc<Notify>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all who wait for more in this log.
    pub(crate) fn tell(&self, log: LogId) {
        if let Some(waiting) = self.waiting().get(&log) {
            waiting.iter().for_each(|one| one.notify_one());
        }
    }
}

/// Waits for appends to any of the logs that it was told of. It leaves their lists when it is dropped.
pub struct Waiter {
    wakes: Arc<Wakes>,
    logs: Vec<LogId>,
    woken: Arc<Notify>,
}

impl Waiter {
    pub(crate) fn new(wakes: Arc<Wakes>) -> Self {
        Self { wakes, logs: Vec::new(), woken: Arc::default() }
    }

    /// From now on an append to this log wakes it.
    pub fn watch(&mut self, container: ContainerId, partition: u32) {
        let log = (container, partition);
        if self.logs.contains(&log) {
            return;
        }
        self.wakes.waiting().entry(log).or_default().push(self.woken.clone());
        self.logs.push(log);
    }

    /// Waits for the next append since the last call, or since it was told of the log.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.wakes.waiting();
        for log in &self.logs {
            if let Some(others) = waiting.get_mut(log) {
                others.retain(|one| !Arc::ptr_eq(one, &self.woken));
                if others.is_empty() {
                    waiting.remove(log);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wake_up_before_the_wait_is_kept_and_those_who_left_are_forgotten() {
        let wakes = Arc::new(Wakes::default());
        let mut waiter = Waiter::new(wakes.clone());
        waiter.watch(ContainerId(1), 0);
        waiter.watch(ContainerId(1), 3);
        wakes.tell((ContainerId(1), 2));
        wakes.tell((ContainerId(1), 3));
        waiter.woken().await;
        {
            let again = std::pin::pin!(waiter.woken());
            assert!(poll(again).is_pending());
        }
        drop(waiter);
        assert!(wakes.waiting().is_empty());
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
