//! The named limits of the engine. What is a matter of taste is in [`crate::Settings`]; these are for safety.

use std::time::Duration;

/// The most one transaction may write, keys and values together. With a batch it stays below the store's limit.
pub const TRANSACTION_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most writes of one transaction.
pub const TRANSACTION_WRITES_MAX: usize = 100_000;
/// The most partitions of one transaction.
pub const TRANSACTION_PARTITIONS_MAX: usize = 64;
/// How long a write waits for a fence to go before it asks the catalog again.
pub const FENCE_WAIT_MAX: Duration = Duration::from_secs(2);
/// How often it looks whether another process has taken the fence down.
pub const FENCE_POLL: Duration = Duration::from_millis(50);
/// A batch takes no further transaction once it holds this much.
pub const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Transactions that may wait in one lane; one more is refused.
pub const LANE_WAITING_MAX: usize = 10_000;
/// Partitions of a shard that are kept warm (lane, counters, hot keys); beyond it idle ones are let go.
pub const PARTITIONS_WARM_MAX: usize = 50_000;
/// Items that are counted on the spot when a partition has no statistics yet; a larger one is counted in the background.
pub const COUNT_AT_ONCE_MAX: usize = 1_000;
