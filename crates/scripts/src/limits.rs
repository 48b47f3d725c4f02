//! Limits of a script: time, memory, depth, sizes and calls. What a script exceeds ends it, and its transaction with it.

use std::time::Duration;

/// From the start of a procedure or trigger to its end, calls of the host included. For a function: all its calls in one
/// query.
pub const TIME_MAX: Duration = Duration::from_secs(5);

/// After this time calls are no longer accepted, so that a script can return and say how far it has come.
pub const ACCEPT_TIME_MAX: Duration = Duration::from_secs(4);

/// How long after [`TIME_MAX`] a thread may take to notice it. Then the caller goes on without the thread.
pub const GRACE: Duration = Duration::from_secs(1);

/// Heap of one script.
pub const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Stack of one script. The engine raises a `RangeError` beyond it.
pub const STACK_BYTES_MAX: usize = 256 * 1024;

/// Stack of a thread that runs procedures. The engine's own functions need some beyond [`STACK_BYTES_MAX`].
pub const THREAD_STACK_BYTES: usize = 2 * 1024 * 1024;

/// Text of a script.
pub const SOURCE_BYTES_MAX: usize = 1024 * 1024;

/// A body or a result, as JSON text.
pub const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What `console.log` collects. It is sent in a header.
pub const LOG_BYTES_MAX: usize = 8 * 1024;

/// The message or the stack of an exception.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// Calls of the host in one run.
pub const CALLS_MAX: usize = 20_000;

/// Accepted calls that wait for their turn, as JSON text. They are outside of the heap of the script.
pub const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Scripts that run at the same time. Each has a thread.
pub const THREADS_MAX: usize = 8;

/// The limits of one script; tests make them small.
#[derive(Clone, Debug)]
pub struct Limits {
    pub time: Duration,
    pub accept_time: Duration,
    pub grace: Duration,
    pub memory_bytes: usize,
    pub stack_bytes: usize,
    pub result_bytes: usize,
    pub calls: usize,
    pub pending_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: TIME_MAX,
            accept_time: ACCEPT_TIME_MAX,
            grace: GRACE,
            memory_bytes: MEMORY_BYTES_MAX,
            stack_bytes: STACK_BYTES_MAX,
            result_bytes: RESULT_BYTES_MAX,
            calls: CALLS_MAX,
            pending_bytes: PENDING_BYTES_MAX,
        }
    }
}
