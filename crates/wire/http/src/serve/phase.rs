//! What a connection is waiting for, and since when: the one place where slow clients are told from patient ones.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::limits::Limits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between requests, or while the client takes its answer.
    Idle,
    /// A request has begun to come in.
    Head,
    /// A handler has the request. Its time is bounded by the request time-out.
    Busy,
}

/// The phase of one connection, shared by its socket, its handler calls and its watch.
#[derive(Clone)]
pub(super) struct Phase(Arc<Mutex<(State, Instant)>>);

impl Phase {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new((State::Idle, Instant::now()))))
    }

    /// Whether the client has used up its time.
    pub(super) fn is_overdue(&self, limits: &Limits) -> bool {
        let (state, since) = *self.lock();
        match state {
            State::Idle => since.elapsed() > limits.idle_timeout,
            State::Head => since.elapsed() > limits.header_timeout,
            State::Busy => false,
        }
    }

    pub(super) fn begin_request(&self) {
        *self.lock() = (State::Busy, Instant::now());
    }

    pub(super) fn end_request(&self) {
        *self.lock() = (State::Idle, Instant::now());
    }

    fn bytes_read(&self) {
        let mut phase = self.lock();
        if phase.0 == State::Idle {
            *phase = (State::Head, Instant::now());
        }
    }

    fn bytes_written(&self) {
        let mut phase = self.lock();
        if phase.0 == State::Idle {
            phase.1 = Instant::now();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (State, Instant)> {
        // The pair is replaced as a whole, so a panic elsewhere can't leave it half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that tells the phase what it sees.
pub(super) struct Watched<S> {
    pub(super) socket: S,
    pub(super) phase: Phase,
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
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.socket).poll_write(cx, bytes);
        if polled.is_ready() {
            this.phase.bytes_written();
        }
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.socket).poll_write_vectored(cx, slices);
        if polled.is_ready() {
            this.phase.bytes_written();
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
