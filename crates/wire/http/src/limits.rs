//! What a client of HTTP may take: headers and time. Bodies are bounded by the handler that reads them.

use std::time::Duration;

/// The smallest buffer that the HTTP parser works with.
const HEADER_BYTES_MIN: usize = 8 * 1024;

/// The limits of one HTTP front. Plain data, so that settings can fill it in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most header lines of one request.
    pub header_count_max: usize,
    /// The most bytes of the request line and all headers.
    pub header_bytes_max: usize,
    /// The longest time from a request's first byte to the end of its headers. For the first request of a connection it
    /// begins with the connection, a TLS handshake included.
    pub header_timeout: Duration,
    /// The longest wait for the next piece of a body.
    pub body_timeout: Duration,
    /// The least bytes per second, on average, of a body and of a response that the client is slow to read. A transfer that
    /// takes less than [`Limits::body_timeout`], or [`Limits::idle_timeout`], is never too slow.
    pub body_rate_min: u64,
    /// How long a connection may stay open without a request, or without reading more of its response.
    pub idle_timeout: Duration,
    /// The longest time that a handler may take, reading the body included.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_count_max: 100,
            header_bytes_max: 64 * 1024,
            header_timeout: Duration::from_secs(20),
            body_timeout: Duration::from_secs(30),
            body_rate_min: 1024,
            idle_timeout: Duration::from_secs(120),
            request_timeout: Duration::from_secs(300),
        }
    }
}

impl Limits {
    /// The buffer that heads are read into. A smaller limit is checked beside it.
    pub(crate) fn header_buffer_bytes(&self) -> usize {
        self.header_bytes_max.max(HEADER_BYTES_MIN)
    }

    /// How often a connection looks at its own clock: often enough that no limit is passed by more than a quarter.
    pub(crate) fn tick(&self) -> Duration {
        (self.header_timeout.min(self.idle_timeout) / 4).max(Duration::from_millis(10))
    }
}
