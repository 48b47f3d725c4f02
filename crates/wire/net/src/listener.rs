//! A listener accepts connections for one protocol, within limits, until the stop.
//!
//! Invariants: a connection over the limit, or from an address that is not allowed, is closed at once; a panic in one
//! connection ends that connection alone; after the stop no connection is accepted and open ones end within the drain
//! time-out.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::SendFlags;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::addresses::{self, AddressRange};
use crate::metrics::{Metrics, add};
use crate::stop::Stop;
use crate::stream::Stream;
use crate::tls::Tls;

/// How long to wait after the system refused to hand out a connection, so that a lack of descriptors is no busy loop.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// How much of an answer waits in the socket of a client on the same machine. There is no latency that a larger buffer
/// would hide, and data that is sent and read while it is in the CPU cache costs both sides less.
const LOOPBACK_SEND_BYTES: usize = 256 * 1024;
/// The most connections over the limit that are told so at the same time. Others are closed as soon as the refusal is in
/// the socket's buffer, and without one if they speak TLS.
const REFUSALS_AT_ONCE_MAX: usize = 256;
/// How long one refusal may take altogether.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a refused client may take to show whether it speaks TLS, where both are served.
const GREETING_TIME_MAX: Duration = Duration::from_millis(500);
/// The most that is read of what a refused client has sent meanwhile.
const REFUSAL_READ_BYTES_MAX: u64 = 1024 * 1024;
/// The first byte of every TLS connection: the record type of a handshake. No plain protocol here begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a front speaks.
pub trait Protocol: Send + Sync + 'static {
    /// Serves one connection until its end. After `connection.stop` it finishes what it has begun and returns.
    fn serve(self: Arc<Self>, connection: Connection) -> BoxFuture<()>;

    /// What a client is sent when too many connections are open. Empty if the protocol has no words for that.
    fn busy(&self) -> &'static [u8] {
        b""
    }

    /// The name of the protocol in TLS handshakes (ALPN).
    fn alpn(&self) -> Option<&'static [u8]> {
        None
    }
}

/// One accepted connection, its TLS handshake done.
pub struct Connection {
    pub stream: Stream,
    pub peer: SocketAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    /// When it was accepted.
    pub began: Instant,
    pub stop: Stop,
}

/// The limits of one listener. Plain data, so that settings can fill it in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most connections at once. Further ones are told so and closed.
    pub connections_max: usize,
    /// The longest time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// How long connections may go on after the stop.
    pub drain_timeout: Duration,
    /// The addresses that may connect; empty means all.
    pub allowed: Vec<AddressRange>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            handshake_timeout: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(10),
            allowed: Vec::new(),
        }
    }
}

/// A bound socket that is not served yet.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

impl Listener {
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Tls>,
        limits: Limits,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, tls, limits, metrics })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts until `stop`, then lets open connections finish for the drain time-out and drops the rest.
    pub async fn serve(self, protocol: Arc<dyn Protocol>, mut stop: Stop) {
        let Self { socket, tls, limits, metrics, .. } = self;
        let tls = tls.map(|tls| tls.speaking(protocol.alpn()));
        let room = Semaphore::new(limits.connections_max.clamp(1, Semaphore::MAX_PERMITS));
        let (room, refusals) = (Arc::new(room), Arc::new(Semaphore::new(REFUSALS_AT_ONCE_MAX)));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.stopped() => break,
                Some(ended) = connections.join_next(), if !connections.is_empty() => {
                    metrics.count_ended(&ended);
                    continue;
                }
                accepted = socket.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                add(&metrics.accept_failures, 1);
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            };
            if !addresses::allows(&limits.allowed, peer.ip()) {
                add(&metrics.refused, 1);
                continue;
            }
            let tls = tls.clone();
            let Ok(permit) = room.clone().try_acquire_owned() else {
                add(&metrics.refused, 1);
                let busy = protocol.busy();
                match refusals.clone().try_acquire_owned() {
                    Ok(permit) => {
                        drop(connections.spawn(refuse(stream, tls, busy, metrics.clone(), permit)))
                    }
                    Err(_) => refuse_at_once(&stream, tls.as_ref(), busy),
                }
                continue;
            };
            let open = OpenConnection::count(metrics.clone(), permit);
            let (protocol, stop) = (protocol.clone(), stop.clone());
            let handshake_timeout = limits.handshake_timeout;
            connections.spawn(async move {
                if let Some(connection) =
                    accept(stream, peer, tls, handshake_timeout, &open.metrics, stop).await
                {
                    protocol.serve(connection).await;
                }
            });
        }
        drop(socket);
        let drained = async {
            while let Some(ended) = connections.join_next().await {
                metrics.count_ended(&ended);
            }
        };
        if timeout(limits.drain_timeout, drained).await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// Counts a connection as open until it is dropped, however it ends.
