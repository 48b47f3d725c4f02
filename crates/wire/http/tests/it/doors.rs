//! What keeps a listener open for others: clients that say nothing, say too much, say it slowly, or say it ambiguously.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_http::{BodyError, HttpFront, Limits, Request, Response, StatusCode, handler};
use lazuli_net::{Budget, Listener, Metrics, Stopper, Tls, self_signed, stopper};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(100);
/// Long enough that no test waits for it.
const LONG: Duration = Duration::from_secs(30);
const MIB: usize = 1024 * 1024;

struct Server {
    address: SocketAddr,
    metrics: Arc<Metrics>,
    budget: Arc<Budget>,
    _stopper: Stopper,
}

fn limits() -> Limits {
    Limits { header_timeout: LONG, idle_timeout: LONG, ..Limits::default() }
}

async fn start(limits: Limits) -> Server {
    start_with(limits, None, 1 << 30).await
}

async fn start_with(limits: Limits, tls: Option<Tls>, budget_bytes: u64) -> Server {
    start_for(4096, limits, tls, budget_bytes).await
}

async fn start_for(
    connections_max: usize,
    limits: Limits,
    tls: Option<Tls>,
    budget_bytes: u64,
) -> Server {
    let budget = Budget::new(budget_bytes);
    let metrics = Arc::new(Metrics::new("test"));
    let handshake_timeout = limits.header_timeout;
    let bounds =
        lazuli_net::Limits { connections_max, handshake_timeout, ..lazuli_net::Limits::default() };
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(any, tls, bounds, metrics.clone()).await.unwrap();
    let address = listener.address();
    let front = HttpFront::new(limits, budget.clone(), metrics.clone(), handler(handle));
    let (stopper, stop) = stopper();
    tokio::spawn(listener.serve(front, stop));
    Server { address, metrics, budget, _stopper: stopper }
}

async fn handle(request: Request) -> Response {
    match request.path.as_str() {
        "/take" => match request.body.collect(64 * MIB).await {
            Ok(body) => Response::text(StatusCode::OK, format!("took {}", body.len())),
            Err(BodyError::NoRoom) => Response::text(StatusCode::SERVICE_UNAVAILABLE, "no room"),
            Err(BodyError::TimedOut) => Response::text(StatusCode::REQUEST_TIMEOUT, "too slow"),
            Err(_) => Response::text(StatusCode::BAD_REQUEST, "broken"),
        },
        "/pass" => {
            let mut body = request.body;
            loop {
                match body.chunk().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return Response::text(StatusCode::OK, "passed"),
                    Err(BodyError::NoRoom) => {
                        body.discard().await;
                        return Response::text(StatusCode::SERVICE_UNAVAILABLE, "no room");
                    }
                    Err(_) => return Response::text(StatusCode::BAD_REQUEST, "broken"),
                }
            }
        }
        "/large" => Response::new(StatusCode::OK).with_body(vec![b'x'; 8 * MIB]),
        "/never" => std::future::pending().await,
        path => Response::text(StatusCode::OK, path.to_owned()),
    }
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes on a connection of their own and reads until the server closes it.
    async fn talk(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        rest(&mut stream).await
    }

    /// Waits until something holds.
    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < LONG, "{:?} {:?}", self.metrics.counts(), self.budget);
            tokio::time::sleep(SHORT / 20).await;
        }
    }
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

