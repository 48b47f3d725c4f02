//! One blocking connection to a server, over a plain socket or over TLS, for one HTTP/1.1 request after another.
//!
//! The caller writes the bytes of the request's head, so that it can sign them, and so that a test can send bytes that
//! are no request at all.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::head::{BodyLength, Head, NotHttp};
use crate::date::format_rfc1123;

/// How much is read from the socket at once.
const READ_BYTES: usize = 64 * 1024;
/// Up to this size a body is copied behind its head, so that both leave in one packet.
const TOGETHER_BYTES_MAX: usize = 64 * 1024;
/// The longest head of an answer, and the longest line that introduces a chunk.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The date of now, as the storage services want it in signed requests.
pub fn date_now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format_rfc1123(i64::try_from(now).unwrap_or_default())
}

/// How a connection is opened.
#[derive(Clone, Debug)]
pub struct Options {
    pub connect_wait: Duration,
    /// A server that sends nothing for this long is given up.
    pub answer_wait: Duration,
    /// The longest body that is read into memory.
    pub body_bytes_max: u64,
    /// For TLS; plain HTTP without.
    pub trust: Option<Trust>,
}

impl Default for Options {
    fn default() -> Self {
        let wait = Duration::from_secs(10);
        Self { connect_wait: wait, answer_wait: wait, body_bytes_max: 64 << 20, trust: None }
    }
}

