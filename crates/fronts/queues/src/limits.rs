//! What the Queue service takes. Each number is the service's own and can be raised by settings.

/// The limits of the service. Plain data, so that settings can fill it in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most bytes of a request's body.
    pub body_bytes_max: usize,
    /// The most bytes of what a message says.
    pub message_bytes_max: usize,
    /// The most messages of one answer.
    pub page_messages_max: usize,
    /// The most queues of one page of a list.
    pub page_queues_max: usize,
    /// The longest that a message can be hidden.
    pub hidden_seconds_max: u64,
    /// The most messages per second of one queue; without it there is no such limit.
    pub messages_per_second_max: Option<u32>,
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 4 * 1024 * 1024,
            message_bytes_max: 64 * 1024,
            page_messages_max: 32,
            page_queues_max: 5000,
            hidden_seconds_max: 7 * DAY_SECONDS,
            messages_per_second_max: None,
        }
    }
}

/// How long a received message is hidden if the client says nothing.
pub const HIDDEN_SECONDS_DEFAULT: u64 = 30;
/// How long a message lives if the client says nothing. For clients of older versions also the longest that it can.
pub const LIVES_SECONDS_DEFAULT: u64 = 7 * DAY_SECONDS;
/// From this version on a message may live for any time, and forever.
pub const VERSION_WITH_LONG_LIVES: &str = "2017-07-29";
/// The shortest and the longest name of a queue.
pub const QUEUE_NAME_LENGTHS: std::ops::RangeInclusive<usize> = 3..=63;
/// The most bytes of all names and values of a queue's metadata.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;