fn put(path: &str, length: usize) -> String {
    format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

fn tls() -> Tls {
    let made = self_signed(&["localhost".into()]).unwrap();
    Tls::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_connection_that_never_sends_a_byte_falls_under_the_header_timeout() {
    for tls in [None, Some(tls()), Some(tls().beside_plain())] {
        let server = start_with(Limits { header_timeout: SHORT, ..limits() }, tls, 1 << 30).await;
        let began = Instant::now();
        assert_eq!(rest(&mut server.connect().await).await, "");
        assert!(began.elapsed() < LONG / 2, "{:?}", began.elapsed());
        server.until(|server| server.metrics.counts().connections_open == 0).await;
    }
}

#[tokio::test]
async fn a_handshake_and_a_head_share_one_timeout() {
    let bounds = Limits { header_timeout: SHORT * 4, ..limits() };
    let server = start_with(bounds, Some(tls().beside_plain()), 1 << 30).await;
    let began = Instant::now();
    let mut stream = server.connect().await;
    tokio::time::sleep(SHORT * 3).await;
    stream.write_all(&[0x16]).await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
    assert!(began.elapsed() < SHORT * 7, "{:?}", began.elapsed());
}

#[tokio::test]
async fn beyond_the_limit_of_connections_a_client_is_told_so_at_once() {
    let server = start_for(1, limits(), None, 1 << 30).await;
    let mut first = server.connect().await;
    server.until(|server| server.metrics.counts().connections_open == 1).await;
    for _ in 0..20 {
        let began = Instant::now();
        let refused = server.talk(get("/second")).await;
        assert_eq!(status(&refused), "503", "{refused}");
        assert!(refused.contains("x-ms-error-code: ServerBusy\r\n"), "{refused}");
        assert!(refused.contains("connection: close\r\n"), "{refused}");
        assert!(began.elapsed() < LONG / 10, "{:?}", began.elapsed());
    }
    assert_eq!(server.metrics.counts().refused, 20);
    first.write_all(get("/first").as_bytes()).await.unwrap();
    assert_eq!(status(&rest(&mut first).await), "200");
    server.until(|server| server.metrics.counts().connections_open == 0).await;
    assert_eq!(status(&server.talk(get("/third")).await), "200");
}

#[tokio::test]
async fn however_many_are_refused_each_one_is_told() {
    let server = start_for(1, limits(), None, 1 << 30).await;
    let _first = server.connect().await;
    server.until(|server| server.metrics.counts().connections_open == 1).await;
    // They say nothing and do not leave.
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(server.connect().await);
    }
    let began = Instant::now();
    for stream in silent.iter_mut().rev().take(50) {
        assert_eq!(status(&rest(stream).await), "503");
    }
    assert_eq!(status(&server.talk(get("/late")).await), "503");
    assert!(began.elapsed() < LONG / 10, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_sends_much_beyond_the_limit_of_connections_reads_why() {
    let server = start_for(1, limits(), None, 1 << 30).await;
    let _first = server.connect().await;
    server.until(|server| server.metrics.counts().connections_open == 1).await;
    let mut second = server.connect().await;
    let sent = [put("/take", MIB / 2).into_bytes(), vec![b'x'; MIB / 2]].concat();
    second.write_all(&sent).await.unwrap();
    assert_eq!(status(&rest(&mut second).await), "503");
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_altogether_is_given_up() {
    let bounds = Limits { body_timeout: SHORT * 3, body_rate_min: 1024 * 1024, ..limits() };
    let server = start(bounds).await;
    let mut stream = server.connect().await;
    let began = Instant::now();
    stream.write_all(put("/take", MIB).as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let sending = async {
        // Each piece comes long before the time-out for pieces.
        while writer.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    let mut answer = [0; 64];
    tokio::select! {
        read = reader.read(&mut answer) => assert!(read.unwrap() > 20),
        () = sending => panic!("the connection broke without an answer"),
    }
    assert_eq!(status(&String::from_utf8_lossy(&answer)), "408");
    assert!(began.elapsed() < SHORT * 30, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_takes_its_answer_too_slowly_is_cut_off() {
    let bounds = Limits { idle_timeout: SHORT * 3, body_rate_min: 1 << 30, ..limits() };
    let server = start(bounds).await;
    let mut stream = server.connect().await;
    stream.write_all(get("/large").as_bytes()).await.unwrap();
    let began = Instant::now();
    let mut bytes = vec![0; 1024];
    // It takes something all the time, so that it is never idle.
    while !matches!(stream.read(&mut bytes).await, Ok(0) | Err(_)) {
        assert!(began.elapsed() < LONG, "it is still served");
        if server.metrics.counts().connections_open > 0 {
            tokio::time::sleep(SHORT / 100).await;
        }
    }
    server.until(|server| server.budget.held() == 0).await;
}

#[tokio::test]
async fn the_limit_of_header_bytes_is_exact() {
    for most in [1_000, 8_192, 20_000] {
        let server = start(Limits { header_bytes_max: most, ..limits() }).await;
        let of = |bytes: usize| {
            let empty = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: \r\n\r\n".len();
            let value = "y".repeat(bytes - empty);
            format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: {value}\r\n\r\n")
        };
        assert_eq!(of(most).len(), most);
        assert_eq!(status(&server.talk(of(most)).await), "200", "{most}");
        assert_eq!(status(&server.talk(of(most + 1)).await), "431", "{most}");
        assert_eq!(status(&server.talk(of(most * 3)).await), "431", "{most}");
        // What comes behind the head does not count.
        let small = put("/take", most * 2).replace("Host", "Connection: close\r\nHost");
        let with_body = format!("{small}{}", "z".repeat(most * 2));
        assert_eq!(status(&server.talk(with_body).await), "200", "{most}");
    }
}

#[tokio::test]
async fn a_request_has_exactly_one_host() {
    let server = start(limits()).await;
    for hosts in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nhost: b\r\n", "Host: \r\n"] {
        let answer = server.talk(format!("GET / HTTP/1.1\r\n{hosts}\r\n")).await;
        assert_eq!(status(&answer), "400", "{hosts:?}: {answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
    }
    for host in ["a/b", "a b", "user@a"] {
        let answer = server.talk(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(status(&answer), "400", "{host}: {answer}");
    }
    for host in ["a", "a:1", "127.0.0.1:10000", "[::1]:10000", "dev.blob.localhost", "a_b.c"] {
        let text = get("/").replace("Host: a", &format!("Host: {host}"));
        assert_eq!(status(&server.talk(text).await), "200", "{host}");
    }
    assert_eq!(status(&server.talk("GET / HTTP/1.0\r\n\r\n").await), "200");
}

#[tokio::test]
async fn a_line_feed_alone_is_no_line_end() {
    let server = start(limits()).await;
    for text in [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let answer = server.talk(text).await;
        assert_eq!(status(&answer), "400", "{text:?}: {answer}");
    }
    assert_eq!(server.metrics.counts().requests, 0);
    // Also behind a request that is as it should be, and behind its body.
    for first in [
        "PUT /take HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na\nb",
        "PUT /take HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\n\r\n",
    ] {
        let answer = server.talk(format!("{first}GET /second HTTP/1.1\nHost: a\r\n\r\n")).await;
        assert!(answer.contains("took 3"), "{answer}");
        assert!(answer.contains("HTTP/1.1 400 ") && !answer.contains("/second"), "{answer}");
        let good = server.talk(format!("{first}{}", get("/second"))).await;
        assert!(good.ends_with("/second"), "{good}");
    }
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_body_closes_the_connection() {
    let server = start(limits()).await;
    for sent in [0, 1, 100_000] {
        let mut stream = server.connect().await;
        stream.write_all(put("/early", 1_000_000).as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; sent]).await.unwrap();
        let answer = rest(&mut stream).await;
        assert_eq!(status(&answer), "200", "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
    }
    // The rest of the body is no request.
    let inner = get("/smuggled");
    let outer = format!("{}{inner}", put("/early", inner.len()));
    let answer = server.talk(outer).await;
    assert!(answer.contains("connection: close\r\n") && !answer.contains("smuggled"), "{answer}");
    assert_eq!(server.metrics.counts().requests, 4);
    // A client whose body was read may go on.
    let two = format!("{}abc{}", put("/take", 3), get("/second"));
    let answer = server.talk(two).await;
    assert!(answer.contains("took 3") && answer.ends_with("/second"), "{answer}");
}

#[tokio::test]
async fn bodies_in_flight_share_one_budget() {
    let server = start_with(limits(), None, 8 * MIB as u64).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = server.connect().await;
        stream.write_all(put("/take", 4 * MIB).as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; 3 * MIB]).await.unwrap();
        held.push(stream);
    }
    server.until(|server| server.budget.held() == 8 * MIB as u64).await;
    for path in ["/take", "/pass"] {
        let mut stream = server.connect().await;
        stream.write_all(put(path, MIB).as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; MIB]).await.unwrap();
        let mut answer = vec![0; 1024];
        let read = tokio::time::timeout(LONG, stream.read(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]);
        assert_eq!(status(&answer), "503", "{path}: {answer}");
    }
    // What is read only is refused where its answer has no room, and small requests go on.
    let large = server.talk(get("/large")).await;
    assert_eq!(status(&large), "503", "{large}");
    assert!(large.contains("x-ms-error-code: ServerBusy\r\n"), "{large}");
    assert_eq!(status(&server.talk(get("/small")).await), "200");
    let small = format!(
        "{}{}",
        put("/take", 10_000).replace("Host", "Connection: close\r\nHost"),
        "x".repeat(10_000)
    );
    assert_eq!(status(&server.talk(small).await), "200");
    assert!(server.budget.refused() >= 3);
    // The bodies that were there first are taken to their ends.
    for mut stream in held {
        stream.write_all(&vec![b'x'; MIB]).await.unwrap();
        let mut answer = vec![0; 1024];
        let read = stream.read(&mut answer).await.unwrap();
        assert!(String::from_utf8_lossy(&answer[..read]).ends_with("took 4194304"));
    }
    server.until(|server| server.budget.held() == 0).await;
    assert!(server.budget.peak() <= 8 * MIB as u64);
    assert_eq!(status(&server.talk(get("/large")).await), "200");
}

#[tokio::test]
async fn what_is_held_comes_back_on_every_way_out() {
    let bounds = Limits { body_timeout: SHORT, request_timeout: SHORT * 3, ..limits() };
    let server = start_with(bounds, None, 8 * MIB as u64).await;
    // One that stalls, one that breaks off, one whose answer is never taken to its end.
    let mut stalls = server.connect().await;
    stalls.write_all(put("/take", 4 * MIB).as_bytes()).await.unwrap();
    stalls.write_all(&vec![b'x'; MIB]).await.unwrap();
    server.until(|server| server.budget.held() > 0).await;
    let mut leaves = server.connect().await;
    leaves.write_all(put("/take", 4 * MIB).as_bytes()).await.unwrap();
    leaves.write_all(&vec![b'x'; MIB]).await.unwrap();
    drop(leaves);
    server.until(|server| server.budget.held() == 0).await;
    let mut reads = server.connect().await;
    reads.write_all(get("/large").as_bytes()).await.unwrap();
    server.until(|server| server.budget.held() > 0).await;
    drop(reads);
    server.until(|server| server.budget.held() == 0).await;
}

#[tokio::test]
async fn one_body_larger_than_the_budget_is_taken_when_it_is_alone() {
    let server = start_with(limits(), None, 1024).await;
    let text = put("/take", 2 * MIB).replace("Host", "Connection: close\r\nHost");
    let whole = [text.into_bytes(), vec![b'x'; 2 * MIB]].concat();
    for _ in 0..3 {
        let answer = server.talk(&whole).await;
        assert!(answer.ends_with("took 2097152"), "{answer}");
    }
    assert_eq!(status(&server.talk(get("/large")).await), "200");
    server.until(|server| server.budget.held() == 0).await;
}
