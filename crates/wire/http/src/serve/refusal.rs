//! What a client is told for whom there is no room: come back later, and nothing else.

use std::time::Duration;

use http::StatusCode;
use rustix::net::SendFlags;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::connection::greets_with_tls;
use crate::message::Response;
use crate::tls::Tls;

/// The most connections that are seen to at the same time. Others are closed as soon as the answer is on its way, and
/// without one if they speak TLS.
pub(super) const AT_ONCE_MAX: usize = 256;
/// How long that may take altogether.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How long a client may take to show whether it speaks TLS, where it may.
const GREETING_TIME_MAX: Duration = Duration::from_millis(500);
/// The most that is read of what the client has sent meanwhile.
const READ_BYTES_MAX: u64 = 1024 * 1024;

const ANSWER: &str = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
     x-ms-error-code: ServerBusy\r\ncontent-type: text/plain; charset=utf-8\r\n\
     content-length: 10\r\n\r\nServerBusy";

/// The same for a request on a connection that goes on.
pub(super) fn busy() -> Response {
    Response::text(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy")
        .with("x-ms-error-code", "ServerBusy")
        .with("retry-after", "1")
}

/// Puts the answer on its way without waiting for anything: in a socket that was just made there is room for it.
pub(super) fn refuse_at_once(stream: &TcpStream, tls: Option<&Tls>) {
    if tls.is_none() {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = rustix::net::send(stream, ANSWER.as_bytes(), flags);
    }
}

/// Tells a client that there are too many connections, and closes this one.
pub(super) async fn refuse(stream: TcpStream, tls: Option<Tls>) {
    let refusing = async {
        let secure = match &tls {
            Some(tls) if tls.plain_too => {
                let greeting = greets_with_tls(&stream);
                tokio::time::timeout(GREETING_TIME_MAX, greeting).await.unwrap_or(false)
            }
            other => other.is_some(),
        };
        match tls.filter(|_| secure) {
            None => say(stream).await,
            Some(tls) => {
                if let Ok(stream) = tls.acceptor.accept(stream).await {
                    say(stream).await;
                }
            }
        }
    };
    let _ = tokio::time::timeout(TIME_MAX, refusing).await;
}

/// Answers before anything was asked. The client is let finish what it sends: closed with bytes unread, the connection
/// would break before the client has read the answer.
async fn say<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let said = async {
        stream.write_all(ANSWER.as_bytes()).await?;
        stream.shutdown().await
    };
    if said.await.is_ok() {
        let _ = tokio::io::copy(&mut stream.take(READ_BYTES_MAX), &mut tokio::io::sink()).await;
    }
}
