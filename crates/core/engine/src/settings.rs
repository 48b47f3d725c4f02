//! What an operator may choose about the engine.

use std::time::Duration;

use crate::derived::Deriving;
use crate::lease::Leasing;
use crate::outside::Outside;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The most transactions of one batch.
    pub batch_transactions: usize,
    /// How often expired items are swept away. Until then they are hidden, not gone.
    pub sweep_interval: Duration,
    /// The most items that one sweep of a container deletes before others have their turn.
    pub sweep_items: usize,
    /// How many partitions one fan-out asks at a time.
    pub fan_out_parallel: usize,
    /// How often unfinished work (jobs, reference data to spread, garbage) is looked at again.
    pub job_interval: Duration,
    /// How many moves are led at once.
    pub moves_at_once: usize,
    /// How often catalog and local maps are compared.
    pub reconcile_interval: Duration,
    /// Whether requests are timed. Off only to measure what it costs.
    pub latencies: bool,
    /// Whether other processes share the stores.
    pub leasing: Leasing,
    /// How often a process that shares the stores writes a heartbeat (`lease`).
    pub heartbeat: Duration,
    /// What rows stand for outside of the store. Not a choice: it follows from the data models.
    pub outside: Outside,
    /// Which rows follow from others. Not a choice either.
    pub deriving: Deriving,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_transactions: 512,
            sweep_interval: Duration::from_secs(1),
            sweep_items: 1_000,
            fan_out_parallel: 8,
            job_interval: Duration::from_secs(1),
            moves_at_once: 4,
            reconcile_interval: Duration::from_secs(30),
            latencies: true,
            leasing: Leasing::Alone,
            heartbeat: Duration::from_secs(2),
            outside: Outside::default(),
            deriving: Deriving::default(),
        }
    }
}
