//! What the service takes. Each number is the service's own; those of [`Limits`] can be changed by settings.

use std::time::Duration;

/// The limits that settings can change. Plain data.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most bytes of a request's body, and of an item.
    pub item_bytes_max: usize,
    /// The most bytes of the body of a transactional batch.
    pub batch_bytes_max: usize,
    /// The most bytes of a page of a feed or a query.
    pub page_bytes_max: usize,
    /// The most items of a page if the client leaves it to the server.
    pub page_items_default: usize,
    /// The most items of a page whatever the client asks for.
    pub page_items_max: usize,
    /// How long a query may work on one page.
    pub query_time_max: Duration,
    /// The most request units per second of a physical partition.
    pub physical_partition_units_max: u32,
    /// How many request units per second a container begins with for each physical partition.
    pub initial_partition_units: u32,
    /// The throughput of a container whose creator asks for none.
    pub throughput_default: u32,
    /// Whether requests over the budget of request units are refused.
    pub throttles: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            item_bytes_max: 2 * 1024 * 1024,
            batch_bytes_max: 2 * 1024 * 1024 + 256 * 1024,
            page_bytes_max: 4 * 1024 * 1024,
            page_items_default: 100,
            page_items_max: 1000,
            query_time_max: Duration::from_secs(5),
            physical_partition_units_max: 10_000,
            initial_partition_units: 6_000,
            throughput_default: 400,
            throttles: true,
        }
    }
}

impl Limits {
    /// How many items a page has at most, given what the client asks for.
    pub(crate) fn page_items(&self, asked: Option<usize>) -> usize {
        asked.unwrap_or(self.page_items_default).clamp(1, self.page_items_max)
    }
}

/// The longest id of an item.
pub(crate) const ID_BYTES_MAX: usize = 1023;
/// The longest id of everything else.
pub(crate) const NAME_CHARS_MAX: usize = 255;
/// The most operations of a batch.
pub(crate) const BATCH_OPERATIONS_MAX: usize = 100;
/// The most operations of a patch.
pub(crate) const PATCH_OPERATIONS_MAX: usize = 10;
/// The most bytes of a query's text.
pub(crate) const QUERY_BYTES_MAX: usize = 512 * 1024;
/// The most paths of a hierarchical partition key.
pub(crate) const KEY_PATHS_MAX: usize = 3;
/// The longest header that holds a partition key.
pub(crate) const KEY_HEADER_BYTES_MAX: usize = 16 * 1024;
/// The least throughput of a container or a database, in request units per second.
pub(crate) const THROUGHPUT_MIN: u32 = 400;
/// Throughput comes in steps of this.
pub(crate) const THROUGHPUT_STEP: u32 = 100;
/// The least and the step of the greatest throughput of autoscale.
pub(crate) const AUTOSCALE_STEP: u32 = 1_000;
/// The most throughput that can be asked for, in request units per second.
pub(crate) const THROUGHPUT_MAX: u32 = 1_000_000;
/// How far the clock of a client may be from ours.
pub(crate) const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);
/// For how long writes to a container can be held back.
pub(crate) const HOLD_SECONDS: std::ops::RangeInclusive<u32> = 1..=300;
/// How long resource tokens last.
pub(crate) const TOKEN_SECONDS_DEFAULT: u32 = 3_600;
pub(crate) const TOKEN_SECONDS: std::ops::RangeInclusive<u32> = 600..=86_400;
