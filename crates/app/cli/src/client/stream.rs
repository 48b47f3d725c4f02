//! Bodies of the admin API that are too long to be held: a backup that comes, and one that goes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::{ANSWER_BYTES_MAX, Client, no_answer, refused, split};
use crate::failure::{Failure, Result};

/// The longest line of an answer's head, and of the head of a chunk.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// What is sent at once.
const PIECE_BYTES: usize = 256 * 1024;

/// An answer that is read as it comes, in chunks. One that breaks off is an error and never an end.
pub(crate) struct Chunks {
    stream: BufReader<TcpStream>,
    /// What is left of the chunk that is being read.
    left: u64,
    is_over: bool,
}

impl Client {
    /// Asks for something of any length.
    pub(crate) fn open(&self, path: &str) -> Result<Chunks> {
        let failed = |error: io::Error| no_answer(self, &error);
        let mut stream = self.connect().map_err(failed)?;
        stream.write_all(self.head("GET", path, 0).as_bytes()).map_err(failed)?;
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            read_line(&mut stream, &mut head).map_err(failed)?;
        }
        let is_chunked = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let is_chunked = is_chunked.contains("transfer-encoding: chunked");
        match split(&head) {
            Some((200..=299, _)) if is_chunked => Ok(Chunks { stream, left: 0, is_over: false }),
            Some((200..=299, _)) | None => Err(Failure::failed("the answer is no stream")),
            Some((status, _)) => {
                let mut body = Vec::new();
                stream.take(ANSWER_BYTES_MAX).read_to_end(&mut body).map_err(failed)?;
                Err(refused(status, &serde_json::from_slice(&body).unwrap_or(Value::Null)))
            }
        }
    }

    /// Sends something of this length and reads what is answered. `sent` hears how much has gone.
    pub(crate) fn send_stream(
        &self,
        path: &str,
        length: u64,
        body: &mut dyn Read,
        mut sent: impl FnMut(u64),
    ) -> Result<Value> {
        let failed = |error: io::Error| no_answer(self, &error);
        let mut stream = self.connect().map_err(failed)?;
        stream.write_all(self.head("POST", path, length).as_bytes()).map_err(failed)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut total = 0;
        while total < length {
            let read = body.read(&mut piece);
            let count = read.map_err(|error| Failure::failed(format!("cannot read: {error}")))?;
            if count == 0 {
                return Err(Failure::failed("the backup became shorter while it was read"));
            }
            // Who refuses a long body may say so and hang up before all of it is sent.
            if stream.write_all(&piece[..count]).is_err() {
                break;
            }
            total += count as u64;
            sent(total);
        }
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).map_err(failed)?;
        self.understand(&answer)
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over || buffer.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            self.left = self.next_chunk()?;
            if self.left == 0 {
                self.is_over = true;
                return Ok(0);
            }
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.stream.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        if self.left == 0 {
            read_line(&mut self.stream, &mut Vec::new())?;
        }
        Ok(count)
    }
}

impl Chunks {
    /// The length of the next chunk.
    fn next_chunk(&mut self) -> io::Result<u64> {
        let mut line = Vec::new();
        read_line(&mut self.stream, &mut line)?;
        let text = String::from_utf8_lossy(&line);
        let digits = text.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(digits, 16)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

fn read_line(stream: &mut BufReader<TcpStream>, line: &mut Vec<u8>) -> io::Result<()> {
    stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
