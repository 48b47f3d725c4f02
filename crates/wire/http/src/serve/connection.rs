//! One connection: TLS if asked for, then requests one after another until the client leaves, is too slow, or we stop.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use http::header::{CONNECTION, HOST, HeaderValue};
use http::uri::Authority;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::phase::{Phase, Watched};
use super::refusal::busy;
use super::{Door, count};
use crate::arriving::Pace;
use crate::body::Body;
use crate::budget::{FREE_BYTES, Intake, Lease, NoRoom};
use crate::message::{Request, Response};
use crate::stop::Stop;
use crate::tls::Tls;

/// How much of an answer waits in the socket of a client on the same machine. There is no distance that more of it would
/// bridge, and what is sent and taken while it is in the cache costs both sides less.
const LOOPBACK_SEND_BYTES: usize = 256 * 1024;

pub(super) async fn run<H, F>(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<Tls>,
    door: Arc<Door>,
    handler: Arc<H>,
    mut stop: Stop,
) where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    // Small answers must not wait for more to come; a socket that refuses an option still works.
    let _ = stream.set_nodelay(true);
    if peer.ip().is_loopback() {
        let _ = set_socket_send_buffer_size(&stream, LOOPBACK_SEND_BYTES);
    }
    let (began, timeout) = (Instant::now(), door.limits.header_timeout);
    let tls = match tls {
        Some(tls) if tls.plain_too => {
            let greeting = tokio::select! {
                biased;
                () = stop.stopped() => return,
                greeting = timeout_at(began + timeout, greets_with_tls(&stream)) => greeting,
            };
            let Ok(secure) = greeting else { return };
            secure.then_some(tls)
        }
        other => other,
    };
    let caller = Caller { peer, secure: tls.is_some(), door, handler, phase: Phase::new(began) };
    match tls {
        None => talk(stream, caller, stop).await,
        Some(tls) => {
            let handshake = tls.acceptor.accept(stream);
            if let Ok(Ok(stream)) = timeout_at(began + timeout, handshake).await {
                talk(stream, caller, stop).await;
            }
        }
    }
}

/// The first byte of every TLS connection, and of no HTTP request: the record type of a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

pub(super) async fn greets_with_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    // Who leaves without a byte is no client of either.
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0] == TLS_HANDSHAKE
}

/// Where the requests of one connection come from and go to.
struct Caller<H> {
    peer: SocketAddr,
    secure: bool,
    door: Arc<Door>,
    handler: Arc<H>,
    phase: Phase,
}

async fn talk<S, H, F>(socket: S, caller: Caller<H>, mut stop: Stop)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let (door, phase) = (caller.door.clone(), caller.phase.clone());
    let limits = &door.limits;
    let socket = Watched::new(socket, phase.clone());
    let caller = &caller;
    let service = service_fn(|request| async move {
        Ok::<_, Infallible>(to_hyper(answer(caller, request).await))
    });
    let connection = http1::Builder::new()
        .max_headers(limits.header_count_max)
        .max_buf_size(limits.header_buffer_bytes())
        .max_header_size(limits.header_bytes_max)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let mut watch = tokio::time::interval(limits.tick());
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            // An error means that the client broke off or sent what is no HTTP: nothing is left to be said.
            _ = connection.as_mut() => return,
            () = stop.stopped(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = watch.tick() => if phase.is_overdue(limits) {
                return;
            }
        }
    }
}

/// Answers a request, and takes the memory for that from the budget. An answer before the end of the body also ends the
/// connection: what is still to come of the body is not looked at, and no request could be told from it.
async fn answer<H, F>(caller: &Caller<H>, request: http::Request<Incoming>) -> Response
where
    H: Fn(Request) -> F,
    F: Future<Output = Response>,
{
    let door = &caller.door;
    count(&door.counters.requests);
    caller.phase.begin_request();
    let intake = (!request.body().is_end_stream()).then(|| Intake::new(door.budget.clone()));
    let is_read = request.method().is_safe();
    let response = match has_one_host(&request) {
        true => handled(caller, from_hyper(caller, request, intake.clone())).await,
        false => Response::text(StatusCode::BAD_REQUEST, "a request has exactly one Host header")
            .with(CLOSE.0, CLOSE.1),
    };
    let mut response = held(door, response, is_read);
    let is_unread = intake.is_some_and(|intake| !intake.is_ended());
    if is_unread {
        response.headers.insert(CONNECTION, HeaderValue::from_static(CLOSE.1));
    }
    caller.phase.end_request(is_unread);
    response
}

const CLOSE: (&str, &str) = ("connection", "close");

/// Whether it is clear whom a request is sent to. Before HTTP/1.1 a request need not say.
fn has_one_host(request: &http::Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().is_ok_and(is_authority),
        (None, _) => request.version() < http::Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

/// A host, and a port or none. Who a user is has no place there.
fn is_authority(host: &str) -> bool {
    !host.contains('@') && host.parse::<Authority>().is_ok()
}

/// Calls the handler: bounded in time, and with a panic turned into an answer.
async fn handled<H, F>(caller: &Caller<H>, request: Request) -> Response
where
    H: Fn(Request) -> F,
    F: Future<Output = Response>,
{
    let door = &caller.door;
    // The handler itself runs inside the guard too: it may panic before its future exists.
    let handled = Guarded(Box::pin(async { (caller.handler)(request).await }));
    match tokio::time::timeout(door.limits.request_timeout, handled).await {
        Ok(Some(response)) => response,
        Ok(None) => {
            count(&door.counters.panics);
            Response::text(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
        }
        Err(_) => {
            count(&door.counters.timeouts);
            Response::text(StatusCode::INTERNAL_SERVER_ERROR, "OperationTimedOut")
        }
    }
}

/// The answer, with its memory held of the budget until it is sent. Where there is no room for what was only read, the
/// client is asked to come back; the answer to a change is sent in any case, because the change is made.
fn held(door: &Door, response: Response, is_read: bool) -> Response {
    let bytes = response.body.bytes_in_memory();
    if bytes <= FREE_BYTES {
        return response;
    }
    let lease = Lease::new(door.budget.clone());
    match lease.hold(bytes) {
        Ok(()) => Response { body: response.body.holding(lease), ..response },
        Err(NoRoom) if is_read => busy(),
        Err(NoRoom) => response,
    }
}

fn from_hyper<H>(
    caller: &Caller<H>,
    request: http::Request<Incoming>,
    intake: Option<Arc<Intake>>,
) -> Request {
    let (head, body) = request.into_parts();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let limits = &caller.door.limits;
    let (timeout, rate_min) = (limits.body_timeout, limits.body_rate_min);
    let pace = Pace { timeout, rate_min, waited: Duration::ZERO };
    Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: match intake {
            Some(intake) => Body::incoming(body, pace, Some(intake)),
            None => Body::empty(),
        },
        peer: caller.peer,
        secure: caller.secure,
        received_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        id: caller.door.next_id(),
    }
}

fn to_hyper(response: Response) -> http::Response<Body> {
    let mut out = http::Response::new(response.body);
    *out.status_mut() = response.status;
    *out.headers_mut() = response.headers;
    out
}

/// A future whose panic is `None`. What it held is dropped, so nobody sees it half changed.
struct Guarded<F>(Pin<Box<F>>);

impl<F: Future> Future for Guarded<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = AssertUnwindSafe(|| self.0.as_mut().poll(cx));
        match std::panic::catch_unwind(polled) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
            Err(_) => Poll::Ready(None),
        }
    }
}
