//! Log sequence numbers: a hybrid logical clock per shard, so that the numbers of a partition grow along its whole life,
//! whichever shard it lives on, and still tell the time of a write.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lazuli_env::Clock;

/// Bits below the milliseconds: 4,096 writes in a millisecond before the number runs ahead of the clock.
const COUNTER_BITS: u32 = 12;

/// The number of a write: `milliseconds << 12 | counter`, below 2^53, so that it survives a trip through JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    pub const ZERO: Self = Self(0);

    pub fn at_ms(millis: u64) -> Self {
        Self(millis << COUNTER_BITS)
    }

    pub fn millis(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// The place within its millisecond.
    pub fn counter(self) -> u16 {
        (self.0 & ((1 << COUNTER_BITS) - 1)) as u16
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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
