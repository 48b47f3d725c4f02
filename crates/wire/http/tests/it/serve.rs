//! The limits of a door, seen from the other side of the socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_http::{Body, BodyError, HttpFront, Limits, Request, Response, StatusCode, handler};
use lazuli_net::{Budget, Listener, Metrics, Stopper, Tls, self_signed, stopper};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const SHORT: Duration = Duration::from_millis(80);
/// Long enough that no test waits for it.
const LONG: Duration = Duration::from_secs(30);

fn limits() -> Limits {
    Limits {
        header_timeout: LONG,
        body_timeout: LONG,
        idle_timeout: LONG,
        request_timeout: LONG,
        ..Limits::default()
    }
}

struct Server {
    address: SocketAddr,
    metrics: Arc<Metrics>,
    stopper: Stopper,
    served: JoinHandle<()>,
}

async fn start(limits: Limits, tls: Option<Tls>) -> Server {
    start_within(limits, lazuli_net::Limits { drain_timeout: LONG, ..Default::default() }, tls)
        .await
}

async fn start_within(limits: Limits, bounds: lazuli_net::Limits, tls: Option<Tls>) -> Server {
    let metrics = Arc::new(Metrics::new("test"));
    let bounds = lazuli_net::Limits { handshake_timeout: limits.header_timeout, ..bounds };
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(any, tls, bounds, metrics.clone()).await.unwrap();
    let address = listener.address();
    let front = HttpFront::new(limits, Budget::new(1 << 30), metrics.clone(), handler(handle));
    let (stopper, stop) = stopper();
    let served = tokio::spawn(listener.serve(front, stop));
    Server { address, metrics, stopper, served }
}

async fn handle(request: Request) -> Response {
    match request.path.as_str() {
        "/panic" => panic!("on purpose"),
        "/slow" => {
            tokio::time::sleep(SHORT * 3).await;
            Response::text(StatusCode::OK, "slow")
        }
        "/never" => std::future::pending().await,
        "/echo" => match request.body.collect(16).await {
            Ok(body) => Response::new(StatusCode::OK).with_body(body),
            Err(BodyError::TooLarge) => Response::new(StatusCode::PAYLOAD_TOO_LARGE),
            Err(BodyError::TimedOut) => Response::new(StatusCode::REQUEST_TIMEOUT),
            Err(BodyError::Broken) => Response::new(StatusCode::BAD_REQUEST),
            Err(BodyError::NoRoom) => Response::new(StatusCode::SERVICE_UNAVAILABLE),
        },
        "/count" => {
            let (mut body, mut bytes): (Body, usize) = (request.body, 0);
            while let Ok(Some(chunk)) = body.chunk().await {
                bytes += chunk.len();
            }
            Response::text(StatusCode::OK, bytes.to_string())
        }
        "/made" => made(Some(11), &["hello ", "", "world"], false),
        "/made-too-short" => made(Some(11), &["hello "], false),
        "/made-too-long" => made(Some(11), &["hello ", "worlds"], false),
        "/made-and-failed" => made(Some(11), &["hello "], true),
        "/streamed" => made(None, &["hello ", "world"], false),
        "/streamed-and-failed" => made(None, &["hello "], true),
        path => Response::text(StatusCode::OK, format!("{path}?{}", request.query)),
    }
}

