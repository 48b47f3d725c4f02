//! Settings of a store. Plain data: the caller reads it from the server's settings.

/// When a commit is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After its bytes are on disk. Nothing answered is ever lost.
    Synced,
    /// After its bytes are in the page cache; they are on disk at most [`RELAXED_SYNC_MS_MAX`] later. A crash of the
    /// process loses nothing; a crash of the machine may lose the last commits, but never half a commit.
    Relaxed,
}

/// How long a relaxed commit may wait for its fsync.
pub const RELAXED_SYNC_MS_MAX: u64 = 100;

/// The engine's minimum for its journals.
pub const JOURNAL_BYTES_LEAST: u64 = 64 * 1024 * 1024;

/// Space for some ten thousand deletions and their tables.
const RESERVE_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Memory for cached blocks of tables.
    pub cache_bytes: u64,
    /// Above this size of sealed journals the engine flushes memtables early. At least [`JOURNAL_BYTES_LEAST`].
    pub journal_bytes_max: u64,
    /// The size at which a memtable is flushed. That of the shard's own rows has a quarter of it.
    pub memtable_bytes: u64,
    /// Target size of compacted tables. Fixed when a store is created.
    pub table_bytes: u64,
    pub durability: Durability,
    /// Threads that flush and compact. With two or more, the engine reserves one for flushes by giving it work that
    /// it puts back at once, over and over, while another compacts: that costs a whole core. So a shard has one, and
    /// more shards have more threads.
    pub workers: usize,
    /// Whether an adopted table is hard-linked, where the file system can do that, instead of copied.
    pub shares_tables: bool,
    /// Space that is reserved on disk, so that deletions can be committed when another program has filled the disk.
    pub reserve_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cache_bytes: 64 * 1024 * 1024,
            journal_bytes_max: JOURNAL_BYTES_LEAST,
            memtable_bytes: 16 * 1024 * 1024,
            table_bytes: 64 * 1024 * 1024,
            durability: Durability::Synced,
            workers: 1,
            shares_tables: true,
            reserve_bytes: RESERVE_BYTES,
        }
    }
}
