//! Reading from another server: one request on a connection of its own, the body as it comes.
//!
//! Whoever may name an address may make this program ask there, so only this machine and hosts that the operator named are
//! asked. The address that was checked is the one that is connected to: a name is looked up once.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};

use crate::body::Body;

/// The port of addresses that name none.
const HTTP_PORT: u16 = 80;

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The address is not one of HTTP.
    BadAddress,
    /// The host is not one that may be asked.
    NotAllowed,
    /// Nobody answered, or not in HTTP, or not in time.
    Failed,
}

/// The head of an answer, with its body still to be read.
#[derive(Debug)]
pub struct ClientResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// Asks for what is at an address. `hosts` may be asked beside this machine; `timeout` is the longest wait for the head
/// of the answer, and then for each piece of its body.
pub async fn get(
    url: &str,
    headers: &[(&'static str, String)],
    hosts: &[String],
    timeout: Duration,
) -> Result<ClientResponse, ClientError> {
    let uri: Uri = url.parse().map_err(|_| ClientError::BadAddress)?;
    let authority = uri.authority().ok_or(ClientError::BadAddress)?.clone();
    if uri.scheme_str() != Some("http") || authority.as_str().contains('@') {
        return Err(ClientError::BadAddress);
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
        let peer = resolve(authority.host(), port, hosts).await?;
        let stream = TcpStream::connect(peer).await.map_err(|_| ClientError::Failed)?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|_| ClientError::Failed)?;
        // It ends with the answer, or when nobody reads that any more.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|_| ClientError::Failed)
    };
    let answer = tokio::time::timeout(timeout, answer).await.map_err(|_| ClientError::Failed)??;
    let (head, body) = answer.into_parts();
    Ok(ClientResponse {
        status: head.status,
        headers: head.headers,
        body: Body::incoming(body, timeout),
    })
}

/// Where a host is, if it may be asked.
async fn resolve(host: &str, port: u16, hosts: &[String]) -> Result<SocketAddr, ClientError> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let is_named = hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut found = lookup_host((name, port)).await.map_err(|_| ClientError::Failed)?;
    let allowed = found.find(|address| is_named || address.ip().is_loopback());
    allowed.ok_or(ClientError::NotAllowed)
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

    #[tokio::test]
    async fn what_is_at_an_address_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 1024];
            let length = stream.read(&mut head).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let url = format!("http://127.0.0.1:{port}/a/b?c=d");
        let read = get(&url, &[("x-ms-range", "bytes=0-4".into())], &[], WAIT).await.unwrap();
        assert_eq!(read.status, StatusCode::OK);
        assert_eq!(read.body.collect(100).await.unwrap(), "hello");
        let head = server.await.unwrap();
        assert!(head.starts_with("GET /a/b?c=d HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("x-ms-range: bytes=0-4\r\n"), "{head}");
    }

    #[tokio::test]
    async fn other_machines_are_not_asked() {
        let error = |url: &'static str| async move {
            get(url, &[], &[], WAIT).await.expect_err("it is refused")
        };
        assert_eq!(error("http://192.0.2.1/a").await, ClientError::NotAllowed);
        assert_eq!(error("http://[2001:db8::1]/a").await, ClientError::NotAllowed);
        assert_eq!(error("https://127.0.0.1/a").await, ClientError::BadAddress);
        assert_eq!(error("http://user@127.0.0.1/a").await, ClientError::BadAddress);
        assert_eq!(error("/a").await, ClientError::BadAddress);
        assert_eq!(error("file:///etc/passwd").await, ClientError::BadAddress);
    }
}