/// An answer that is made of these pieces, and then ends or fails.
fn made(length: Option<u64>, pieces: &'static [&'static str], fails: bool) -> Response {
    let next = move |pieces: &'static [&'static str]| async move {
        tokio::task::yield_now().await;
        match pieces {
            [piece, rest @ ..] => Ok(Some((piece.as_bytes().into(), rest))),
            [] if fails => Err(BodyError::Broken),
            [] => Ok(None),
        }
    };
    let body = match length {
        Some(length) => Body::made(length, pieces, next),
        None => Body::streamed(pieces, next),
    };
    Response { body, ..Response::new(StatusCode::OK) }
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a text on a connection of its own and reads until the server closes it.
    async fn talk(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = tokio::time::timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap();
        answer
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

async fn read_some(stream: &mut TcpStream) -> String {
    let mut buffer = vec![0; 4096];
    let read = tokio::time::timeout(LONG, stream.read(&mut buffer)).await.unwrap().unwrap();
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

#[tokio::test]
async fn path_and_query_arrive_as_sent() {
    let server = start(limits(), None).await;
    let answer = server.talk(&get("/a%27b?c=%20d")).await;
    assert!(answer.ends_with("/a%27b?c=%20d"), "{answer}");
    assert!(answer.contains("date: "), "{answer}");
}

#[tokio::test]
async fn a_panic_costs_one_request_and_is_counted() {
    let server = start(limits(), None).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert_eq!(status(&read_some(&mut stream).await), "500");
    stream.write_all(b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert_eq!(status(&read_some(&mut stream).await), "200");
    assert_eq!(server.metrics.counts().panics, 1);
    assert_eq!(server.metrics.counts().requests, 2);
}

#[tokio::test]
async fn a_body_is_read_up_to_what_the_handler_takes() {
    let server = start(limits(), None).await;
    let send = |length: &str, body: &str| {
        format!("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{length}\r\n\r\n{body}")
    };
    let whole = server.talk(&send("Content-Length: 16", "0123456789abcdef")).await;
    assert!(whole.ends_with("0123456789abcdef"), "{whole}");
    let declared = server.talk(&send("Content-Length: 17", "")).await;
    assert_eq!(status(&declared), "413");
    let chunks = "9\r\n123456789\r\n9\r\n123456789\r\n0\r\n\r\n";
    let undeclared = server.talk(&send("Transfer-Encoding: chunked", chunks)).await;
    assert_eq!(status(&undeclared), "413");
}

#[tokio::test]
async fn a_body_of_any_length_streams_through() {
    let server = start(limits(), None).await;
    let mut stream = server.connect().await;
    let head = "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..512 {
        stream.write_all(&[b'x'; 65536]).await.unwrap();
    }
    assert!(read_some(&mut stream).await.ends_with("33554432"));
}

#[tokio::test]
async fn a_client_that_stalls_in_its_body_is_told_so() {
    let server = start(Limits { body_timeout: SHORT, ..limits() }, None).await;
    let text = "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\n1";
    assert_eq!(status(&server.talk(text).await), "408");
}

#[tokio::test]
async fn a_client_that_stalls_in_its_head_is_cut_off_though_it_keeps_sending() {
    let server = start(Limits { header_timeout: SHORT, ..limits() }, None).await;
    let mut stream = server.connect().await;
    let start = Instant::now();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await.unwrap();
    while start.elapsed() < LONG {
        if stream.write_all(b"X: y\r\n").await.is_err() {
            break;
        }
        tokio::time::sleep(SHORT / 8).await;
    }
    assert!(start.elapsed() < SHORT * 20, "{:?}", start.elapsed());
    assert_eq!(server.metrics.counts().requests, 0);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = start(Limits { idle_timeout: SHORT, ..limits() }, None).await;
    let start = Instant::now();
    let mut stream = server.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert_eq!(status(&read_some(&mut stream).await), "200");
    assert_eq!(read_some(&mut stream).await, "");
    assert!(start.elapsed() < SHORT * 20, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_handler_may_take_longer_than_an_idle_client() {
    let server = start(Limits { idle_timeout: SHORT, ..limits() }, None).await;
    assert_eq!(status(&server.talk(&get("/slow")).await), "200");
}

#[tokio::test]
async fn a_handler_that_never_ends_is_ended() {
    let server = start(Limits { request_timeout: SHORT, ..limits() }, None).await;
    let answer = server.talk(&get("/never")).await;
    assert!(status(&answer) == "500" && answer.ends_with("OperationTimedOut"), "{answer}");
    assert_eq!(server.metrics.counts().timeouts, 1);
}

#[tokio::test]
async fn headers_are_bounded_in_count() {
    let server = start(Limits { header_count_max: 10, ..limits() }, None).await;
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(11));
    assert_eq!(status(&server.talk(&many).await), "431");
    assert_eq!(server.metrics.counts().requests, 0);
}

#[tokio::test]
async fn a_stop_lets_requests_finish_and_closes_idle_connections() {
    let server = start(limits(), None).await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert_eq!(status(&read_some(&mut idle).await), "200");
    let mut busy = server.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    while server.metrics.counts().requests < 2 {
        tokio::time::sleep(SHORT / 20).await;
    }
    server.stopper.stop();
    assert_eq!(read_some(&mut idle).await, "");
    assert_eq!(status(&read_some(&mut busy).await), "200");
    tokio::time::timeout(LONG, server.served).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    assert_eq!(server.metrics.counts().connections_open, 0);
}

#[tokio::test]
async fn a_stop_waits_no_longer_than_the_drain_time() {
    let server = start_within(
        limits(),
        lazuli_net::Limits { drain_timeout: SHORT, ..Default::default() },
        None,
    )
    .await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    while server.metrics.counts().requests < 1 {
        tokio::time::sleep(SHORT / 20).await;
    }
    server.stopper.stop();
    tokio::time::timeout(LONG / 2, server.served).await.unwrap().unwrap();
}

/// Asks over TLS, trusting this certificate alone.
async fn talk_tls(server: &Server, certificate: &str, text: &str) -> String {
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, server.connect().await).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test]
async fn https_is_served_by_the_same_door() {
    let made = self_signed(&["localhost".into()]).unwrap();
    let tls = Tls::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    let bounds = Limits { header_timeout: SHORT, ..limits() };
    let server = start(bounds, Some(tls)).await;
    let answer = talk_tls(&server, &made.certificate, &get("/tls")).await;
    assert!(answer.ends_with("/tls?"), "{answer}");

    // Who says nothing instead of shaking hands is cut off by the same limit as a slow head.
    assert_eq!(server.talk("").await, "");
}

#[tokio::test]
async fn https_and_http_share_a_port_if_asked_to() {
    let made = self_signed(&["localhost".into()]).unwrap();
    let tls = Tls::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    let alone = start(limits(), Some(tls.clone())).await;
    assert!(!alone.talk(&get("/plain")).await.ends_with("/plain?"));

    let bounds = Limits { header_timeout: SHORT, ..limits() };
    let both = start(bounds, Some(tls.beside_plain())).await;
    assert!(both.talk(&get("/plain")).await.ends_with("/plain?"));
    assert!(talk_tls(&both, &made.certificate, &get("/tls")).await.ends_with("/tls?"));
    assert_eq!(both.talk("").await, "");
}

#[tokio::test]
async fn a_body_is_made_while_it_is_sent_and_breaks_off_if_it_does_not_add_up() {
    let server = start(limits(), None).await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let whole = server.talk(&get("/made")).await;
    assert!(whole.contains("content-length: 11\r\n"), "{whole}");
    assert!(whole.ends_with("\r\n\r\nhello world"), "{whole}");
    let head = server.talk(&get("/made").replace("GET", "HEAD")).await;
    assert!(head.contains("content-length: 11\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    for path in ["/made-too-short", "/made-too-long", "/made-and-failed"] {
        let broken = server.talk(&get(path)).await;
        assert!(broken.contains("content-length: 11\r\n"), "{broken}");
        assert!(broken.ends_with("\r\n\r\nhello "), "{path}: {broken}");
    }
    let streamed = server.talk(&get("/streamed")).await;
    assert!(streamed.contains("transfer-encoding: chunked\r\n"), "{streamed}");
    assert!(streamed.ends_with("6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n"), "{streamed}");
    // Without its last chunk, so that no client takes a part for the whole.
    let broken = server.talk(&get("/streamed-and-failed")).await;
    assert!(broken.ends_with("6\r\nhello \r\n"), "{broken}");
}
