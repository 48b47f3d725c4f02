//! The named limits of logs.

use std::time::Duration;

/// The longest batch of records, with its index: it is one row of the store.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most records of one batch.
pub const BATCH_RECORDS_MAX: u32 = 100_000;
/// The most partitions of a hub.
pub const PARTITIONS_MAX: u32 = 1_024;
/// The most consumer groups that a hub names.
pub const GROUPS_MAX: usize = 100;
/// The largest file that events are captured in: it is made in memory.
pub const CAPTURE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The longest name of a hub or of a consumer group.
pub const NAME_BYTES_MAX: usize = 249;
/// The most that a consumer may note beside its offset.
pub const OFFSET_NOTE_BYTES_MAX: usize = 4_096;
/// The most offsets that one commit of a group sets.
pub const OFFSETS_AT_ONCE_MAX: usize = 10_000;
/// The most rows that are read to list the groups of a namespace.
pub const GROUPS_LISTED_MAX: usize = 10_000;
/// Batches of an idempotent producer that are recognised when they come again.
pub const PRODUCER_BATCHES: usize = 5;
/// For how long an idempotent producer that sends nothing is remembered, at least.
pub const PRODUCER_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// For how long the offset of a group stays that commits nothing, at least.
pub const OFFSET_LIFE: Duration = Duration::from_secs(60 * 24 * 3600);
/// How long records stay if nothing else is said.
pub const RETENTION_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The batches that one transaction of the retention deletes.
pub const TRIM_BATCHES: usize = 256;
/// How often the retention looks at every log.
pub const RETENTION_INTERVAL: Duration = Duration::from_secs(30);
/// How often a reader that waits looks by itself where other processes share the stores: their appends wake nobody here.
pub const SHARED_POLL: Duration = Duration::from_millis(200);
/// How often an append by key is routed anew while partitions are being added.
pub const LAYOUT_TRIES_MAX: u32 = 60;
/// The wait before such a retry.
pub const LAYOUT_PAUSE: Duration = Duration::from_millis(25);
/// How long a record stays that says that its key is gone, if nothing else is said.
pub const TOMBSTONES_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// How often compaction looks at every log.
pub const COMPACTION_INTERVAL: Duration = Duration::from_secs(10);
/// The keys that one pass over a log remembers, in bytes with what it costs to remember them; the pass ends behind the batch
/// that fills them, and the next one goes on there.
pub const COMPACTION_KEYS_BYTES: usize = 32 * 1024 * 1024;
/// What remembering a key costs besides its bytes.
pub const COMPACTION_KEY_COST: usize = 64;
/// The batches, and bytes of them, that compaction reads or writes at a time. One batch may be longer.
pub const COMPACTION_BATCHES: usize = 64;
pub const COMPACTION_BYTES: usize = 1024 * 1024;
/// The times at which a log was compacted that are remembered, so that tombstones stay as long after them as they have to.
pub const HORIZONS_MAX: usize = 32;
/// Into how many parts the life of tombstones is cut: a tombstone may stay so much longer than it has to.
pub const HORIZON_STEPS: u64 = 16;
