//! Every limit: times, sizes and counts.

use std::time::Duration;

/// How long it may take to connect, TLS included.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long one request may take, with all of its answer.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// How often a request is sent again, and for how long that may go on.
pub(crate) const RETRIES_MAX: usize = 3;
pub(crate) const RETRY_TIME_MAX: Duration = Duration::from_secs(20);
/// Connections that are kept for the next request.
pub(crate) const IDLE_CONNECTIONS_MAX: usize = 32;
/// How long one is kept.
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(30);
/// The largest answer: a range that was asked for, or a page of a list.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The bytes of one part of an object. Services take 5 MiB at the least, and some want all parts to be equal.
pub(crate) const PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts of one object: what S3 takes.
pub(crate) const PARTS_MAX: usize = 10_000;
/// The longest address.
pub(crate) const ADDRESS_BYTES_MAX: usize = 4 * 1024;
/// The longest key.
pub(crate) const KEY_BYTES_MAX: u64 = 4 * 1024;
