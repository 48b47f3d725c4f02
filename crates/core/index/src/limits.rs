//! The named limits of indexes.

use std::time::Duration;

/// The slices into which the hashes of every index are cut, for ever: the service cuts its indexes in the same way.
pub const SLICES: u16 = 12;
/// The numbers of partitions over which twelve slices can be spread evenly.
pub const PARTITION_COUNTS: [u32; 6] = [1, 2, 3, 4, 6, 12];
/// The most replicas of an index (F2).
pub const REPLICAS_MAX: u32 = 6;
/// The most search units of an index: partitions times replicas (F2).
pub const UNITS_MAX: u32 = 36;
/// The longest key of a document.
pub const KEY_CHARS_MAX: usize = 1_024;
/// The longest document, as text. With its envelope it is one value of the store.
pub const DOCUMENT_BYTES_MAX: usize = 15 * 1024 * 1024;
/// The longest definition of an index. It is kept in the catalog.
pub const DEFINITION_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The longest record beside the indexes: a synonym map, an alias, a key.
pub const RECORD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most records of one kind.
pub const RECORDS_MAX: usize = 1_000;
/// The longest name of an index, an alias or a synonym map.
pub const NAME_CHARS_MAX: usize = 128;
/// The change records that a follower reads in one step.
pub const FOLLOW_CHANGES: usize = 4_000;
/// The documents that a follower reads in one step of a rebuild, and their bytes.
pub const FILL_DOCUMENTS: usize = 2_000;
pub const FILL_BYTES: usize = 4 * 1024 * 1024;
/// Moves that a change of the number of partitions begins at once.
pub const MOVES_AT_ONCE: usize = 4;
/// How long deletions wait for a copy of a text index that is not heard of. It is filled anew when it comes back.
pub const COPY_LOST_AFTER: Duration = Duration::from_secs(600);
