//! The smallest fronts: one over HTTP and one over plain TCP, on the listener, the metrics and the stop of all others.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_http::{Api, HttpFront, Method, Request, Response, StatusCode, counted, serve_api};
use lazuli_net::{
    BoxFuture, Budget, Connection, Limits, Listener, Metrics, Outcome, Protocol, Stop, stopper,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// What the HTTP front does: the body of a `POST` comes back.
struct EchoApi;

enum Operation {
    Echo,
}

enum Fault {
    NoSuchOperation,
    TooLarge,
}

impl Api for EchoApi {
    type Call = ();
    type Operation = Operation;
    type Fault = Fault;

    async fn admit(&self, request: &Request) -> Result<((), Operation), Fault> {
        match (&request.method, request.path.as_str()) {
            (&Method::POST, "/echo") => Ok(((), Operation::Echo)),
            _ => Err(Fault::NoSuchOperation),
        }
    }

    fn name(operation: &Operation) -> &'static str {
        match operation {
            Operation::Echo => "Echo",
        }
    }

    async fn run(&self, _: &(), operation: Operation, it: &mut Request) -> Result<Response, Fault> {
        match operation {
            Operation::Echo => {
                let body = it.take_body().collect(1024).await.map_err(|_| Fault::TooLarge)?;
                Ok(Response::new(StatusCode::OK).with_body(body))
            }
        }
    }

    fn refuse(&self, _: &Request, fault: &Fault) -> Response {
        match fault {
            Fault::NoSuchOperation => Response::text(StatusCode::NOT_FOUND, "no such operation"),
            Fault::TooLarge => Response::text(StatusCode::PAYLOAD_TOO_LARGE, "too large"),
        }
    }
}

/// What the TCP front does: every line comes back.
struct EchoLines(Arc<Metrics>);

impl Protocol for EchoLines {
    fn serve(self: Arc<Self>, connection: Connection) -> BoxFuture<()> {
        Box::pin(async move {
            let (mut stop, mut line) = (connection.stop, String::new());
            let mut stream = BufReader::new(connection.stream);
            loop {
                line.clear();
                let read = tokio::select! {
                    biased;
                    () = stop.stopped() => return,
                    read = stream.read_line(&mut line) => read,
                };
                let began = Instant::now();
                if !matches!(read, Ok(1..)) || stream.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                self.0.observe("Line", Outcome::Ok, began.elapsed());
            }
        })
    }

    fn busy(&self) -> &'static [u8] {
        b"busy\n"
    }
}

async fn listen(
    front: Arc<dyn Protocol>,
    metrics: &Arc<Metrics>,
    stop: &Stop,
) -> (String, JoinHandle<()>) {
    let (limits, any) = (Limits { connections_max: 1, ..Limits::default() }, "127.0.0.1:0".parse());
    let listener = Listener::bind(any.unwrap(), None, limits, metrics.clone()).await.unwrap();
    (listener.address().to_string(), tokio::spawn(listener.serve(front, stop.clone())))
}

#[tokio::test]
async fn two_echo_fronts_answer_count_and_stop() {
    let (stopper, stop) = stopper();
    let (http, lines) = (Arc::new(Metrics::new("http")), Arc::new(Metrics::new("lines")));
    let handler = counted(http.clone(), serve_api(EchoApi));
    let limits = lazuli_http::Limits::default();
    let front = HttpFront::new(limits, Budget::new(1 << 20), http.clone(), handler);
    let (http_address, http_served) = listen(front, &http, &stop).await;
    let (lines_address, lines_served) =
        listen(Arc::new(EchoLines(lines.clone())), &lines, &stop).await;
    let mut stream = TcpStream::connect(&http_address).await.unwrap();
    stream
        .write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
        .await
        .unwrap();
    stream.write_all(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("hello"), "{answer}");
    assert!(answer.contains("HTTP/1.1 404 ") && answer.ends_with("no such operation"), "{answer}");
    let mut first = TcpStream::connect(&lines_address).await.unwrap();
    first.write_all(b"one\n").await.unwrap();
    let mut line = [0; 4];
    first.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"one\n");
    let mut second = String::new();
    let mut refused = TcpStream::connect(&lines_address).await.unwrap();
    refused.shutdown().await.unwrap();
    refused.read_to_string(&mut second).await.unwrap();
    assert_eq!(second, "busy\n");
    let outcomes = |metrics: &Metrics, operation| metrics.operations()[operation].outcomes.clone();
    assert_eq!(outcomes(&http, "Echo"), [(Outcome::Status(200), 1)].into());
    assert_eq!(outcomes(&http, "unknown"), [(Outcome::Status(404), 1)].into());
    assert_eq!(outcomes(&lines, "Line"), [(Outcome::Ok, 1)].into());
    let counts = lines.counts();
    assert_eq!((counts.connections_open, counts.connections, counts.refused), (1, 1, 1));
    assert_eq!(counts.received_bytes, 4);
    stopper.stop();
    tokio::time::timeout(Duration::from_secs(5), async {
        http_served.await.unwrap();
        lines_served.await.unwrap();
    })
    .await
    .unwrap();
    assert_eq!(lines.counts().connections_open, 0);
    assert!(TcpStream::connect(&lines_address).await.is_err());
}
