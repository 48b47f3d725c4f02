//! How much a session may hold, and how long things may take.

use std::time::Duration;

/// How long a client may take to say who it is.
pub(crate) const STARTUP_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a client may take to read what it is sent.
pub(crate) const WRITE_TIME_MAX: Duration = Duration::from_secs(120);
/// The most prepared statements of one session.
pub(crate) const STATEMENTS_MAX: usize = 10_000;
/// The most portals of one session that are open at once.
pub(crate) const PORTALS_MAX: usize = 1_000;
/// The most messages of a client between two Syncs.
pub(crate) const PIPELINE_MAX: usize = 100_000;
/// The most bytes of them.
pub(crate) const PIPELINE_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// The most settings that a session may change.
pub(crate) const SETTINGS_MAX: usize = 200;
/// The most statements in one Query message.
pub(crate) const QUERY_STATEMENTS_MAX: usize = 10_000;
/// How deep a statement may be nested.
pub(crate) const DEPTH_MAX: usize = 200;
/// The most plans that are kept.
pub(crate) const PLANS_MAX: usize = 5_000;
/// A statement that is longer than this is planned every time.
pub(crate) const PLAN_TEXT_BYTES_MAX: usize = 64 * 1024;
/// The most statements that are prepared on one connection to a shard.
pub(crate) const SHARD_STATEMENTS_MAX: usize = 400;
/// The most connections to one shard.
pub(crate) const SHARD_CONNECTIONS_MAX: usize = 80;
/// How long a session waits for one of them.
pub(crate) const SHARD_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a connection to a shard may take.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection to a shard may be unused.
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(300);
/// The most rows that are gathered for a last step on a shard.
pub(crate) const GATHERED_ROWS_MAX: usize = 1_000_000;
/// The most bytes of them.
pub(crate) const GATHERED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How much is gathered before it is sent to the client.
pub(crate) const OUT_BYTES: usize = 64 * 1024;
/// How long a write waits for the end of a move.
pub(crate) const FENCE_WAIT_MAX: Duration = Duration::from_secs(15);
/// How long to wait before a fenced write is tried again.
pub(crate) const FENCE_RETRY: Duration = Duration::from_millis(20);
/// How often the ledger is looked through for transactions that nobody finishes.
pub(crate) const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// A coordinator that was not seen for so long is taken to be gone.
pub(crate) const COORDINATOR_SILENCE_MAX: Duration = Duration::from_secs(10);
/// The longest row of a COPY.
pub(crate) const COPY_ROW_BYTES_MAX: usize = 64 * 1024 * 1024;
