//! Which shards do not answer, and how long they are left alone.
//!
//! One failure may be chance, and the next request just tries again. From the second failure in a
//! row on, the shard is left alone for a while that doubles each time; then one request at a time
//! is let through to see whether it is back. The first answer ends it.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use lazuli_store::{Error, Kind, Result};

use crate::ShardId;

/// How a request may go to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// The shard has failed: this request finds out whether it still does.
    Probe,
}

#[derive(Clone, Copy)]
struct Down {
    failures: u32,
    /// When the next request may probe, by the clock's uptime.
    again_at: Duration,
}

pub(super) struct Health {
    backoff_first: Duration,
    backoff_max: Duration,
    down: RwLock<BTreeMap<ShardId, Down>>,
}

impl Health {
    pub(super) fn new(backoff_first: Duration, backoff_max: Duration) -> Self {
        Self { backoff_first, backoff_max, down: RwLock::default() }
    }

    /// How long a shard is left alone after so many failures in a row.
    fn backoff(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(2) else { return Duration::ZERO };
        self.backoff_first.saturating_mul(1 << doublings.min(31)).min(self.backoff_max)
    }

    pub(super) fn failed(&self, shard: ShardId, now: Duration) {
        let mut down = self.down.write().unwrap_or_else(PoisonError::into_inner);
        let state = down.entry(shard).or_insert(Down { failures: 0, again_at: now });
        state.failures = state.failures.saturating_add(1);
        state.again_at = now + self.backoff(state.failures);
    }

    pub(super) fn answered(&self, shard: ShardId) {
        if self.get(shard).is_some() {
            self.down.write().unwrap_or_else(PoisonError::into_inner).remove(&shard);
        }
    }

    fn get(&self, shard: ShardId) -> Option<Down> {
        self.down.read().unwrap_or_else(PoisonError::into_inner).get(&shard).copied()
    }

    pub(super) fn gate(&self, shard: ShardId, now: Duration) -> Result<Gate> {
        if self.get(shard).is_none() {
            return Ok(Gate::Open);
        }
        let mut down = self.down.write().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = down.get_mut(&shard) else { return Ok(Gate::Open) };
        if now < state.again_at {
            let kind = Kind::Unavailable { retry_after: state.again_at - now };
            return Err(Error::new(kind, "shard-down", format!("shard {shard} does not answer")));
        }
        // Others wait as long as they would if the probe failed, so a probe that is lost blocks no request.
        state.again_at = now + self.backoff(state.failures.saturating_add(1));
        Ok(Gate::Probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: ShardId = ShardId(1);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn health() -> Health {
        Health::new(ms(5_000), ms(30_000))
    }

    fn wait(health: &Health, now: Duration) -> Option<Duration> {
        match health.gate(SHARD, now).err()?.kind() {
            Kind::Unavailable { retry_after } => Some(retry_after),
            kind => panic!("{kind:?}"),
        }
    }

    #[test]
    fn the_wait_is_none_then_doubles_up_to_its_limit() {
        let health = health();
        let mut waits = Vec::new();
        for failure in 0..7_u64 {
            let now = ms(failure * 100_000);
            health.failed(SHARD, now);
            waits.push(wait(&health, now).map(|wait| wait.as_millis()));
        }
        let seconds = |s: u128| Some(s * 1000);
        assert_eq!(
            waits,
            [None, seconds(5), seconds(10), seconds(20), seconds(30), seconds(30), seconds(30)]
        );
    }

    #[test]
    fn one_probe_at_a_time_is_let_through() {
        let health = health();
        health.failed(SHARD, ms(0));
        assert_eq!(health.gate(SHARD, ms(1)).unwrap(), Gate::Probe);
        assert_eq!(wait(&health, ms(2)), Some(ms(4_999)));
        health.failed(SHARD, ms(3));
        assert_eq!(wait(&health, ms(3)), Some(ms(5_000)));
        assert_eq!(health.gate(SHARD, ms(5_003)).unwrap(), Gate::Probe);
        assert!(wait(&health, ms(5_003)).is_some());
    }

    #[test]
    fn an_answer_ends_it() {
        let health = health();
        health.failed(SHARD, ms(0));
        health.failed(SHARD, ms(0));
        health.answered(SHARD);
        assert_eq!(health.gate(SHARD, ms(0)).unwrap(), Gate::Open);
        health.failed(SHARD, ms(0));
        assert_eq!(wait(&health, ms(0)), None, "it starts from the beginning");
    }

    #[test]
    fn one_shard_that_is_down_leaves_the_others_alone() {
        let health = health();
        health.failed(SHARD, ms(0));
        health.failed(SHARD, ms(0));
        assert_eq!(health.gate(ShardId(2), ms(0)).unwrap(), Gate::Open);
    }
}
