//! One HTTP connection: a request at a time, as little work as can be, because it runs on the cores of the server.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Result;

const READ_BYTES: usize = 256 * 1024;
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The last chunk. No body that we ask for holds a line break of its own.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// How an answer says where it ends.
enum Length {
    Bytes(usize),
    Chunked,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.map_err(|error| format!("connect: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self { stream, buffer: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends a whole request; the status of the answer, and its body as it came.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<(u16, &[u8])> {
        self.stream.write_all(request).await.map_err(|error| error.to_string())?;
        self.buffer.clear();
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        let (status, length) = parse(&self.buffer[..head])?;
        match length {
            Length::Bytes(bytes) => {
                while self.buffer.len() < head + bytes {
                    self.read().await?;
                }
            }
            Length::Chunked => {
                while !self.buffer[head..].ends_with(LAST_CHUNK) {
                    self.read().await?;
                }
            }
        }
        Ok((status, &self.buffer[head..]))
    }

    async fn read(&mut self) -> Result {
        if self.buffer.len() > ANSWER_BYTES_MAX {
            return Err(format!("an answer of over {ANSWER_BYTES_MAX} bytes"));
        }
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err("the connection ended".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn parse(head: &[u8]) -> Result<(u16, Length)> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| format!("not a status line: {first}"))?;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            let bytes = value.trim().parse().map_err(|_| format!("not a length: {value}"))?;
            return Ok((status, Length::Bytes(bytes)));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Ok((status, Length::Chunked));
        }
    }
    Ok((status, Length::Bytes(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_where_it_ends() {
        let (status, length) = parse(b"HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n").unwrap();
        assert!(status == 204 && matches!(length, Length::Bytes(0)));
        let (_, length) = parse(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n").unwrap();
        assert!(matches!(length, Length::Bytes(12)));
        let (_, length) = parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        assert!(matches!(length, Length::Chunked));
        assert!(parse(b"hello\r\n\r\n").is_err());
    }
}