/// The certificates that a connection over TLS trusts.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the certificates in these PEM texts; those that cannot be read are left out. Fails if none is left.
    pub fn from_pem(texts: &[Vec<u8>]) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let read = texts.iter().flat_map(|text| CertificateDer::pem_slice_iter(text));
        roots.add_parsable_certificates(read.flatten());
        if roots.is_empty() {
            return Err(invalid("there is no certificate to trust"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub head: Head,
    pub body: Vec<u8>,
}

impl std::ops::Deref for Answer {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

impl Answer {
    /// The body as text, with a replacement character for what is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

pub struct Connection {
    stream: BufReader<Stream>,
    body_bytes_max: u64,
}

impl Connection {
    /// Connects to an authority such as `127.0.0.1:10000`. Without a port it is that of the protocol.
    pub fn open(authority: &str, options: &Options) -> io::Result<Self> {
        let (host, port) = host_and_port(authority, options.trust.is_some());
        let mut addresses = (host, port).to_socket_addrs()?;
        let first = addresses.next().ok_or_else(|| invalid("the host has no address"))?;
        let stream = TcpStream::connect_timeout(&first, options.connect_wait)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(options.answer_wait))?;
        stream.set_write_timeout(Some(options.answer_wait))?;
        let stream = match &options.trust {
            None => Stream::Plain(stream),
            Some(Trust(config)) => {
                let name = ServerName::try_from(host.to_owned()).map_err(invalid)?;
                let session = ClientConnection::new(Arc::clone(config), name).map_err(invalid)?;
                Stream::Tls(Box::new(StreamOwned::new(session, stream)))
            }
        };
        let stream = BufReader::with_capacity(READ_BYTES, stream);
        Ok(Self { stream, body_bytes_max: options.body_bytes_max })
    }

    /// The connection itself, for another protocol. To be taken before anything was sent.
    pub fn into_stream(self) -> impl Read + Write + use<> {
        self.stream.into_inner()
    }

    /// Sends one request and reads its answer. Says as well whether the connection can be used again.
    pub fn exchange(&mut self, head: &[u8], body: &[u8]) -> io::Result<(Answer, bool)> {
        let sent = self.send(head, body);
        // A server that refuses a long body may answer and close before all of it is sent.
        match (self.read_answer(!head.starts_with(b"HEAD ")), sent) {
            (Ok(answer), _) => Ok(answer),
            (Err(_), Err(error)) | (Err(error), Ok(())) => Err(error),
        }
    }

    /// Sends any bytes, says that no more will come, and reads the server's answer, if it has one.
    pub fn exchange_last(mut self, bytes: &[u8]) -> Option<Answer> {
        // A server that has read enough may close before everything is sent.
        let _ = self.send(bytes, b"").and_then(|()| match self.stream.get_ref() {
            Stream::Plain(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tls(stream) => stream.sock.shutdown(Shutdown::Write),
        });
        self.read_answer(!bytes.starts_with(b"HEAD ")).ok().map(|(answer, _)| answer)
    }

    /// Sends a head, or a piece of a body.
    pub fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        if body.len() > TOGETHER_BYTES_MAX {
            stream.write_all(head)?;
            stream.write_all(body)?;
        } else {
            stream.write_all(&[head, body].concat())?;
        }
        stream.flush()
    }

    /// Reads a whole answer. Says as well whether the connection can be used again.
    pub fn read_answer(&mut self, has_body: bool) -> io::Result<(Answer, bool)> {
        let head = self.read_head()?;
        let length =
            if has_body { head.body_length().map_err(invalid)? } else { BodyLength::Bytes(0) };
        let most = self.body_bytes_max;
        let mut bytes = Vec::new();
        if let BodyLength::Bytes(length) = length {
            bytes.reserve_exact(usize::try_from(length.min(most)).map_err(invalid)?);
        }
        let mut body = Body::new(&mut self.stream, length);
        body.by_ref().take(most).read_to_end(&mut bytes)?;
        if !body.is_over && body.read(&mut [0])? > 0 {
            return Err(invalid(format!("the answer has over {most} bytes")));
        }
        let reusable = length != BodyLength::UntilClose && !head.ends_connection();
        Ok((Answer { head, body: bytes }, reusable))
    }

    /// Reads the head of an answer. The body follows.
    pub fn read_head(&mut self) -> io::Result<Head> {
        loop {
            let mut bytes = Vec::new();
            loop {
                let begin = bytes.len();
                read_line(&mut self.stream, &mut bytes)?;
                if bytes[begin..].trim_ascii().is_empty() {
                    break;
                }
            }
            let (head, _) = Head::parse(&bytes).ok().flatten().ok_or_else(|| invalid(NotHttp))?;
            // An interim answer says only that the body is welcome.
            if head.status != 100 {
                return Ok(head);
            }
        }
    }

    /// The body behind a head, to be read as it comes. One that breaks off is an error and never an end.
    pub fn into_body(self, head: &Head) -> io::Result<impl Read + use<>> {
        Ok(Body::new(self.stream, head.body_length().map_err(invalid)?))
    }
}

/// The body of an answer, without what frames it.
struct Body<S> {
    stream: S,
    is_chunked: bool,
    /// What is left of the body, or of the chunk that is being read; none for a body that ends with the connection.
    left: Option<u64>,
    is_over: bool,
}

impl<S: BufRead> Body<S> {
    fn new(stream: S, length: BodyLength) -> Self {
        let (is_chunked, left) = match length {
            BodyLength::Bytes(length) => (false, Some(length)),
            BodyLength::Chunked => (true, Some(0)),
            BodyLength::UntilClose => (false, None),
        };
        Self { stream, is_chunked, left, is_over: left == Some(0) && !is_chunked }
    }

    /// Reads the line before the next chunk. The last chunk is empty and ends the body.
    fn next_chunk(&mut self) -> io::Result<u64> {
        let mut line = Vec::new();
        read_line(&mut self.stream, &mut line)?;
        let text = String::from_utf8_lossy(&line);
        let digits = text.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(digits, 16).map_err(invalid)?;
        if length == 0 {
            read_line(&mut self.stream, &mut line)?;
            self.is_over = true;
        }
        Ok(length)
    }
}

impl<S: BufRead> Read for Body<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over || buffer.is_empty() {
            return Ok(0);
        }
        let left = match self.left {
            Some(0) => self.next_chunk()?,
            Some(left) => left,
            None => return self.stream.read(buffer),
        };
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.stream.read(&mut buffer[..most])?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let left = left - count as u64;
        self.left = Some(left);
        if left == 0 && self.is_chunked && !self.is_over {
            read_line(&mut self.stream, &mut Vec::new())?;
        }
        self.is_over |= left == 0 && !self.is_chunked;
        Ok(count)
    }
}

/// Adds a line with its end.
fn read_line(stream: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    let room = (HEAD_BYTES_MAX - line.len().min(HEAD_BYTES_MAX)) as u64;
    let read = stream.by_ref().take(room).read_until(b'\n', line)?;
    match line.last() {
        Some(b'\n') if read > 0 => Ok(()),
        _ if line.len() >= HEAD_BYTES_MAX => Err(invalid("the head is too long")),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn invalid(reason: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_string())
}

/// The host without the brackets of IPv6 addresses, and the port.
fn host_and_port(authority: &str, secure: bool) -> (&str, u16) {
    let usual = if secure { 443 } else { 80 };
    let split = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let (host, port) = match split.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, port),
        None => (authority, usual),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that answers one connection with these bytes and closes it.
    fn answered(answer: &'static [u8], options: &Options) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.read_exact(&mut [0; 4]).unwrap();
            stream.write_all(answer).unwrap();
        });
        Connection::open(&authority, options).unwrap()
    }

    fn exchange(answer: &'static [u8]) -> io::Result<(u16, Vec<u8>, bool)> {
        let (answer, reusable) = answered(answer, &Options::default()).exchange(b"GET ", b"")?;
        Ok((answer.status, answer.body, reusable))
    }

    #[test]
    fn bodies_end_with_their_length_their_last_chunk_or_the_connection() {
        let sized = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabrest";
        assert_eq!(exchange(sized).unwrap(), (200, b"ab".to_vec(), true));
        let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\
            transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n";
        assert_eq!(exchange(chunked).unwrap(), (201, b"abc".to_vec(), true));
        let closed = b"HTTP/1.1 500 Oops\r\n\r\nab";
        assert_eq!(exchange(closed).unwrap(), (500, b"ab".to_vec(), false));
        let none = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
        assert_eq!(exchange(none).unwrap(), (204, Vec::new(), false));
    }

    #[test]
    fn an_answer_that_breaks_off_is_no_answer() {
        for broken in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        ] {
            let kind = exchange(broken).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::UnexpectedEof, "{broken:?}");
        }
        assert_eq!(exchange(b"SSH-2.0\r\n\r\n").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_body_is_bounded_in_memory_and_unbounded_as_a_stream() {
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let options = Options { body_bytes_max: 2, ..Options::default() };
        assert!(answered(answer, &options).exchange(b"GET ", b"").is_err());
        let mut connection = answered(answer, &options);
        connection.send(b"GET ", b"").unwrap();
        let head = connection.read_head().unwrap();
        let mut body = String::new();
        connection.into_body(&head).unwrap().read_to_string(&mut body).unwrap();
        assert_eq!(body, "abc");
    }

    #[test]
    fn authorities_have_a_host_and_a_port() {
        assert_eq!(host_and_port("a.b", true), ("a.b", 443));
        assert_eq!(host_and_port("a.b", false), ("a.b", 80));
        assert_eq!(host_and_port("127.0.0.1:7", true), ("127.0.0.1", 7));
        assert_eq!(host_and_port("[::1]:7", true), ("::1", 7));
        assert_eq!(host_and_port("[::1]", true), ("::1", 443));
    }
}
