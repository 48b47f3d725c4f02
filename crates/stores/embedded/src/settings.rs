//! How a store behaves. Plain data: whoever starts the store reads it from wherever settings come from.

/// When a commit is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After its bytes are on disk. Nothing answered is ever lost.
    Synced,
    /// After its bytes are handed to the operating system, which are on disk at most [`RELAXED_SYNC_MS_MAX`] later.
    /// A crash of the process loses nothing; a crash of the machine may lose the last moment, but never half a commit.
    Relaxed,
}

/// How long a relaxed commit may wait for its bytes to be on disk.
pub const RELAXED_SYNC_MS_MAX: u64 = 100;

/// The least that the engine allows for its journals.
pub const JOURNAL_BYTES_LEAST: u64 = 64 * 1024 * 1024;

/// Room for some ten thousand deletions and the tables that they become.
const RESERVE_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Memory for blocks that were read from tables.
    pub cache_bytes: u64,
    /// Over this much in sealed journals the engine writes out memtables early. At least [`JOURNAL_BYTES_LEAST`].
    pub journal_bytes_max: u64,
    /// How much a memtable gathers before it becomes a table. That of the shard's own rows gathers a quarter of it.
    pub memtable_bytes: u64,
    /// How large tables become when they are merged. Taken when a store is created, fixed from then on.
    pub table_bytes: u64,
    pub durability: Durability,
    /// Threads that write tables and compact them. Of two or more, the engine keeps one free for writing tables by
    /// handing it work that it puts back at once, over and over, while another compacts: that costs a whole core. A
    /// shard has one, therefore, and more shards mean more threads.
    pub workers: usize,
    /// Whether a table that comes from another store is the same file in both, where the file system can do that, instead
    /// of a copy of it.
    pub shares_tables: bool,
    /// Space that is set aside on disk, so that deletions can be committed when something else has filled the disk.
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
