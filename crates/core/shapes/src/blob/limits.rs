//! The named limits of blobs.

/// Contents and blocks up to this size are kept in rows; larger ones are files.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;
/// The most blocks that a block list may name, and the most blocks of an append blob.
pub const BLOCKS_COMMITTED_MAX: usize = 50_000;
/// The most blocks that may wait for a commit.
pub const BLOCKS_UNCOMMITTED_MAX: usize = 100_000;
/// The longest id of a block, decoded.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// Blocks that no commit has named for this long are collected.
pub const UNCOMMITTED_MAX_MS: u64 = 7 * 24 * 3600 * 1000;
/// Pages are written in multiples of this.
pub const PAGE_BYTES: u64 = 512;
/// The most that one write of pages may hold.
pub const PAGES_WRITE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The largest page blob.
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024 * 1024;
/// The pieces of one row, where a content has many.
pub(super) const ROW_PIECES_MAX: usize = 1_000;
/// A row takes no further piece once it holds this much.
pub(super) const ROW_BYTES: usize = 256 * 1024;
/// A container that was read longer ago than this is read again before something is committed to it.
pub(super) const CONTAINER_FRESH_MS: u64 = 10_000;
/// How long the generation of a deleted container is looked after, so that a late write to it is found.
pub const DEAD_GENERATION_MS: u64 = 3600 * 1000;
