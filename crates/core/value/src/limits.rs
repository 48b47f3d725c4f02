//! Limits on what is read: depth and sizes.

/// Arrays and objects inside of one another, in a text or a document that comes from outside.
pub const DEPTH_MAX: usize = 128;

/// The same in encoded values. A row of a query may hold a whole document, and be a few levels deeper.
pub const ENCODED_DEPTH_MAX: usize = 256;

/// Bytes of one JSON text. A front has a lower limit for the items of its service.
pub const TEXT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of one encoded value. Lengths inside of it have four bytes.
pub const ENCODED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a string, or of the canonical form of an array or object, that an order key holds as they are. What is longer
/// is cut there and gets a hash of the whole.
pub const KEY_PREFIX_BYTES_MAX: usize = 256;
