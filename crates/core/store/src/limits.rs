//! The sizes that every store takes, whatever it is built on, and how long its snapshots live.

use std::time::Duration;

/// The longest key.
pub const KEY_BYTES_MAX: usize = 16 * 1024;
/// The longest value. Larger things live beside the store as files.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most that one transaction may write, keys and values together.
pub const COMMIT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most items of one page of a scan.
pub const PAGE_ITEMS_MAX: usize = 10_000;
/// The most bytes of one page of a scan, but for its first item.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How old a state may be that reads get which allow an old one. A copy that is further behind is not read.
pub const STALENESS_MAX: Duration = Duration::from_secs(60);
/// How long a snapshot for several reads may be used. Old versions that it keeps slow down rows that change often.
pub const SNAPSHOT_LIFE_MAX: Duration = Duration::from_secs(1);
