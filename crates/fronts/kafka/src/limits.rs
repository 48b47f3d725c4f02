//! The named limits of the front.

use std::time::Duration;

/// The longest request.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest request of a client that has not said who it is.
pub(crate) const STRANGER_BYTES_MAX: usize = 16 * 1024;
/// The longest batch of records that is taken, as `message.max.bytes` says.
pub(crate) const BATCH_BYTES_MAX: usize = 1024 * 1024 + 64 * 1024;
/// The longest that the records of a compressed batch may be when they are to be read here.
pub(crate) const DECOMPRESSED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many batches are decompressed at a time.
pub(crate) const DECOMPRESSED_AT_ONCE: usize = 4;
/// The longest record that compaction writes anew; batches with a longer one stay as they are.
pub(crate) const COMPACTED_RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most that one fetch answers, whatever the client asks for, but for its first batch.
pub(crate) const FETCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most batches of one partition in one answer.
pub(crate) const FETCH_BATCHES_MAX: usize = 4_096;
/// The longest time that a fetch waits for records.
pub(crate) const FETCH_WAIT_MAX: Duration = Duration::from_secs(30);
/// The most topics of one request.
pub(crate) const TOPICS_MAX: usize = 1_000;
/// The most partitions of one request.
pub(crate) const PARTITIONS_MAX: usize = 10_000;
/// The most topics that an answer lists.
pub(crate) const TOPICS_LISTED_MAX: usize = 10_000;
/// How long a connection may be silent.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(600);
/// How long a request that has begun to come may take to come.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);
/// How long an answer may take to be read by the client.
pub(crate) const RESPONSE_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a client has to say who it is.
pub(crate) const STRANGER_TIME_MAX: Duration = Duration::from_secs(30);

/// The most groups with members at a time.
pub(crate) const GROUPS_MAX: usize = 10_000;
/// The most members of a group.
pub(crate) const MEMBERS_MAX: usize = 1_000;
/// The most ids that were given to clients that have not joined yet.
pub(crate) const PENDING_MAX: usize = 1_000;
/// The most that all members of all groups say about themselves.
pub(crate) const GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a member may be silent: what a client may choose.
pub(crate) const SESSION_MS: std::ops::RangeInclusive<i32> = 1_000..=1_800_000;
/// The longest time that members have to join again.
pub(crate) const REBALANCE_MAX: Duration = Duration::from_secs(1_800);
/// How long an empty group waits for more members when the first one joins.
pub(crate) const FIRST_JOIN_WAIT: Duration = Duration::from_millis(250);
/// The longest name of a group, a member or an instance.
pub(crate) const NAME_BYTES_MAX: usize = 249;
