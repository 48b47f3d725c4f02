//! The limits of requests and replies.

/// The largest argument.
pub const BULK_BYTES_MAX: usize = 512 * 1024 * 1024;
/// The longest inline command, and the longest line that gives a count or a length.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;
/// The most arguments of one command.
pub const ARGUMENTS_MAX: i64 = 1024 * 1024;
/// The same for a client that has not said who it is.
pub const STRANGER_ARGUMENTS_MAX: i64 = 10;
/// The largest argument of such a client.
pub const STRANGER_BULK_BYTES_MAX: i64 = 16 * 1024;
/// The largest command altogether: ranges of it are kept in 32 bits.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// How deeply replies may be nested where they are read.
pub const ANSWER_DEPTH_MAX: usize = 64;
