//! HTTP clients. [`blocking`] is the one of commands, trials and tests: one connection, one request after another.
//! [`get`] is the one of the server itself, which reads from another server inside of its runtime, with the body as it
//! comes. [`head`] parses the head of an answer.
//!
//! A client that names an address makes this program ask there, so only the fronts of this server and hosts that the
//! operator named are asked ([`Sources`]). The address that was checked is the one that is connected to: a name is looked
//! up once. Redirects are not followed.

pub mod blocking;
pub mod head;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};

use crate::arriving::Pace;
use crate::body::Body;

/// The port of addresses that name none.
const HTTP_PORT: u16 = 80;

/// The least bytes per second of an answer's body.
const SOURCE_RATE_MIN: u64 = 1024;

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The address is not one of HTTP.
    BadAddress,
    /// The host is not one that may be asked, or not by HTTPS, which this program does not speak to others.
    NotAllowed,
    /// The server did not answer, or not in HTTP, or not in time.
    Failed,
}

/// The head of an answer, with its body still to be read.
#[derive(Debug)]
pub struct ClientResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// Whom this program may ask.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Where this server itself listens, once it does.
    pub own: Arc<OnceLock<OwnAddresses>>,
    /// `HOST` for all ports of a host that is not this machine, `HOST:PORT` for one port wherever it is.
    pub hosts: Vec<String>,
}

/// The addresses that this server listens on.
#[derive(Clone, Debug)]
pub struct OwnAddresses {
    pub fronts: Vec<SocketAddr>,
    /// The addresses of the admin API, which is never asked.
    pub admins: Vec<SocketAddr>,
}

impl Sources {
    /// Whether a front of this server listens at this address.
    pub fn is_own_front(&self, address: SocketAddr) -> bool {
        let address = here(address);
        let fronts = self.own.get().map(|own| own.fronts.as_slice()).unwrap_or_default();
        fronts.iter().any(|front| {
            let is_everywhere = front.ip().is_unspecified() && address.ip().is_loopback();
            front.port() == address.port() && (is_everywhere || here(*front) == address)
        })
    }

    /// Whether a host may be asked at the address that its name stands for.
    pub fn allow(&self, host: &str, address: SocketAddr) -> bool {
        let is_here = here(address).ip().is_loopback();
        let admins = self.own.get().map(|own| own.admins.as_slice()).unwrap_or_default();
        let is_admin = |admin: &SocketAddr| {
            admin.port() == address.port() && (is_here || admin.ip() == address.ip())
        };
        if admins.iter().any(is_admin) {
            return false;
        }
        self.is_own_front(address)
            || self.names_port(host, address.port())
            || (self.names(host) && !is_here)
    }

    fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| bare(known).eq_ignore_ascii_case(host))
    }

    fn names_port(&self, host: &str, port: u16) -> bool {
        let is_it = |known: &String| match known.rsplit_once(':') {
            Some((name, number)) => {
                number.parse() == Ok(port) && bare(name).eq_ignore_ascii_case(host)
            }
            None => false,
        };
        self.hosts.iter().any(is_it)
    }

    /// Whether it is worth looking up where a host is: names of others are not asked for in the network.
    pub fn may_allow(&self, host: &str, port: u16) -> bool {
        let fronts = self.own.get().map(|own| own.fronts.as_slice()).unwrap_or_default();
        fronts.iter().any(|front| front.port() == port)
            || self.names(host)
            || self.names_port(host, port)
    }
}

/// An address of this machine in one form: mapped addresses as what they are mapped from, and the unspecified one, which
/// the system takes for it, as loopback.
fn here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// An IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Asks for what is at an address. `timeout` is the longest wait for the head of the answer, and then for each piece of its
/// body.
pub async fn get(
    url: &str,
    headers: &[(&'static str, String)],
    sources: &Sources,
    timeout: Duration,
) -> Result<ClientResponse, ClientError> {
    let uri: Uri = url.parse().map_err(|_| ClientError::BadAddress)?;
    let authority = uri.authority().ok_or(ClientError::BadAddress)?.clone();
    if authority.as_str().contains('@') {
        return Err(ClientError::BadAddress);
    }
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(ClientError::NotAllowed),
        _ => return Err(ClientError::BadAddress),
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let mut request = http::Request::new(NoBody);
    *request.method_mut() = Method::GET;
    *request.uri_mut() = path.parse().map_err(|_| ClientError::BadAddress)?;
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| ClientError::BadAddress);
    request.headers_mut().insert(HOST, value(authority.as_str())?);
    for (name, text) in headers {
        request.headers_mut().insert(HeaderName::from_static(name), value(text)?);
    }
    let answer = async {
        let port = authority.port_u16().unwrap_or(HTTP_PORT);
        let peer = resolve(authority.host(), port, sources).await?;
        let stream = TcpStream::connect(peer).await.map_err(|_| ClientError::Failed)?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|_| ClientError::Failed)?;
        // The task ends with the response, or when its reader is dropped.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|_| ClientError::Failed)
    };
    let answer = tokio::time::timeout(timeout, answer).await.map_err(|_| ClientError::Failed)??;
    let (head, body) = answer.into_parts();
    let pace = Pace { timeout, rate_min: SOURCE_RATE_MIN, waited: Duration::ZERO };
    Ok(ClientResponse {
        status: head.status,
        headers: head.headers,
        body: Body::incoming(body, pace, None),
    })
}

