//! One connection to a service: HTTP/1.1 over a plain socket or over TLS, one request after another.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::place::Place;
use crate::failure::{Failure, Result};

const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// A service that says nothing for this long is given up. Its own limit of a request is 30 seconds.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// The longest answer that is read; a page of the service has 4 MiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Up to this size a body is copied behind its head, so that both leave in one piece.
const TOGETHER_BYTES_MAX: usize = 64 * 1024;
const HEADER_LINE_BYTES_MAX: u64 = 64 * 1024;
const HEADERS_MAX: usize = 128;

/// Where systems keep the certificates that they trust. The variable comes first.
const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub(in crate::commands) struct Answer {
    pub(in crate::commands) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(in crate::commands) body: Vec<u8>,
}

impl Answer {
    pub(in crate::commands) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// What a connection over TLS trusts; none for plain ones.
pub(in crate::commands) fn trust(place: &Place) -> Result<Option<Arc<ClientConfig>>> {
    if !place.secure {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    let named = std::env::var_os(BUNDLE_VARIABLE).map(std::path::PathBuf::from);
    let bundles = BUNDLES.iter().map(|path| Path::new(path).to_owned());
    let system = named.or_else(|| bundles.into_iter().find(|path| path.is_file()));
    for file in system.iter().chain(&place.certificate) {
        let read = CertificateDer::pem_file_iter(file);
        let read = read.map_err(|error| {
            Failure::failed(format!("cannot read certificates of {}: {error}", file.display()))
        })?;
        roots.add_parsable_certificates(read.flatten());
    }
    if roots.is_empty() {
        let hint = format!("name a file of them in the variable {BUNDLE_VARIABLE}");
        return Err(Failure::failed("this system has no certificates to trust").hint(hint));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::failed(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(Arc::new(config)))
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

pub(in crate::commands) struct Connection {
    stream: BufReader<Stream>,
}

impl Connection {
    pub(in crate::commands) fn open(
        place: &Place,
        trust: Option<&Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        let (host, port) = host_and_port(&place.authority, place.secure);
        let mut addresses = (host, port).to_socket_addrs()?;
        let first = addresses.next().ok_or_else(|| invalid("the host has no address"))?;
        let stream = TcpStream::connect_timeout(&first, CONNECT_WAIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        stream.set_write_timeout(Some(ANSWER_WAIT))?;
        let stream = match trust {
            None => Stream::Plain(stream),
            Some(config) => {
                let name = ServerName::try_from(host.to_owned()).map_err(invalid)?;
                let session = ClientConnection::new(Arc::clone(config), name).map_err(invalid)?;
                Stream::Tls(Box::new(StreamOwned::new(session, stream)))
            }
        };
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends one request and reads its answer. Says as well whether the connection can be used again.
    pub(in crate::commands) fn exchange(
        &mut self,
        head: &[u8],
        body: &[u8],
    ) -> io::Result<(Answer, bool)> {
        let sent = self.send(head, body);
        // Who refuses a long body may say so and hang up before all of it is sent.
        let mut answer = match (self.read_head(), sent) {
            (Ok(answer), _) => answer,
            (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(error),
        };
        let ends = answer.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        let again = head.starts_with(b"HEAD ") || self.read_body(&mut answer)?;
        Ok((answer, again && !ends))
    }

    fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        if body.len() > TOGETHER_BYTES_MAX {
            stream.write_all(head)?;
            stream.write_all(body)?;
        } else {
            stream.write_all(&[head, body].concat())?;
        }
        stream.flush()
    }

    fn read_head(&mut self) -> io::Result<Answer> {
        let line = self.read_line()?;
        let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
        let status = status.ok_or_else(|| invalid("what answers does not speak HTTP"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                return Ok(Answer { status, headers, body: Vec::new() });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid("a broken header"))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
            if headers.len() > HEADERS_MAX {
                return Err(invalid("too many headers"));
            }
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.by_ref().take(HEADER_LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8(line).map_err(invalid)?;
        Ok(line.trim_end_matches('\r').to_owned())
    }

    /// Whether the body ended before the connection did.
    fn read_body(&mut self, answer: &mut Answer) -> io::Result<bool> {
        let length = answer.header("content-length").map(str::parse::<usize>);
        if answer.header("transfer-encoding").is_some() {
            loop {
                let line = self.read_line()?;
                let digits = line.split(';').next().unwrap_or_default().trim();
                let size = usize::from_str_radix(digits, 16).map_err(invalid)?;
                self.read_exactly(size, &mut answer.body)?;
                self.read_line()?;
                if size == 0 {
                    return Ok(true);
                }
            }
        }
        match length {
            Some(length) => self.read_exactly(length.map_err(invalid)?, &mut answer.body)?,
            None if matches!(answer.status, 204 | 304) => {}
            None => {
                let mut rest = self.stream.by_ref().take(ANSWER_BYTES_MAX as u64);
                rest.read_to_end(&mut answer.body)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read_exactly(&mut self, size: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        if size > ANSWER_BYTES_MAX - bytes.len() {
            return Err(invalid("the answer is too long"));
        }
        let start = bytes.len();
        bytes.resize(start + size, 0);
        self.stream.read_exact(&mut bytes[start..])
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
    use super::*;

    #[test]
    fn authorities_have_a_host_and_a_port() {
        assert_eq!(host_and_port("a.b", true), ("a.b", 443));
        assert_eq!(host_and_port("a.b", false), ("a.b", 80));
        assert_eq!(host_and_port("127.0.0.1:7", true), ("127.0.0.1", 7));
        assert_eq!(host_and_port("[::1]:7", true), ("::1", 7));
        assert_eq!(host_and_port("[::1]", true), ("::1", 443));
    }
}
