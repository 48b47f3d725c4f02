//! The service's limit of messages per second of a queue (Q1), for who wants to see how a program takes it.
//!
//! A queue has a second's worth of messages in hand. A request is let in while there are some left, and what it takes
//! beyond is paid off before the next one, so that large requests are slow and never impossible.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lazuli_azure::storage_error::CommonCode;
use lazuli_engine::Engine;

use crate::Call;
use crate::error::{Fault, Result};

/// The most queues whose use is remembered. A queue that rested for a second need not be.
const QUEUES_MAX: usize = 10_000;
const SECOND_MS: f64 = 1000.0;

#[derive(Default)]
pub(crate) struct Throttle {
    /// Without it nothing is counted.
    per_second: Option<u32>,
    queues: Mutex<HashMap<(String, String), Budget>>,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    left: f64,
    updated_ms: u64,
}

/// The part of a queue's messages that this process lets in, where several share the queues.
fn share_of(engine: &Engine) -> impl Fn(u32) -> u32 {
    |per_second| engine.share(per_second)
}

impl Throttle {
    pub(crate) fn new(per_second: Option<u32>) -> Self {
        let per_second = per_second.map(|number| number.max(1));
        Self { per_second, ..Self::default() }
    }

    /// Lets a request to a queue's messages in, as the first message of it, or says when to come again.
    pub(crate) fn admit(&self, call: &Call, queue: &str, engine: &Engine) -> Result<()> {
        match self.take(call.account(), queue, 1, call.received_ms, share_of(engine)) {
            Ok(()) => Ok(()),
            Err(after) => Err(Fault::new(CommonCode::ServerBusy).retry_after(after)),
        }
    }

    /// Counts the messages of an answer, the first of which is counted already.
    pub(crate) fn spend(&self, call: &Call, queue: &str, messages: usize, engine: &Engine) {
        let (more, share) = (messages.saturating_sub(1), share_of(engine));
        // The request was let in: what is missing is missing for the next one.
        let _ = self.take(call.account(), queue, more, call.received_ms, share);
    }

    fn take(
        &self,
        account: &str,
        queue: &str,
        messages: usize,
        now_ms: u64,
        share: impl Fn(u32) -> u32,
    ) -> std::result::Result<(), Duration> {
        let Some(per_second) = self.per_second.map(share).map(f64::from) else { return Ok(()) };
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= QUEUES_MAX {
            queues.retain(|_, budget| now_ms.saturating_sub(budget.updated_ms) < SECOND_MS as u64);
        }
        if queues.len() >= QUEUES_MAX {
            queues.clear();
        }
        let key = (account.to_owned(), queue.to_owned());
        let full = Budget { left: per_second, updated_ms: now_ms };
        let budget = queues.entry(key).or_insert(full);
        let passed = now_ms.saturating_sub(budget.updated_ms) as f64 / SECOND_MS;
        budget.left = (budget.left + passed * per_second).min(per_second);
        budget.updated_ms = budget.updated_ms.max(now_ms);
        if budget.left <= 0.0 && messages > 0 {
            return Err(Duration::from_secs_f64((1.0 - budget.left) / per_second));
        }
        budget.left -= messages as f64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_gives_what_it_promises_over_time() {
        let throttle = Throttle::new(Some(100));
        let take = |queue, ms| throttle.take("dev", queue, 1, ms, |all| all).is_ok();
        let let_in = (0..10_000).filter(|ms| take("orders", *ms)).count();
        assert!((1_050..=1_150).contains(&let_in), "10 s at 100 and a burst: {let_in}");
        assert!(take("others", 10_000), "each queue by itself");
    }

    #[test]
    fn what_was_overdrawn_is_paid_off_first() {
        let throttle = Throttle::new(Some(10));
        let take = |messages, ms| throttle.take("dev", "orders", messages, ms, |all| all);
        assert!(take(32, 0).is_ok());
        let wait = take(1, 0).unwrap_err();
        assert!(wait > Duration::from_secs(2) && wait < Duration::from_secs(3), "{wait:?}");
        assert!(take(1, 2_300).is_ok());
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_counted_without_a_limit() {
        let throttle = Throttle::new(Some(10));
        for queue in 0..QUEUES_MAX + 10 {
            assert!(throttle.take("dev", &queue.to_string(), 1, 0, |all| all).is_ok());
        }
        assert!(throttle.queues.lock().unwrap().len() <= QUEUES_MAX);
        let none = Throttle::new(None);
        assert!((0..10_000).all(|_| none.take("dev", "orders", 1, 0, |all| all).is_ok()));
        assert!(none.queues.lock().unwrap().is_empty());
    }
}
