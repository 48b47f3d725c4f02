//! One HTTP connection of the load generator. It does as little work as possible, because it shares its cores with the
//! server: requests are bytes that are ready to send, and a body that is only counted is never copied.
//!
//! The emulator closes connections that it did not get to in time. Such a connection is opened again, and the request is
//! sent again. Each time is counted, and shown beside the figure. A connection that the server has announced to close behind
//! an answer is opened again with the next request, as every client does, and belongs to the time of that request.

use std::io::ErrorKind;
use std::net::SocketAddr;

use lazuli_http::client::head::{BodyLength, Head, NotHttp};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use super::Result;

const READ_BYTES: usize = 256 * 1024;
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The last chunk. No body that we ask for holds a line break of its own.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How often one request is sent again because the connection ended before its answer.
const REPEATS_MAX: u32 = 5;

pub(super) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Whether the server said that it closes the connection behind the last answer.
    is_ended: bool,
    /// How often it was opened again.
    pub(super) reopened: u64,
}

/// What came back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    /// The body as it came; empty if it was not to be kept.
    pub(super) body: &'a [u8],
    /// Bytes of the body, kept or not.
    pub(super) length: usize,
}

/// Why there is no answer.
enum Failure {
    /// The connection ended.
    Ended(String),
    /// What came is no answer.
    Wrong(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Ended(error.to_string())
    }
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = connect(address).await?;
        let buffer = Vec::with_capacity(READ_BYTES);
        Ok(Self { address, stream, buffer, is_ended: false, reopened: 0 })
    }

    /// Sends a whole request. A body that is not to be kept is only counted, if the answer says how long it is.
    pub(super) async fn ask(&mut self, request: &[u8], keeps_body: bool) -> Result<Answer<'_>> {
        if std::mem::take(&mut self.is_ended) {
            self.stream = connect(self.address).await?;
        }
        let mut repeats = 0;
        let (status, head, length) = loop {
            match self.try_ask(request, keeps_body).await {
                Ok(answer) => break answer,
                Err(Failure::Ended(_)) if repeats < REPEATS_MAX => {
                    self.stream = connect(self.address).await?;
                    self.reopened += 1;
                    repeats += 1;
                }
                Err(Failure::Ended(error) | Failure::Wrong(error)) => return Err(error),
            }
        };
        let body = if keeps_body { &self.buffer[head..] } else { &[] };
        Ok(Answer { status, body, length })
    }

    /// The status, where the body begins, and how long it is.
    async fn try_ask(
        &mut self,
        request: &[u8],
        keeps_body: bool,
    ) -> std::result::Result<(u16, usize, usize), Failure> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let wrong = |error: NotHttp| Failure::Wrong(error.to_string());
        let (answer, head) = loop {
            if let Some(found) = Head::parse(&self.buffer).map_err(wrong)? {
                break found;
            }
            self.read().await?;
        };
        self.is_ended = answer.ends_connection();
        let mut read = self.buffer.len() - head;
        match answer.body_length().map_err(wrong)? {
            BodyLength::Bytes(bytes) => {
                let bytes = bytes as usize;
                while read < bytes {
                    read += match keeps_body {
                        true => self.read().await?,
                        false => self.skip(bytes - read).await?,
                    };
                }
            }
            BodyLength::Chunked => {
                while !self.buffer[head..].ends_with(LAST_CHUNK) {
                    read += self.read().await?;
                }
            }
            BodyLength::UntilClose => {
                return Err(Failure::Wrong("an answer without a length".to_owned()));
            }
        }
        Ok((answer.status, head, read))
    }

    /// Takes up to this many bytes off the connection, and says how many it were. Where the system can, they are thrown
    /// away where they lie: to copy them would cost the client more than the server, whose cores it shares.
    #[cfg(target_os = "linux")]
    async fn skip(&mut self, bytes: usize) -> std::result::Result<usize, Failure> {
        use rustix::net::{RecvFlags, recv};
        self.buffer.resize(READ_BYTES, 0);
        loop {
            self.stream.readable().await?;
            let most = bytes.min(READ_BYTES);
            let taken = self.stream.try_io(Interest::READABLE, || {
                let (_, taken) = recv(&self.stream, &mut self.buffer[..most], RecvFlags::TRUNC)?;
                Ok(taken)
            });
            match taken {
                Ok(0) => return Err(Failure::Ended("the connection ended".to_owned())),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                taken => return Ok(taken?),
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn skip(&mut self, _: usize) -> std::result::Result<usize, Failure> {
        self.buffer.clear();
        self.read().await
    }

    /// How many more bytes there are in the buffer.
    async fn read(&mut self) -> std::result::Result<usize, Failure> {
        if self.buffer.len() > ANSWER_BYTES_MAX {
            return Err(Failure::Wrong(format!("an answer of over {ANSWER_BYTES_MAX} bytes")));
        }
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(Failure::Ended("the connection ended".to_owned())),
            read => Ok(read),
        }
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await.map_err(|error| format!("connect: {error}"))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_sent_again_when_its_connection_ends_and_a_body_may_go_unkept() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let body = vec![7; 3 * READ_BYTES];
        let sent = body.len();
        let server = std::thread::spawn(move || {
            let mut request = [0; 3];
            // The first one ends without an answer.
            listener.accept().unwrap().0.read_exact(&mut request).unwrap();
            let mut stream = listener.accept().unwrap().0;
            for _ in 0..2 {
                stream.read_exact(&mut request).unwrap();
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len())
                    .unwrap();
                stream.write_all(&body).unwrap();
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = Connection::open(address).await.unwrap();
            let answer = connection.ask(b"ask", false).await.unwrap();
            assert_eq!((answer.status, answer.length, answer.body.len()), (200, sent, 0));
            let answer = connection.ask(b"ask", true).await.unwrap();
            assert_eq!((answer.status, answer.length, answer.body.len()), (200, sent, sent));
            assert_eq!(connection.reopened, 1);
        });
        server.join().unwrap();
    }
}