struct OpenConnection {
    metrics: Arc<Metrics>,
    _room: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn count(metrics: Arc<Metrics>, room: OwnedSemaphorePermit) -> Self {
        add(&metrics.opened, 1);
        Self { metrics, _room: room }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        add(&self.metrics.closed, 1);
    }
}

/// Makes the TLS handshake where the listener wants one. None if the client left or was too slow.
async fn accept(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<Tls>,
    handshake_timeout: Duration,
    metrics: &Arc<Metrics>,
    mut stop: Stop,
) -> Option<Connection> {
    // Small answers must not wait for more to come; a socket that refuses an option still works.
    let _ = stream.set_nodelay(true);
    if peer.ip().is_loopback() {
        let _ = set_socket_send_buffer_size(&stream, LOOPBACK_SEND_BYTES);
    }
    let began = Instant::now();
    let deadline = began + handshake_timeout;
    let tls = match tls {
        Some(tls) if tls.plain_too => {
            let greeting = tokio::select! {
                biased;
                () = stop.stopped() => return None,
                greeting = timeout_at(deadline, greets_with_tls(&stream)) => greeting,
            };
            greeting.ok()?.then_some(tls)
        }
        other => other,
    };
    let secure = tls.is_some();
    let stream = match tls {
        None => Stream::plain(stream, metrics.clone()),
        Some(tls) => {
            let accepted = timeout_at(deadline, tls.acceptor.accept(stream)).await.ok()?.ok()?;
            Stream::tls(accepted, metrics.clone())
        }
    };
    Some(Connection { stream, peer, secure, began, stop })
}

async fn greets_with_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    // A client that leaves without a byte speaks neither.
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0] == TLS_HANDSHAKE
}

/// Sends the refusal without waiting for anything: the buffer of a socket that was just made has room for it.
fn refuse_at_once(stream: &TcpStream, tls: Option<&Tls>, busy: &[u8]) {
    if tls.is_none() {
        let _ = rustix::net::send(stream, busy, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// Tells a client that there are too many connections, and closes this one.
async fn refuse(
    stream: TcpStream,
    tls: Option<Tls>,
    busy: &'static [u8],
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
) {
    let refusing = async {
        let secure = match &tls {
            Some(tls) if tls.plain_too => {
                timeout(GREETING_TIME_MAX, greets_with_tls(&stream)).await.unwrap_or(false)
            }
            other => other.is_some(),
        };
        let mut stream = match tls.filter(|_| secure) {
            None => Stream::plain(stream, metrics),
            Some(tls) => Stream::tls(tls.acceptor.accept(stream).await?, metrics),
        };
        stream.write_all(busy).await?;
        stream.shutdown().await?;
        // Closed with bytes unread, the connection would be reset before the client has read the refusal.
        tokio::io::copy(&mut stream.take(REFUSAL_READ_BYTES_MAX), &mut tokio::io::sink()).await
    };
    let _ = timeout(REFUSAL_TIME_MAX, refusing).await;
}
