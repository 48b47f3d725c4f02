//! What a connection is waiting for, and since when: the one place that decides whether a client is too slow.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::framing::Framing;
use crate::limits::Limits;

/// How long a client that was answered early may go on sending before its connection is gone. Whatever it sends meanwhile
/// is thrown away: closed with bytes unread, the connection would break before the client has read its answer.
const LINGER: Duration = Duration::from_secs(2);
/// How much of it is thrown away at once.
const LINGER_READ_BYTES: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// Between requests, or while the client takes its answer.
    Idle,
    /// A request has begun to come in, or the connection has just begun.
    Head,
    /// A handler has the request. Its time is bounded by the request time-out.
    Busy,
    /// All is said, and the client has not closed its side yet.
    Closing,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    state: Activity,
    since: Instant,
    /// Whether the body of the last request was left unread.
    is_unread: bool,
    /// What was sent of the answer, and how long the client did not take more of it.
    sent: u64,
    waited: Duration,
    /// Since when the client takes no more.
    stuck: Option<Instant>,
}

/// The phase of one connection, shared by its socket, its handler calls and its watch.
#[derive(Clone)]
pub(super) struct Phase(Arc<Mutex<Kept>>);

impl Phase {
    /// The phase of a connection that began at this moment.
    pub(super) fn new(since: Instant) -> Self {
        Self(Arc::new(Mutex::new(Kept {
            state: Activity::Head,
            since,
            is_unread: false,
            sent: 0,
            waited: Duration::ZERO,
            stuck: None,
        })))
    }

    /// Whether the client has used up its time.
    pub(super) fn is_overdue(&self, limits: &Limits) -> bool {
        let kept = *self.lock();
        match kept.state {
            Activity::Idle => {
                let waited = kept.waited + kept.stuck.map_or(Duration::ZERO, |it| it.elapsed());
                let earned_ms = kept.sent.saturating_mul(1_000) / limits.body_rate_min.max(1);
                let earned = Duration::from_millis(earned_ms);
                kept.since.elapsed() > limits.idle_timeout
                    || waited > limits.idle_timeout.saturating_add(earned)
            }
            Activity::Head => kept.since.elapsed() > limits.header_timeout,
            Activity::Busy => false,
            Activity::Closing => kept.since.elapsed() > LINGER,
        }
    }

    pub(super) fn begin_request(&self) {
        let mut kept = self.lock();
        let (state, since) = (Activity::Busy, Instant::now());
        *kept = Kept { state, since, is_unread: false, sent: 0, waited: Duration::ZERO, ..*kept };
    }

    /// The handler is done with a request, and has read its body or not.
    pub(super) fn end_request(&self, is_unread: bool) {
        let mut kept = self.lock();
        *kept = Kept { state: Activity::Idle, since: Instant::now(), is_unread, ..*kept };
    }

    /// Whether the client may still be sending a body that is not read any more.
    fn lingers(&self) -> bool {
        let mut kept = self.lock();
        if kept.is_unread && kept.state != Activity::Closing {
            *kept = Kept { state: Activity::Closing, since: Instant::now(), ..*kept };
        }
        kept.is_unread
    }

    fn bytes_read(&self) {
        let mut kept = self.lock();
        if kept.state == Activity::Idle {
            *kept = Kept { state: Activity::Head, since: Instant::now(), ..*kept };
        }
    }

    fn written(&self, polled: &Poll<io::Result<usize>>) {
        let mut kept = self.lock();
        match polled {
            Poll::Pending => {
                kept.stuck.get_or_insert_with(Instant::now);
            }
            Poll::Ready(written) => {
                let stuck = kept.stuck.take().map_or(Duration::ZERO, |stuck| stuck.elapsed());
                kept.waited += stuck;
                kept.sent += written.as_ref().map_or(0, |written| *written as u64);
                if kept.state == Activity::Idle {
                    kept.since = Instant::now();
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // It is replaced as a whole, so a panic elsewhere can't leave it half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that tells the phase what it sees, and lets no line feed through that stands alone in a head.
pub(super) struct Watched<S> {
    pub(super) socket: S,
    pub(super) phase: Phase,
    framing: Framing,
    is_shut: bool,
}

impl<S> Watched<S> {
    pub(super) fn new(socket: S, phase: Phase) -> Self {
        Self { socket, phase, framing: Framing::default(), is_shut: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.socket).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.phase.bytes_read();
            this.framing.pass(&mut buffer.filled_mut()[before..]);
        }
        polled
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.phase.written(&polled);
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.socket).poll_write_vectored(cx, slices);
        this.phase.written(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_shut {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
            this.is_shut = true;
        }
        // The watch ends this if the client goes on for too long.
        while this.phase.lingers() {
            let mut bytes = [0; LINGER_READ_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut this.socket).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
