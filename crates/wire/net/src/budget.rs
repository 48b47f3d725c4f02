//! One budget of memory for all request bodies and responses in flight, shared by the listeners of a process.
//!
//! No request waits for room: a request for which there is none is refused at once, so that two requests cannot deadlock.
//! The first bytes of every body and response are free, so that small requests go on while large ones fill the budget; the
//! limit of connections bounds their sum. A body that is the only one in flight may be larger than the whole budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What every body and every answer may hold without asking.
pub const FREE_BYTES: u64 = 16 * 1024;

/// The most that a body or an answer holds which is passed on piece by piece: a piece that is on its way to the disk or to
/// the client, and the next one.
pub const STREAM_BYTES: u64 = 512 * 1024;

/// How much memory may be in flight, and how much is.
#[derive(Debug)]
pub struct Budget {
    bytes_max: u64,
    held: AtomicU64,
    peak: AtomicU64,
    refused: AtomicU64,
}

impl Budget {
    pub fn new(bytes_max: u64) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self { bytes_max, held: zero(), peak: zero(), refused: zero() })
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// What is in flight now, beyond what is free.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The most that ever was.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// How often there was no room.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes more for a lease that holds `own` already. The only lease that holds anything gets whatever it asks for.
    fn take(&self, own: u64, more: u64) -> bool {
        let fits = |held: u64| {
            let after = held.saturating_add(more);
            (after <= self.bytes_max || held <= own).then_some(after)
        };
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(before) => {
                self.peak.fetch_max(before.saturating_add(more), Ordering::Relaxed);
                true
            }
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// There is no room in the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// What one body or answer holds of a budget. It goes back when this is dropped.
#[derive(Debug)]
pub struct Lease {
    budget: Arc<Budget>,
    held: AtomicU64,
}

impl Lease {
    pub fn new(budget: Arc<Budget>) -> Self {
        Self { budget, held: AtomicU64::new(0) }
    }

    /// Holds this much altogether, if it holds less and there is room. Only one task at a time may call this.
    pub fn hold(&self, bytes: u64) -> Result<(), NoRoom> {
        let own = self.held.load(Ordering::Relaxed);
        let Some(more) = bytes.checked_sub(own).filter(|more| *more > 0) else { return Ok(()) };
        if bytes <= FREE_BYTES {
            return Ok(());
        }
        if !self.budget.take(own, more) {
            return Err(NoRoom);
        }
        self.held.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back everything.
    pub fn release(&self) {
        self.budget.give_back(self.held.swap(0, Ordering::Relaxed));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_and_comes_back() {
        let budget = Budget::new(100_000);
        let (one, two) = (Lease::new(budget.clone()), Lease::new(budget.clone()));
        assert_eq!(one.hold(60_000), Ok(()));
        assert_eq!(two.hold(60_000), Err(NoRoom));
        assert_eq!((budget.held(), budget.refused()), (60_000, 1));
        assert_eq!(two.hold(40_000), Ok(()));
        assert_eq!(one.hold(50_000), Ok(()), "it holds that already");
        assert_eq!(one.hold(60_001), Err(NoRoom));
        drop(one);
        assert_eq!((budget.held(), budget.peak()), (40_000, 100_000));
        two.release();
        drop(two);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn small_ones_are_free_and_who_is_alone_gets_what_it_needs() {
        let budget = Budget::new(20_000);
        let (one, two) = (Lease::new(budget.clone()), Lease::new(budget.clone()));
        assert_eq!(one.hold(FREE_BYTES), Ok(()));
        assert_eq!(budget.held(), 0);
        assert_eq!(one.hold(1_000_000), Ok(()));
        assert_eq!(one.hold(2_000_000), Ok(()));
        assert_eq!(two.hold(FREE_BYTES), Ok(()));
        assert_eq!(two.hold(FREE_BYTES + 1), Err(NoRoom));
        drop(one);
        assert_eq!(two.hold(FREE_BYTES + 1), Ok(()));
    }

    #[test]
    fn many_at_once_never_hold_more_than_there_is() {
        let budget = Budget::new(1_000_000);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let lease = Lease::new(budget.clone());
                        for bytes in [100_000, 200_000, 300_000] {
                            let _ = lease.hold(bytes);
                        }
                    }
                });
            }
        });
        assert_eq!(budget.held(), 0);
        assert!(budget.peak() <= 1_000_000, "{}", budget.peak());
    }
}
