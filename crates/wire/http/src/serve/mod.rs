//! HTTP as a protocol on a listener: requests of a connection go to a handler, one after another.
//!
//! Invariants: nothing a client sends, or fails to send, holds a connection longer than the limits say; a handler's panic
//! costs the one request it happened in.

pub(crate) mod framing;
mod phase;

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use http::header::{CONNECTION, HOST, HeaderValue};
use http::uri::Authority;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use lazuli_net::budget::FREE_BYTES;
use lazuli_net::{BoxFuture, Budget, Connection, Lease, Metrics, NoRoom, Outcome, Protocol};

use crate::arriving::{Intake, Pace};
use crate::body::Body;
use crate::limits::Limits;
use crate::message::{Request, RequestId, Response};
use phase::{Phase, Watched};

/// What answers the requests of a front.
pub type Handler = Arc<dyn Fn(Request) -> BoxFuture<Response> + Send + Sync>;

/// A handler from a function.
pub fn handler<F>(answer: impl Fn(Request) -> F + Send + Sync + 'static) -> Handler
where
    F: Future<Output = Response> + Send + 'static,
{
    Arc::new(move |request| Box::pin(answer(request)))
}

/// The same handler, with every response counted by operation and status.
pub fn counted(metrics: Arc<Metrics>, handler: Handler) -> Handler {
    Arc::new(move |request| {
        let (began, answer, metrics) = (Instant::now(), handler(request), metrics.clone());
        Box::pin(async move {
            let response = answer.await;
            let outcome = Outcome::Status(response.status.as_u16());
            metrics.observe(response.operation.unwrap_or("unknown"), outcome, began.elapsed());
            response
        })
    })
}

/// A front that speaks HTTP/1.1.
pub struct HttpFront {
    limits: Limits,
    /// The memory of all bodies and responses in flight; other fronts may share it.
    budget: Arc<Budget>,
    metrics: Arc<Metrics>,
    handler: Handler,
    id_high: u64,
    id_next: AtomicU64,
}

impl HttpFront {
    pub fn new(
        limits: Limits,
        budget: Arc<Budget>,
        metrics: Arc<Metrics>,
        handler: Handler,
    ) -> Arc<Self> {
        // Request ids need to be unique, not secret: a random start and a counter do.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let (id_high, id_next) = (hasher.finish(), AtomicU64::new(0));
        Arc::new(Self { limits, budget, metrics, handler, id_high, id_next })
    }

    fn next_id(&self) -> RequestId {
        let low = self.id_next.fetch_add(1, Ordering::Relaxed);
        RequestId(u128::from(self.id_high) << 64 | u128::from(low))
    }

    /// Calls the handler: bounded in time, and with a panic turned into a response.
    async fn handle(&self, request: Request) -> Response {
        // The handler itself runs inside the guard too: it may panic before its future exists.
        let handled = Guarded(Box::pin(async { (self.handler)(request).await }));
        match tokio::time::timeout(self.limits.request_timeout, handled).await {
            Ok(Some(response)) => response,
            Ok(None) => {
                self.metrics.count_panic();
                Response::text(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
            }
            Err(_) => {
                self.metrics.count_timeout();
                Response::text(StatusCode::INTERNAL_SERVER_ERROR, "OperationTimedOut")
            }
        }
    }
}

impl Protocol for HttpFront {
    fn serve(self: Arc<Self>, connection: Connection) -> BoxFuture<()> {
        Box::pin(talk(self, connection))
    }

    fn busy(&self) -> &'static [u8] {
        BUSY.as_bytes()
    }

    fn alpn(&self) -> Option<&'static [u8]> {
        Some(b"http/1.1")
    }
}

/// The response on a connection for which there is no room. Clients of the storage services retry by the error code;
/// others ignore it.
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
     x-ms-error-code: ServerBusy\r\ncontent-type: text/plain; charset=utf-8\r\n\
     content-length: 10\r\n\r\nServerBusy";

/// The same for a request on a connection that goes on.
fn busy() -> Response {
    Response::text(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy")
        .with("x-ms-error-code", "ServerBusy")
        .with("retry-after", "1")
}

/// Where the requests of one connection come from.
struct Caller<'f> {
    peer: SocketAddr,
    secure: bool,
    phase: Phase,
    front: &'f HttpFront,
}

/// Serves the requests of one connection, one after another, until the client leaves, is too slow, or the server stops.
async fn talk(front: Arc<HttpFront>, connection: Connection) {
    let Connection { stream, peer, secure, began, mut stop } = connection;
    let phase = Phase::new(began);
    let socket = Watched::new(stream, phase.clone());
    let limits = &front.limits;
    let caller = &Caller { peer, secure, phase: phase.clone(), front: &front };
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
            // An error means that the client broke off or sent something other than HTTP: there is nothing to answer.
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

/// Answers a request, and takes the memory for that from the budget. A response before the end of the body also ends the
/// connection: the rest of the body is not read, and a further request could not be told from it.
async fn answer(caller: &Caller<'_>, request: http::Request<Incoming>) -> Response {
    let front = caller.front;
    front.metrics.count_request();
    caller.phase.begin_request();
    let intake = (!request.body().is_end_stream()).then(|| Intake::new(front.budget.clone()));
    let is_read = request.method().is_safe();
    let response = match has_one_host(&request) {
        true => front.handle(from_hyper(caller, request, intake.clone())).await,
        false => Response::text(StatusCode::BAD_REQUEST, "a request has exactly one Host header")
            .with(CLOSE.0, CLOSE.1),
    };
    let mut response = held(front, response, is_read);
    let is_unread = intake.is_some_and(|intake| !intake.is_ended());
    if is_unread {
        response.headers.insert(CONNECTION, HeaderValue::from_static(CLOSE.1));
    }
    caller.phase.end_request(is_unread);
    response
}

const CLOSE: (&str, &str) = ("connection", "close");

/// Whether a request names exactly one host. Before HTTP/1.1 it need not name one.
fn has_one_host(request: &http::Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().is_ok_and(is_authority),
        (None, _) => request.version() < http::Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

/// A host, and a port or none; no user.
fn is_authority(host: &str) -> bool {
    !host.contains('@') && host.parse::<Authority>().is_ok()
}

/// The response, with its memory held of the budget until it is sent. Without room, the response to a read becomes 503;
/// the response to a change is sent in any case, because the change is made.
fn held(front: &HttpFront, response: Response, is_read: bool) -> Response {
    let bytes = response.body.bytes_in_memory();
    if bytes <= FREE_BYTES {
        return response;
    }
    let lease = Lease::new(front.budget.clone());
    match lease.hold(bytes) {
        Ok(()) => Response { body: response.body.holding(lease), ..response },
        Err(NoRoom) if is_read => busy(),
        Err(NoRoom) => response,
    }
}

fn from_hyper(
    caller: &Caller<'_>,
    request: http::Request<Incoming>,
    intake: Option<Arc<Intake>>,
) -> Request {
    let (head, body) = request.into_parts();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let limits = &caller.front.limits;
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
        id: caller.front.next_id(),
    }
}

fn to_hyper(response: Response) -> http::Response<Body> {
    let mut out = http::Response::new(response.body);
    *out.status_mut() = response.status;
    *out.headers_mut() = response.headers;
    out
}

/// A future whose panic is `None`. Everything it held is dropped, so no other request sees it half changed.
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