/// Where a host is, if it may be asked.
async fn resolve(host: &str, port: u16, sources: &Sources) -> Result<SocketAddr, ClientError> {
    let name = bare(host);
    if !sources.may_allow(name, port) {
        return Err(ClientError::NotAllowed);
    }
    let mut found = lookup_host((name, port)).await.map_err(|_| ClientError::Failed)?;
    found.find(|address| sources.allow(name, *address)).ok_or(ClientError::NotAllowed)
}

/// Requests of this kind have none.
struct NoBody;

impl http_body::Body for NoBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// A server with two fronts and an admin API.
    fn sources(fronts: &[&str], hosts: &[&str]) -> Sources {
        let own = OwnAddresses {
            fronts: fronts.iter().map(|front| address(front)).collect(),
            admins: vec![address("127.0.0.1:10010"), address("192.0.2.7:10011")],
        };
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Sources { own: Arc::new(OnceLock::from(own)), hosts }
    }

    #[tokio::test]
    async fn what_is_at_an_address_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 1024];
            let length = stream.read(&mut head).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let (url, sources) = (format!("http://{own}/a/b?c=d"), sources(&[&own], &[]));
        let read = get(&url, &[("x-ms-range", "bytes=0-4".into())], &sources, WAIT).await.unwrap();
        assert_eq!(read.status, StatusCode::OK);
        assert_eq!(read.body.collect(100).await.unwrap(), "hello");
        let head = server.await.unwrap();
        assert!(head.starts_with("GET /a/b?c=d HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("x-ms-range: bytes=0-4\r\n"), "{head}");
    }

    #[tokio::test]
    async fn other_machines_are_not_asked() {
        let sources = sources(&["127.0.0.1:10000"], &[]);
        let error = |url: &'static str| {
            let sources = sources.clone();
            async move { get(url, &[], &sources, WAIT).await.expect_err("it is refused") }
        };
        assert_eq!(error("http://192.0.2.1/a").await, ClientError::NotAllowed);
        assert_eq!(error("http://[2001:db8::1]/a").await, ClientError::NotAllowed);
        assert_eq!(error("https://127.0.0.1/a").await, ClientError::NotAllowed);
        assert_eq!(error("http://no-such-host.invalid/a").await, ClientError::NotAllowed);
        assert_eq!(error("http://user@127.0.0.1/a").await, ClientError::BadAddress);
        assert_eq!(error("/a").await, ClientError::BadAddress);
        assert_eq!(error("file:///etc/passwd").await, ClientError::BadAddress);
    }

    /// Whatever form an address of this machine has, only the fronts are asked there.
    #[tokio::test]
    async fn no_port_of_this_machine_is_asked_but_those_of_the_fronts() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let fronts = sources(&["127.0.0.1:10000"], &["localhost", "127.0.0.1", "::1", "0.0.0.0"]);
        let admin = sources(&["127.0.0.1:10000"], &["localhost:10010", "127.0.0.1:10010"]);
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.0.2",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "0.0.0.0",
            "0",
            "localhost",
            "LOCALHOST",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[0:0:0:0:0:ffff:7f00:1]",
        ] {
            for (sources, port) in [(&fronts, port), (&fronts, 10_010), (&admin, 10_010)] {
                let url = format!("http://{host}:{port}/v1/accounts");
                let refused = get(&url, &[], sources, WAIT).await.err();
                let known = [Some(ClientError::NotAllowed), Some(ClientError::BadAddress)];
                // Not every system reads every form; what it does not read it does not ask.
                let is_unread =
                    refused == Some(ClientError::Failed) && bare(host).parse::<IpAddr>().is_err();
                assert!(known.contains(&refused) || is_unread, "{url}: {refused:?}");
            }
        }
        let asked = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(asked.is_err(), "a port that is no front's was asked");
    }

    #[test]
    fn what_is_allowed_is_decided_by_the_address_and_not_by_the_name() {
        let sources = sources(
            &["0.0.0.0:10000", "[::1]:10001"],
            &["a.example", "b.example:81", "127.0.0.1:82"],
        );
        let allows = |host: &str, at: &str| sources.allow(host, address(at));
        for (host, at) in [
            ("localhost", "127.0.0.1:10000"),
            ("localhost", "127.0.0.9:10000"),
            ("dev.localhost", "[::ffff:127.0.0.1]:10000"),
            ("x", "0.0.0.0:10000"),
            ("x", "[::1]:10001"),
            ("a.example", "203.0.113.1:80"),
            ("A.EXAMPLE", "203.0.113.1:9999"),
            ("b.example", "203.0.113.1:81"),
            ("127.0.0.1", "127.0.0.1:82"),
        ] {
            assert!(allows(host, at), "{host} {at}");
        }
        for (host, at) in [
            // A name that was made to point here.
            ("a.example", "127.0.0.1:80"),
            ("a.example", "[::ffff:127.0.0.1]:80"),
            ("a.example", "127.0.0.1:10010"),
            ("a.example", "0.0.0.0:80"),
            ("localhost", "127.0.0.1:10010"),
            ("localhost", "[::1]:10010"),
            ("localhost", "127.0.0.1:10001"),
            ("b.example", "203.0.113.1:80"),
            // The port of a front on another machine.
            ("c.example", "203.0.113.1:10000"),
        ] {
            assert!(!allows(host, at), "{host} {at}");
        }
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (own, to) = (listener.local_addr().unwrap(), target.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            let answer = format!(
                "HTTP/1.1 302 Found\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let sources = sources(&[&own.to_string()], &[]);
        let read = get(&format!("http://{own}/"), &[], &sources, WAIT).await.unwrap();
        assert_eq!(read.status, StatusCode::FOUND);
        let asked = tokio::time::timeout(Duration::from_millis(50), target.accept()).await;
        assert!(asked.is_err());
    }
}
