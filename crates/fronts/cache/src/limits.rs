//! The limits of the front.

use std::time::Duration;

/// The longest name of a command; longer ones are unknown without being looked for.
pub(crate) const COMMAND_NAME_BYTES_MAX: usize = 64;
/// The longest time that a client may wait for a key.
pub(crate) const TIMEOUT_S_MAX: f64 = 9_007_199_254_740.0;
/// The largest string.
pub(crate) const STRING_BYTES_MAX: usize = 512 * 1024 * 1024;
/// The largest string of a durable cache: it is one row of the store.
pub(crate) const DURABLE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a reply may wait for the store before its connection is closed, because the outcome is unknown.
pub(crate) const STORE_TIME_MAX: Duration = Duration::from_secs(10);
/// How much of what a client sends is read at once.
pub(crate) const READ_BYTES: usize = 16 * 1024;
/// A read buffer that has grown beyond this is given back when it is empty.
pub(crate) const READ_BUFFER_KEPT_BYTES: usize = 256 * 1024;
/// The same for replies.
pub(crate) const REPLY_BUFFER_KEPT_BYTES: usize = 256 * 1024;
/// Replies of a pipeline are sent when so much waits.
pub(crate) const REPLY_BYTES_SENT_AT: usize = 256 * 1024;
/// How long a client may take to read a reply.
pub(crate) const SEND_TIME_MAX: Duration = Duration::from_secs(60);
/// How much messages for one subscriber may wait in memory; beyond it the connection is closed.
pub(crate) const SUBSCRIBER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most commands that one transaction may queue up, in bytes.
pub(crate) const QUEUED_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// How long a client may be connected without saying who it is, where that is needed.
pub(crate) const STRANGER_TIME_MAX: Duration = Duration::from_secs(60);
/// How many users with rules there may be.
pub(crate) const USERS_MAX: usize = 10_000;
/// How long the rules of one may be as text.
pub(crate) const USER_BYTES_MAX: usize = 64 * 1024;
/// How many prefixes one client may be told of, and how long each may be.
pub(crate) const PREFIXES_MAX: usize = 256;
pub(crate) const PREFIX_BYTES_MAX: usize = 4096;
/// How long the server that this one follows may take to be found, to accept and to read.
pub(crate) const SOURCE_CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long it may send nothing.
pub(crate) const SOURCE_SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long it is left alone after a connection to it has ended.
pub(crate) const SOURCE_PAUSE: Duration = Duration::from_secs(1);
/// The longest line of its answers.
pub(crate) const SOURCE_LINE_BYTES_MAX: usize = 4096;
/// How many databases there are.
pub const DATABASES: usize = 16;
