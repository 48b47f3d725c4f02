//! AMQP in a WebSocket, for clients behind proxies: the handshake, and frames as a stream of bytes (RFC 6455).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, BufMut, BytesMut};
use lazuli_net::{Connection, Stream};
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout_at;

use crate::limits::{GREETING_TIMEOUT, UPGRADE_BYTES_MAX};

const PATHS: [&str; 2] = ["/$servicebus/websocket", "/%24servicebus/websocket"];
const PROTOCOL: &str = "AMQPWSB10";
/// What the specification adds to the key of a client.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The largest frame that is taken. Its bytes are passed on as they come, so it costs no memory.
const FRAME_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The largest frame that is sent, and the most that waits to be written.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of a frame that says something about the connection itself.
const CONTROL_BYTES_MAX: usize = 125;
const READ_BYTES: usize = 16 * 1024;

const CONTINUATION: u8 = 0x0;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// The head of a request for a WebSocket; none if it is another request, whose bytes stay to be read.
pub(crate) async fn head(connection: &mut Connection) -> Option<String> {
    let mut head = Vec::new();
    let deadline = connection.began + GREETING_TIMEOUT;
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte up to the path, which tells whether it is for us; a request is read only once.
        let byte = timeout_at(deadline, connection.stream.read_u8()).await;
        let Ok(Ok(byte)) = byte else { break };
        head.push(byte);
        if head.len() > UPGRADE_BYTES_MAX || !may_be_ours(&head) {
            break;
        }
    }
    if head.ends_with(b"\r\n\r\n") && may_be_ours(&head) {
        return String::from_utf8(head).ok();
    }
    connection.stream.unread(&head);
    None
}

/// Whether these first bytes may be of a request for the path.
fn may_be_ours(head: &[u8]) -> bool {
    PATHS.iter().any(|path| {
        let start = format!("GET {path}");
        let count = start.len().min(head.len());
        head[..count].eq_ignore_ascii_case(&start.as_bytes()[..count])
    })
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let pairs = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut found = pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

/// Answers the request. None if it cannot be taken; then the client was told so.
pub(crate) async fn upgrade(mut stream: Stream, head: &str) -> Option<WebSocket<Stream>> {
    let answer = answer(head);
    let is_fine = answer.is_some();
    let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let text = answer.unwrap_or_else(|| refusal.to_owned());
    stream.write_all(text.as_bytes()).await.ok()?;
    stream.flush().await.ok()?;
    is_fine.then(|| WebSocket::new(stream))
}

fn answer(head: &str) -> Option<String> {
    let is = |name, word: &str| {
        header(head, name)
            .is_some_and(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(word)))
    };
    let key = header(head, "sec-websocket-key")?;
    let fits = is("upgrade", "websocket")
        && is("connection", "upgrade")
        && is("sec-websocket-version", "13")
        && is("sec-websocket-protocol", PROTOCOL);
    let accept = STANDARD.encode(Sha1::digest(format!("{key}{MAGIC}")));
    fits.then(|| {
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {accept}\r\nsec-websocket-protocol: {PROTOCOL}\r\n\r\n"
        )
    })
}

/// A stream of bytes in binary frames.
pub(crate) struct WebSocket<S> {
    stream: S,
    input: BytesMut,
    output: BytesMut,
    /// How many bytes of the frame at hand are to come, and the mask of the next one.
    left: u64,
    mask: [u8; 4],
    is_over: bool,
}

impl<S> WebSocket<S> {
    fn new(stream: S) -> Self {
        let (input, output) = (BytesMut::new(), BytesMut::new());
        Self { stream, input, output, left: 0, mask: [0; 4], is_over: false }
    }

    /// Takes the head of the next frame, and the whole of one that says something about the connection. False if more must
    /// be read.
    fn frame(&mut self) -> io::Result<bool> {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let [first, second, rest @ ..] = &self.input[..] else { return Ok(false) };
        let (opcode, is_masked) = (first & 0x0f, second & 0x80 != 0);
        if !is_masked || first & 0x70 != 0 {
            return Err(bad());
        }
        let (length, at) = match second & 0x7f {
            126 => match rest.first_chunk() {
                Some(bytes) => (u64::from(u16::from_be_bytes(*bytes)), 4),
                None => return Ok(false),
            },
            127 => match rest.first_chunk() {
                Some(bytes) => (u64::from_be_bytes(*bytes), 10),
                None => return Ok(false),
            },
            short => (u64::from(short), 2),
        };
        let Some(mask) = self.input.get(at..at + 4) else { return Ok(false) };
        let mask = [mask[0], mask[1], mask[2], mask[3]];
        if length > FRAME_BYTES_MAX {
            return Err(bad());
        }
        match opcode {
            BINARY | CONTINUATION => {
                self.input.advance(at + 4);
                (self.left, self.mask) = (length, mask);
            }
            CLOSE | PING | PONG => {
                let length = usize::try_from(length).ok().filter(|it| *it <= CONTROL_BYTES_MAX);
                let length = length.ok_or_else(bad)?;
                if self.input.len() < at + 4 + length {
                    return Ok(false);
                }
                self.input.advance(at + 4);
                let mut payload = self.input.split_to(length);
                unmask(&mut payload, &mut mask.clone());
                self.control(opcode, &payload);
            }
            _ => return Err(bad()),
        }
        Ok(true)
    }

