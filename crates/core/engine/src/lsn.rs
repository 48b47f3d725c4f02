//! Log sequence numbers: a hybrid logical clock per shard, so that the numbers of a partition grow along its whole life,
//! whichever shard it lives on, and still tell the time of a write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lazuli_env::Clock;
pub use lazuli_shardmap::figures::Lsn;

/// Hands out growing numbers for one shard.
pub(crate) struct LsnClock {
    clock: Arc<dyn Clock>,
    last: AtomicU64,
}

impl LsnClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, last: AtomicU64::new(0) }
    }

    /// A number greater than every one before, at or after the clock's time.
    pub(crate) fn next_lsn(&self) -> Lsn {
        let now = Lsn::at_ms(self.clock.now_ms()).0;
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let next = now.max(last + 1);
            match self.last.compare_exchange_weak(last, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Lsn(next),
                Err(seen) => last = seen,
            }
        }
    }

    /// The greatest number that was handed out or seen.
    pub(crate) fn latest(&self) -> Lsn {
        Lsn(self.last.load(Ordering::Acquire))
    }

    /// Makes every later number greater than `seen`: called for what a shard finds at start and for what it takes over.
    pub(crate) fn push_past(&self, seen: Lsn) {
        self.last.fetch_max(seen.0, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_and_tell_the_time() {
        let clock = lazuli_env::real::env().clock;
        let before = clock.now_ms();
        let lsns = LsnClock::new(clock);
        let mut last = Lsn::ZERO;
        for _ in 0..100_000 {
            let next = lsns.next_lsn();
            assert!(next > last);
            last = next;
        }
        assert!(last.millis() >= before);
        assert!(last.0 < 1 << 53);
    }

    #[test]
    fn numbers_pass_what_was_seen_elsewhere() {
        let clock = lazuli_env::real::env().clock;
        let ahead = Lsn::at_ms(clock.now_ms() + 60_000);
        let lsns = LsnClock::new(clock);
        lsns.push_past(ahead);
        assert_eq!(lsns.next_lsn(), Lsn(ahead.0 + 1));
        lsns.push_past(Lsn(5));
        assert_eq!(lsns.next_lsn(), Lsn(ahead.0 + 2));
    }
}
