//! HTTP/1.1 to the service, over TLS where its URL says so. Connections are used again. Answers are small enough to be read whole.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Uri;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use lazuli_store::{Error, Result};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::limits::{
    ANSWER_BYTES_MAX, CONNECT_TIME_MAX, IDLE_CONNECTIONS_MAX, IDLE_TIME_MAX, REQUEST_TIME_MAX,
};

/// Where systems keep the certificates that they trust.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Makes connections for one service.
#[derive(Clone)]
pub(crate) struct Connections {
    tls: Option<Arc<ClientConfig>>,
    idle: Arc<Mutex<Vec<Idle>>>,
}

struct Idle {
    /// Scheme, host and port.
    peer: Peer,
    sender: SendRequest<HttpRequestBody>,
    since: Instant,
}

#[derive(Clone, PartialEq, Eq)]
struct Peer {
    is_secure: bool,
    host: String,
    port: u16,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connections")
    }
}

impl Connections {
    /// Without TLS no certificates are looked for.
    pub(crate) fn new(is_secure: bool, ca_file: Option<&Path>) -> Result<Self> {
        let tls = is_secure.then(|| config(ca_file)).transpose()?;
        Ok(Self { tls, idle: Arc::default() })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, peer: &Peer) -> Option<SendRequest<HttpRequestBody>> {
        let mut idle = self.idle();
        idle.retain(|it| it.since.elapsed() < IDLE_TIME_MAX && !it.sender.is_closed());
        let at = idle.iter().rposition(|it| it.peer == *peer && it.sender.is_ready())?;
        Some(idle.swap_remove(at).sender)
    }

    fn put(&self, peer: Peer, sender: SendRequest<HttpRequestBody>) {
        let mut idle = self.idle();
        if idle.len() < IDLE_CONNECTIONS_MAX && !sender.is_closed() {
            idle.push(Idle { peer, sender, since: Instant::now() });
        }
    }

    async fn connect(&self, peer: &Peer) -> io::Result<SendRequest<HttpRequestBody>> {
        let stream = TcpStream::connect((&*peer.host, peer.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls.clone().filter(|_| peer.is_secure) else {
            return begin(stream).await;
        };
        let name = ServerName::try_from(peer.host.clone()).map_err(io::Error::other)?;
        begin(TlsConnector::from(tls).connect(name, stream).await?).await
    }

    async fn ask(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let unknown =
            |what: &'static str| HttpError::new(HttpErrorKind::Unknown, io::Error::other(what));
        let peer = peer(request.uri()).ok_or_else(|| unknown("the URL has no host"))?;
        if peer.is_secure && self.tls.is_none() {
            return Err(unknown("the service leads from http to https"));
        }
        let authority = request.uri().authority().map(|it| it.as_str().to_owned());
        let authority = authority.unwrap_or_default();
        let host = HeaderValue::from_str(&authority).map_err(|_| unknown("the host is odd"))?;
        request.headers_mut().entry(HOST).or_insert(host);
        let path = request.uri().path_and_query().map_or("/", |it| it.as_str()).to_owned();
        *request.uri_mut() = path.parse().map_err(|_| unknown("the path is odd"))?;
        let mut sender = match self.take(&peer) {
            Some(sender) => sender,
            None => match timeout(CONNECT_TIME_MAX, self.connect(&peer)).await {
                Ok(Ok(sender)) => sender,
                Ok(Err(error)) => return Err(HttpError::new(HttpErrorKind::Connect, error)),
                Err(late) => return Err(HttpError::new(HttpErrorKind::Connect, late)),
            },
        };
        let lost = |error| HttpError::new(HttpErrorKind::Request, error);
        let (head, body) = sender.send_request(request).await.map_err(lost)?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let interrupted = |error| HttpError::new_boxed(HttpErrorKind::Interrupted, error);
        let body = body.map_err(interrupted)?.to_bytes();
        self.put(peer, sender);
        let body = Full::<Bytes>::new(body).map_err(|never| match never {});
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

#[async_trait]
impl HttpService for Connections {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match timeout(REQUEST_TIME_MAX, self.ask(request)).await {
            Ok(answer) => answer,
            Err(late) => Err(HttpError::new(HttpErrorKind::Timeout, late)),
        }
    }
}

impl HttpConnector for Connections {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

fn peer(uri: &Uri) -> Option<Peer> {
    let is_secure = uri.scheme_str() == Some("https");
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    Some(Peer { is_secure, host, port })
}

async fn begin<S>(stream: S) -> io::Result<SendRequest<HttpRequestBody>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the sender.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let path: PathBuf = match ca_file {
        Some(path) => path.to_owned(),
        None => BUNDLES.iter().map(PathBuf::from).find(|it| it.exists()).ok_or_else(|| {
            let message = "the system has no certificates to trust: name some with ca_file=PATH";
            Error::invalid("bad-object-tls", message)
        })?,
    };
    let failed = |error: &dyn fmt::Display| {
        let message = format!("certificates to trust {}: {error}", path.display());
        Error::invalid("bad-object-tls", message)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&path).map_err(|error| failed(&error))? {
        // A bundle of a system may hold some that rustls does not know.
        let _ = roots.add(certificate.map_err(|error| failed(&error))?);
    }
    if roots.is_empty() {
        return Err(failed(&"there is no certificate in it"));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
