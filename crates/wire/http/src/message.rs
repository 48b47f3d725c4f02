//! A request and a response as handlers see them: plain values, whatever carries them.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::body::Body;

/// One request, its head complete and within the limits, its body still to be read.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    /// The path as it was sent, percent signs and all: signatures are made over these bytes.
    pub path: String,
    /// What followed the question mark, as it was sent; empty if there was none.
    pub query: String,
    pub headers: HeaderMap,
    pub body: Body,
    pub peer: SocketAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    /// When its head was complete, in milliseconds since the Unix epoch.
    pub received_ms: u64,
    /// Names this request in answers and logs.
    pub id: RequestId,
}

impl Request {
    /// A request that this program is about to sign and send. It has no body here and comes from no peer: signatures are
    /// made over the head alone.
    pub fn outgoing(method: Method, path: String, query: String, headers: HeaderMap) -> Self {
        let peer = ([0, 0, 0, 0], 0).into();
        let (body, id) = (Body::empty(), RequestId(0));
        Self { method, path, query, headers, body, peer, secure: false, received_ms: 0, id }
    }

    /// The value of a header, if it is there once or more and the first one is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body, which is empty from now on.
    pub fn take_body(&mut self) -> Body {
        std::mem::replace(&mut self.body, Body::empty())
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
    /// The operation that this is the answer of, by its name in the front's table: what metrics count it as.
    pub operation: Option<&'static str>,
}

impl Response {
    pub fn new(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Body::empty(), operation: None }
    }

    /// A short answer in plain text, for what no front has a word in.
    pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::new(status).with("content-type", "text/plain; charset=utf-8").with_body(text)
    }

    /// Adds a header. A value that no header can carry (control characters, over-long) is left out.
    pub fn with(mut self, name: &'static str, value: impl AsRef<str>) -> Self {
        if let Ok(value) = HeaderValue::from_bytes(value.as_ref().as_bytes()) {
            self.headers.append(HeaderName::from_static(name), value);
        }
        self
    }

    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Body::from(body.into());
        self
    }
}

/// A number that no two requests of a process share. Prints as a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub u128);

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let v = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            v >> 96,
            (v >> 80) & 0xffff,
            (v >> 64) & 0xffff,
            (v >> 48) & 0xffff,
            v & 0xffff_ffff_ffff
        )
    }
}
