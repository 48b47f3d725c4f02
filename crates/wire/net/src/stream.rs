//! The bytes of one connection, plain or over TLS, counted in both directions.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::metrics::Metrics;
use crate::tls::Tls;

pub struct Stream {
    socket: Socket,
    metrics: Arc<Metrics>,
    /// What was read and put back; it is read again first.
    unread: Vec<u8>,
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(crate) fn plain(stream: TcpStream, metrics: Arc<Metrics>) -> Self {
        Self { socket: Socket::Plain(stream), metrics, unread: Vec::new() }
    }

    pub(crate) fn tls(stream: TlsStream<TcpStream>, metrics: Arc<Metrics>) -> Self {
        Self { socket: Socket::Tls(Box::new(stream)), metrics, unread: Vec::new() }
    }

    /// Goes on with TLS, for protocols that begin without it and ask for it. What was put back must have been read.
    pub async fn start_tls(self, tls: &Tls) -> io::Result<Self> {
        match self.socket {
            Socket::Plain(stream) if self.unread.is_empty() => {
                Ok(Self::tls(tls.acceptor.accept(stream).await?, self.metrics))
            }
            _ => Err(io::Error::other("TLS cannot begin here")),
        }
    }

    /// Puts bytes back that were read to find out what the client speaks. They are read again before all others.
    pub fn unread(&mut self, bytes: &[u8]) {
        self.unread.splice(0..0, bytes.iter().copied());
    }

    /// The address that the client has reached: protocols that name their own server tell it to the client.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        match &self.socket {
            Socket::Plain(stream) => stream.local_addr(),
            Socket::Tls(stream) => stream.get_ref().0.local_addr(),
        }
    }
}

/// Calls a method of whichever socket it is.
macro_rules! on_socket {
    ($stream:expr, $socket:ident => $call:expr) => {
        match &mut $stream.get_mut().socket {
            Socket::Plain(stream) => {
                let $socket = Pin::new(stream);
                $call
            }
            Socket::Tls(stream) => {
                let $socket = Pin::new(&mut **stream);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let count = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..count]);
            self.unread.drain(..count);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = on_socket!(self.as_mut(), socket => socket.poll_read(cx, buffer));
        self.metrics.count_received(buffer.filled().len() - before);
        polled
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = on_socket!(self.as_mut(), socket => socket.poll_write(cx, bytes));
        self.metrics.count_sent(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = on_socket!(self.as_mut(), socket => socket.poll_write_vectored(cx, slices));
        self.metrics.count_sent(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        match &self.socket {
            Socket::Plain(stream) => stream.is_write_vectored(),
            Socket::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self, socket => socket.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self, socket => socket.poll_shutdown(cx))
    }
}
