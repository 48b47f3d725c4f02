//! Chance that follows from a seed: the same draws in the same order, always.

use std::sync::atomic::{AtomicU64, Ordering};

use lazuli_env::Random;

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64. Forks are independent of each other, so that one more draw in one place leaves all others as they were.
#[derive(Debug)]
pub struct Seeded {
    state: AtomicU64,
}

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self { state: AtomicU64::new(mix(seed)) }
    }

    /// A source of its own for the part called `label`; each call gives another one.
    pub fn fork(&self, label: &str) -> Self {
        let name = label.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        Self::new(self.next_u64() ^ name)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True so often in a thousand times.
    pub fn chance(&self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// An index into something of `length`, which must not be zero.
    pub fn index(&self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    pub fn pick<'a, T>(&self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }
}

impl Random for Seeded {
    fn next_u64(&self) -> u64 {
        mix(self.state.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed))
    }
}

/// Scatters the bits of a number; also the step of the trace's hash.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN_GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_numbers_and_another_one_others() {
        let draws = |seed| {
            let random = Seeded::new(seed);
            let fork = random.fork("a");
            (0..100).map(|_| random.next_u64() ^ fork.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn draws_stay_in_their_bounds_and_reach_them() {
        let random = Seeded::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(3, 5)).collect();
        assert!((3..=5).all(|n| drawn.contains(&n)));
        assert!(drawn.iter().all(|n| (3..=5).contains(n)));
        assert!(!random.chance(0) && random.chance(1000));
    }
}
