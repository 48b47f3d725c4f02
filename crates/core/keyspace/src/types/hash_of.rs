//! The hash of members and fields, seeded once per process so that nobody outside can choose keys that collide.

use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

static SEED: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);

/// Sets the seed of all tables of the process. It must be called before the first value exists. The order in which
/// collections are walked never depends on it.
pub fn seed_hashes(seed: u64) {
    SEED.store(seed, Ordering::Relaxed);
}

pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, SEED.load(Ordering::Relaxed))
}