    fn control(&mut self, opcode: u8, payload: &[u8]) {
        // A client that pings without reading gets no more answers than fit.
        let has_room = self.output.len() < SEND_BYTES_MAX;
        match opcode {
            PING if has_room => put_frame(&mut self.output, PONG, payload),
            CLOSE => {
                self.is_over = true;
                put_frame(&mut self.output, CLOSE, payload);
            }
            _ => {}
        }
    }
}

fn put_frame(out: &mut BytesMut, opcode: u8, payload: &[u8]) {
    out.put_u8(0x80 | opcode);
    match payload.len() {
        length @ ..126 => out.put_u8(length as u8),
        length @ ..65_536 => {
            out.put_u8(126);
            out.put_u16(length as u16);
        }
        length => {
            out.put_u8(127);
            out.put_u64(length as u64);
        }
    }
    out.put_slice(payload);
}

/// Takes the mask off, and turns it on to where the next bytes begin.
fn unmask(bytes: &mut [u8], mask: &mut [u8; 4]) {
    bytes.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    mask.rotate_left(bytes.len() % 4);
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.output))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.is_over {
                // A client that has said its last word may be gone before it hears ours.
                let _ = this.poll_drain(cx);
                return Poll::Ready(Ok(()));
            }
            if this.left > 0 && !this.input.is_empty() {
                let count = this.input.len().min(buffer.remaining());
                let count = count.min(usize::try_from(this.left).unwrap_or(usize::MAX));
                let mut taken = this.input.split_to(count);
                unmask(&mut taken, &mut this.mask);
                buffer.put_slice(&taken);
                this.left -= count as u64;
                return Poll::Ready(Ok(()));
            }
            if this.left == 0 && this.frame()? {
                // An answer to a ping goes out now or with whatever is written next, which also sees what goes wrong.
                let _ = this.poll_drain(cx);
                continue;
            }
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.input.put_slice(read.filled());
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.output.len() >= SEND_BYTES_MAX {
            ready!(self.poll_drain(cx))?;
        }
        let count = bytes.len().min(SEND_BYTES_MAX);
        put_frame(&mut self.output, BINARY, &bytes[..count]);
        // What cannot be written now is written by the next call or by a flush.
        let _ = self.poll_drain(cx)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_over {
            self.is_over = true;
            put_frame(&mut self.output, CLOSE, &1000u16.to_be_bytes());
        }
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: AMQPWSB10\r\nSec-WebSocket-Version: 13\r\n\r\n";

    #[test]
    fn the_handshake_is_the_one_of_the_specification() {
        let answer = answer(HEAD).unwrap();
        assert!(
            answer.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
            "{answer}"
        );
        assert!(answer.contains("sec-websocket-protocol: AMQPWSB10\r\n"));
        for (from, to) in [("AMQPWSB10", "chat"), ("Version: 13", "Version: 8"), ("-Key", "-Kee")] {
            assert_eq!(super::answer(&HEAD.replace(from, to)), None, "{from}");
        }
        assert!(may_be_ours(b"GET /$serv") && may_be_ours(HEAD.as_bytes()));
        assert!(!may_be_ours(b"GET /queue1") && !may_be_ours(b"PUT /"));
    }

    fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x80 | opcode, 0x80 | payload.len() as u8, 1, 2, 3, 4];
        let mut payload = payload.to_vec();
        unmask(&mut payload, &mut [1, 2, 3, 4]);
        frame.extend(payload);
        frame
    }

    #[tokio::test]
    async fn bytes_go_through_in_frames_however_they_come() {
        let (mut near, far) = tokio::io::duplex(7);
        let mut socket = WebSocket::new(far);
        let sent = [masked(BINARY, b"hello "), masked(PING, b"p"), masked(CONTINUATION, b"world")];
        let client = tokio::spawn(async move {
            near.write_all(&sent.concat()).await.unwrap();
            let mut answers = vec![0; 3 + 6];
            near.read_exact(&mut answers).await.unwrap();
            near.write_all(&masked(CLOSE, b"")).await.unwrap();
            answers
        });
        let mut got = vec![0; 11];
        socket.read_exact(&mut got).await.unwrap();
        assert_eq!(got, b"hello world");
        socket.write_all(b"back").await.unwrap();
        socket.flush().await.unwrap();
        assert_eq!(socket.read(&mut got).await.unwrap(), 0);
        assert_eq!(client.await.unwrap(), [0x8a, 1, b'p', 0x82, 4, b'b', b'a', b'c', b'k']);
    }

    #[tokio::test]
    async fn frames_that_are_none_end_the_connection() {
        for bytes in [
            &b"\x82\x05hello"[..],
            b"\xf2\x80\0\0\0\0",
            b"\x83\x80\0\0\0\0",
            b"\x89\xfe\xff\xff\0\0\0\0",
        ] {
            let (mut near, far) = tokio::io::duplex(64);
            near.write_all(bytes).await.unwrap();
            let mut socket = WebSocket::new(far);
            assert!(socket.read(&mut [0; 8]).await.is_err(), "{bytes:?}");
        }
    }
}
