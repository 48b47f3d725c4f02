//! Seeded randomness: the same seed gives the same numbers in the same order.

use lazuli_env::{Random, SharedSplitMix64, mix};

/// SplitMix64. Forks are independent, so one more draw in one place does not change the others.
#[derive(Debug)]
pub struct Seeded(SharedSplitMix64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(SharedSplitMix64::new(mix(seed)))
    }

    /// An independent source for the part called `label`; each call gives another one.
    pub fn fork(&self, label: &str) -> Self {
        let name = label.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        Self::new(self.next_u64() ^ name)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True this often in a thousand times.
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
        self.0.next_u64()
    }
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
