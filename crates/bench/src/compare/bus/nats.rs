//! As much of the protocol of NATS as it takes to write to a stream and to read it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::Result;
use super::load::BODY_BYTES;

const SUBJECT: &str = "bench";
const STREAM: &str = "BENCH";
/// How many events one request of a reader asks for.
const FETCH: usize = 500;

pub(super) struct Connection {
    stream: TcpStream,
    input: BytesMut,
}

fn broken(error: std::io::Error) -> String {
    format!("the connection to NATS broke: {error}")
}

impl Connection {
    pub(super) async fn open(address: SocketAddr, inbox: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        let mut connection = Self { stream, input: BytesMut::new() };
        let hello = format!("CONNECT {{\"verbose\":false}}\r\nSUB {inbox}.* 1\r\n");
        connection.write(hello.as_bytes()).await?;
        Ok(connection)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result {
        self.stream.write_all(bytes).await.map_err(broken)
    }

    /// The subject, where an answer goes, and the payload of the next message.
    async fn next(&mut self) -> Result<(String, Vec<u8>)> {
        loop {
            if let Some(end) = self.input.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.input[..end]).into_owned();
                let words: Vec<&str> = line.split(' ').collect();
                if words[0] == "MSG" {
                    let length: usize = words[words.len() - 1].parse().unwrap_or(0);
                    if self.input.len() >= end + 4 + length {
                        self.input.advance(end + 2);
                        let payload = self.input.split_to(length).to_vec();
                        self.input.advance(2);
                        return Ok((words[1].to_owned(), payload));
                    }
                } else {
                    self.input.advance(end + 2);
                    match words[0] {
                        "PING" => self.write(b"PONG\r\n").await?,
                        "-ERR" => return Err(format!("NATS says {line}")),
                        _ => {}
                    }
                    continue;
                }
            }
            if self.stream.read_buf(&mut self.input).await.map_err(broken)? == 0 {
                return Err("NATS closed the connection".to_owned());
            }
        }
    }

    async fn ask(&mut self, subject: &str, inbox: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let head = format!("PUB {subject} {inbox}.api {}\r\n{body}\r\n", body.len());
        self.write(head.as_bytes()).await?;
        let (_, answer) = self.next().await?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        match answer["error"].is_null() {
            true => Ok(answer),
            false => Err(format!("NATS refuses {subject}: {}", answer["error"])),
        }
    }

    /// Makes the stream, on disk.
    pub(super) async fn make(&mut self, inbox: &str) -> Result {
        let settings = json!({ "name": STREAM, "subjects": [SUBJECT], "storage": "file" });
        self.ask(&format!("$JS.API.STREAM.CREATE.{STREAM}"), inbox, &settings).await.map(drop)
    }
}

/// Publishes so many events with so many in flight, and answers how long each took.
pub(super) async fn publish(
    address: SocketAddr,
    inbox: String,
    count: usize,
    in_flight: usize,
) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(address, &inbox).await?;
    let body = vec![b'x'; BODY_BYTES];
    let mut began = Vec::with_capacity(count);
    let mut took = Vec::with_capacity(count);
    while took.len() < count {
        let mut out = Vec::new();
        while began.len() < count && began.len() - took.len() < in_flight {
            let head = format!("PUB {SUBJECT} {inbox}.{} {BODY_BYTES}\r\n", began.len());
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&body);
            out.extend_from_slice(b"\r\n");
            began.push(Instant::now());
        }
        if !out.is_empty() {
            connection.write(&out).await?;
        }
        let (subject, answer) = connection.next().await?;
        let number: Option<usize> = subject.rsplit('.').next().and_then(|it| it.parse().ok());
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        match number.and_then(|number| began.get(number)) {
            Some(began) if answer["error"].is_null() => took.push(began.elapsed()),
            _ => return Err(format!("NATS answered {answer}")),
        }
    }
    Ok(took)
}

/// Reads so many events of the stream from its start.
pub(super) async fn read(address: SocketAddr, inbox: String, count: usize) -> Result {
    let mut connection = Connection::open(address, &inbox).await?;
    let name = inbox.replace('.', "");
    let settings = json!({
        "stream_name": STREAM,
        "config": { "durable_name": name, "ack_policy": "none", "deliver_policy": "all" },
    });
    let create = format!("$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{name}");
    connection.ask(&create, &inbox, &settings).await?;
    let mut seen = 0;
    while seen < count {
        let most = FETCH.min(count - seen);
        let wanted = json!({ "batch": most, "expires": 5_000_000_000_u64 }).to_string();
        let next = format!("$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{name}");
        let request = format!("PUB {next} {inbox}.next {}\r\n{wanted}\r\n", wanted.len());
        connection.write(request.as_bytes()).await?;
        for _ in 0..most {
            connection.next().await?;
        }
        seen += most;
    }
    Ok(())
}
