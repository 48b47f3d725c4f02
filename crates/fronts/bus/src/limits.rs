//! What a client of the bus may take.

use std::sync::Arc;
use std::time::Duration;

/// The limits of the front. Plain data, so that settings can fill it in.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub amqp: Arc<lazuli_amqp::Limits>,
}

/// How many messages a sender may have on the way.
pub(crate) const SENDER_CREDIT: u32 = 1_000;
/// How many requests may be on the way on one link.
pub(crate) const REQUEST_CREDIT: u32 = 100;
/// The largest request.
pub(crate) const REQUEST_BYTES_MAX: u64 = 1024 * 1024;
/// The most deliveries that are sent to the shape in one call.
pub(crate) const SEND_AT_ONCE_MAX: usize = 500;
/// The most bytes of them.
pub(crate) const SEND_AT_ONCE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most messages that a link takes from the shape in one call.
pub(crate) const TAKE_AT_ONCE_MAX: usize = 500;
/// The most settlements of one call.
pub(crate) const SETTLE_AT_ONCE_MAX: usize = 1_000;
/// The most tokens of one connection.
pub(crate) const CLAIMS_MAX: usize = 1_000;
/// The most links for replies of one connection.
pub(crate) const REPLY_LINKS_MAX: usize = 1_000;
/// The most replies that wait for the client on one link.
pub(crate) const REPLIES_MAX: usize = 1_000;
/// The most transactions of one connection that are open.
pub(crate) const TRANSACTIONS_MAX: usize = 100;
/// The most bytes of messages in all open transactions of one connection.
pub(crate) const TRANSACTION_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most operations of one transaction.
pub(crate) const TRANSACTION_OPERATIONS_MAX: usize = 100;
/// The most messages that one request peeks, receives, renews or schedules.
pub(crate) const REQUEST_ITEMS_MAX: usize = 1_000;
/// The longest that a client waits for a session, if it names no time.
pub(crate) const SESSION_WAIT: Duration = Duration::from_secs(60);
/// The longest that it may wait.
pub(crate) const SESSION_WAIT_MAX: Duration = Duration::from_secs(30 * 60);
/// How long a client may take to show what it speaks.
pub(crate) const GREETING_TIMEOUT: Duration = Duration::from_secs(20);
/// The most bytes of the head of a request for a WebSocket.
pub(crate) const UPGRADE_BYTES_MAX: usize = 16 * 1024;
/// The longest that the records of a compressed batch may be when they are to be read here.
pub(crate) const DECOMPRESSED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many readers decompress batches at a time.
pub(crate) const DECOMPRESSED_AT_ONCE: usize = 4;
/// How long a link waits at most before it looks again whether its token is good.
pub(crate) const EXPIRY_LOOK: Duration = Duration::from_secs(24 * 3600);
