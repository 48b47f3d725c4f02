//! What a client of AMQP may take: sizes, counts, depths and times.

use std::sync::Arc;
use std::time::Duration;

use lazuli_net::Budget;

/// How deeply values may be nested.
pub const DEPTH_MAX: u32 = 32;
/// The most values that one performative or one section is made of.
pub const VALUES_MAX: u32 = 100_000;
/// The smallest frame that every peer must take, by the specification.
pub const FRAME_BYTES_MIN: u32 = 512;
/// The most bytes of a frame before the connection is open, by the specification.
pub const SASL_FRAME_BYTES_MAX: usize = 512 * 8;
/// The most bytes that are read from a connection at once.
pub const READ_BYTES: usize = 64 * 1024;
/// What every delivery counts for beside its bytes, where memory is counted.
pub const DELIVERY_BYTES: usize = 512;
/// The most bytes of the tag of a delivery, by the specification, and of the name of a transaction, which is ours.
pub const TAG_BYTES_MAX: usize = 32;
/// The most bytes of the name of a link and of a container.
pub const NAME_BYTES_MAX: usize = 4096;

/// The limits of the connections of one container. Plain data, so that settings can fill it in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest frame that is taken, and sent to clients that take as much.
    pub frame_bytes_max: u32,
    /// The most sessions of one connection.
    pub sessions_max: u16,
    /// The most links of one session.
    pub links_max: u32,
    /// The most links of one connection, in all sessions.
    pub links_of_connection_max: usize,
    /// How many transfers a client may have on the way in one session.
    pub window: u32,
    /// The largest message, all its frames together, where a link sets no limit of its own.
    pub message_bytes_max: usize,
    /// The most bytes of messages that have come in and are not settled. Over it the connection reads no more.
    pub unsettled_bytes_max: usize,
    /// The most bytes of messages of which not all frames have come. Over it the connection is closed.
    pub partial_bytes_max: usize,
    /// The most bytes that wait to be sent before links are told to send no more.
    pub outgoing_bytes_max: usize,
    /// The most deliveries of one link that were sent and are not settled.
    pub unsettled_deliveries_max: usize,
    /// The longest time from the first byte to the `open` of the client.
    pub handshake_timeout: Duration,
    /// The longest time without a frame from the client.
    pub idle_timeout: Duration,
    /// How long a connection may stay open without a link.
    pub unused_timeout: Duration,
    /// How long a client may take to read what is sent to it.
    pub write_timeout: Duration,
    /// The memory that all connections share for messages that came in and are not settled. A message for which there is no
    /// room is rejected with this condition.
    pub memory: Option<(Arc<Budget>, &'static str)>,
    /// How long the front may take to let go of the links of a connection that the client closes.
    pub close_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes_max: 64 * 1024,
            sessions_max: 5_000,
            links_max: 256,
            links_of_connection_max: 5_000,
            window: 5_000,
            message_bytes_max: 1024 * 1024,
            unsettled_bytes_max: 16 * 1024 * 1024,
            partial_bytes_max: 8 * 1024 * 1024,
            outgoing_bytes_max: 1024 * 1024,
            unsettled_deliveries_max: 10_000,
            handshake_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(240),
            unused_timeout: Duration::from_secs(300),
            write_timeout: Duration::from_secs(120),
            memory: None,
            close_timeout: Duration::from_secs(5),
        }
    }
}
