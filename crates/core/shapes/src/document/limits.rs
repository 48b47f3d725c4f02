//! The named limits of documents, as the service has them.

/// The most bytes of an item, as JSON text. The bytes that are stored are about as many.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The most bytes of an id.
pub const ID_BYTES_MAX: usize = 1_023;
/// The most bytes of one component of a partition key.
pub const KEY_BYTES_MAX: usize = 2_048;
/// The same for the first recipe of effective keys, which hashes only so much.
pub const KEY_V1_BYTES_MAX: usize = 2_048;
/// The most operations of a batch.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// The most operations of a patch.
pub const PATCH_OPERATIONS_MAX: usize = 10;
/// The most included and excluded paths of an indexing policy.
pub const POLICY_PATHS_MAX: usize = 1_500;
/// The most composite indexes, and the most paths of one.
pub const COMPOSITES_MAX: usize = 100;
pub const COMPOSITE_PATHS_MAX: usize = 8;
/// The most unique keys, and the most paths of one.
pub const UNIQUE_KEYS_MAX: usize = 10;
pub const UNIQUE_PATHS_MAX: usize = 16;
/// The most entries of one item in the indexes of a container. Beyond it, values deeper in arrays are left out of no index:
/// the item is refused.
pub const ITEM_ENTRIES_MAX: usize = 30_000;
/// The most items that one page of a feed or query holds.
pub const PAGE_ITEMS_MAX: usize = 10_000;
