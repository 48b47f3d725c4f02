//! Every limit of this store: times, sizes and counts.

use std::time::Duration;

/// How long one host may take from the first packet to a session that is ready.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
/// How long a caller waits for a connection before it is told that the store is busy.
pub(crate) const ACQUIRE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the other hosts are waited for once one says that it is the primary.
pub(crate) const OTHER_HOSTS_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a database that cannot be reached is left alone before the next attempt.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// The same for a database that answers and refuses.
pub(crate) const REFUSED_INTERVAL: Duration = Duration::from_secs(2);
/// How often the positions of primary and standby are compared.
pub(crate) const STANDBY_LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Positions of the primary that are remembered: as many as are asked for while a standby may be behind and be read.
pub(crate) const STANDBY_MARKS_MAX: usize = 256;
/// How often another standby is looked for while the one in use is too far behind.
pub(crate) const STANDBY_CHOICE_INTERVAL: Duration = Duration::from_secs(5);
/// How long a statement may wait for a row that another transaction has locked.
pub(crate) const LOCK_TIME_MAX: Duration = Duration::from_secs(2);
/// How long one statement may take.
pub(crate) const STATEMENT_TIME_MAX: Duration = Duration::from_secs(30);
/// How long an open transaction may wait for its next statement before the server ends it and its locks.
pub(crate) const IDLE_TRANSACTION_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a commit may take before its outcome counts as unknown, and a second more for this many bytes.
pub(crate) const COMMIT_TIME_MAX: Duration = Duration::from_secs(10);
pub(crate) const COMMIT_BYTES_PER_SECOND: usize = 4 * 1024 * 1024;
/// How long the store asks for the outcome of a commit whose answer was lost.
pub(crate) const OUTCOME_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it waits between two such questions.
pub(crate) const OUTCOME_INTERVAL: Duration = Duration::from_millis(5);
/// How long a transaction that was given up may take to end before its connection is closed.
pub(crate) const CLEAN_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the server and this side keep a silent connection.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
pub(crate) const KEEPALIVE_COUNT: u32 = 3;
/// How long sent bytes may stay without an acknowledgement.
pub(crate) const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(10);
/// How often the server looks whether the client of a running statement is still there.
pub(crate) const CLIENT_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The age at which an idle connection is closed instead of used again.
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(300);

/// The oldest server that is taken, as `server_version_num` has it.
pub(crate) const SERVER_VERSION_LEAST: i32 = 150_000;
/// The part of a key that is in the index. PostgreSQL refuses index rows of more than 2,704 bytes.
pub(crate) const KEY_HEAD_BYTES: usize = 2_000;
/// Keys that one statement of `delete_range` deletes: 10,000 cold ones took seconds.
pub(crate) const DELETE_KEYS_MAX: usize = 1_000;
/// Hosts that one address may name.
pub(crate) const HOSTS_MAX: usize = 16;
/// The longest address.
pub(crate) const ADDRESS_BYTES_MAX: usize = 4 * 1024;
/// The longest name of a schema, as PostgreSQL has it.
pub(crate) const SCHEMA_BYTES_MAX: usize = 63;
/// The longest password.
pub(crate) const PASSWORD_BYTES_MAX: u64 = 4 * 1024;
/// Connections of one kind that a store may be told to keep.
pub(crate) const CONNECTIONS_MAX: usize = 1_000;
/// Reads of single values that share a connection at once. They are sent together and answered one after another, which takes
/// less time of both sides than a connection for each; more of them would wait for each other.
pub(crate) const GETS_PER_CONNECTION: usize = 4;
/// How long a value, a check of guards or a lock may take before the server counts as not answering.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(8);
/// The same for a page of a scan. The server ends a statement before.
pub(crate) const PAGE_TIME_MAX: Duration = Duration::from_secs(32);
/// How long a long snapshot may be used, and how many of them a store has at once: they keep old versions of rows.
pub(crate) const LONG_SNAPSHOT_LIFE_MAX: Duration = Duration::from_secs(600);
pub(crate) const LONG_SNAPSHOTS_MAX: usize = 2;
/// Rows that the first statement of a scan asks for at most, when nothing is known of their sizes.
pub(crate) const FIRST_ROWS_MAX: usize = 1_024;
/// Rows that any statement of a scan asks for at least, if the page may have as many.
pub(crate) const FIRST_ROWS_LEAST: usize = 64;
/// How much of a load is sent at once. Smaller loads are a commit like others.
pub(crate) const LOAD_BYTES: usize = 4 * 1024 * 1024;
/// How long that may take.
pub(crate) const LOAD_PART_TIME_MAX: Duration = Duration::from_secs(60);
/// How much of a COPY is handed to the connection at once.
pub(crate) const COPY_BYTES: usize = 128 * 1024;
/// Rows of a range that are weighed to know its size. A smaller range is measured exactly.
pub(crate) const SAMPLE_ROWS: usize = 1_000;
/// What a row takes up on disk beside its columns: headers in table and index.
pub(crate) const ROW_OVERHEAD_BYTES: u64 = 48;
/// How long a store counts as full after the server said so.
pub(crate) const FULL_TIME: Duration = Duration::from_secs(5);
