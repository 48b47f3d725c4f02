//! SplitMix64: the one pseudo-random generator of the project, for seeded tests, simulation, sampling and ids. It is not
//! for secrets. The same seed gives the same numbers on every machine.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Random;

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that follows from this state: also a good hash of one number.
pub fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN_GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A generator with one owner.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        number
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }

    /// A number from 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Bytes that do not compress.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = (0..count.div_ceil(8)).flat_map(|_| self.next_u64().to_le_bytes());
        words.take(count).collect()
    }
}

/// A generator that several threads share.
#[derive(Debug)]
pub struct SharedSplitMix64(AtomicU64);

impl SharedSplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for SharedSplitMix64 {
    fn next_u64(&self) -> u64 {
        mix(self.0.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation for the seed 1234567.
    const REFERENCE: [u64; 3] =
        [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];

    #[test]
    fn both_generators_give_the_numbers_of_the_reference() {
        let (mut owned, shared) = (SplitMix64::new(1_234_567), SharedSplitMix64::new(1_234_567));
        for expected in REFERENCE {
            assert_eq!((owned.next_u64(), shared.next_u64()), (expected, expected));
        }
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut random = SplitMix64::new(1);
        assert!((0..1_000).all(|_| random.below(7) < 7 && (0.0..1.0).contains(&random.unit())));
        assert_eq!((random.below(0), random.bytes(13).len()), (0, 13));
    }
}
