//! Bounds of the compact forms of collections, as Redis 7.0 has them by default: `OBJECT ENCODING` shows which form is used.

/// Fields of a hash in its compact form.
pub const HASH_PACK_FIELDS: usize = 512;
/// Bytes of a field or a value of a hash in its compact form.
pub const HASH_PACK_BYTES: usize = 64;
/// Members of a set of integers in its compact form.
pub const SET_INTEGERS: usize = 512;
/// Members of a sorted set in its compact form.
pub const ZSET_PACK_MEMBERS: usize = 128;
/// Bytes of a member of a sorted set in its compact form.
pub const ZSET_PACK_BYTES: usize = 64;
/// Bytes of a chunk of a list; one larger item has a chunk of its own.
pub const LIST_CHUNK_BYTES: usize = 8 * 1024;
/// Entries of a block of a stream, deleted ones included.
pub const STREAM_BLOCK_ENTRIES: usize = 100;
/// Bytes of a block of a stream.
pub const STREAM_BLOCK_BYTES: usize = 4096;
/// Bytes of the sparse form of a HyperLogLog.
pub const HLL_SPARSE_BYTES: usize = 3000;
