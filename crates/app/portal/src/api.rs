//! The interface to the admin API, through which everything that the portal knows and does goes.
//!
//! The server that hosts the portal answers in process; over the wire the answers would be the same. Pages use [`Api`],
//! which turns refusals into errors with their reason.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, HeaderMap, Method, Response, StatusCode};
use serde_json::Value;

use crate::attempts::Tried;

/// The longest answer that a page reads, in bytes: ten thousand partitions with their figures take a third of it.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The admin API as the portal needs it.
pub trait AdminApi: Send + Sync + 'static {
    /// Compares a text with the admin token in constant time. Wrong ones are counted for all callers together.
    fn try_token(&self, text: &str, now: Instant) -> Tried;

    /// Answers one request as the API does over the wire. The caller has checked the token.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Response>;
}

/// One request to the admin API.
#[derive(Debug)]
pub struct Ask {
    pub method: Method,
    /// Percent-encoded, such as `/v1/maps/tables%2Forders`.
    pub path: String,
    /// What would follow the question mark.
    pub query: String,
    pub headers: HeaderMap,
    pub body: Body,
}

/// An answer that is no success, in the words of the admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

pub(crate) type Result<T> = std::result::Result<T, Refused>;

/// The admin API as pages use it.
#[derive(Clone)]
pub(crate) struct Api(Arc<dyn AdminApi>);

impl Api {
    pub(crate) fn new(api: Arc<dyn AdminApi>) -> Self {
        Self(api)
    }

    pub(crate) fn try_token(&self, text: &str, now: Instant) -> Tried {
        self.0.try_token(text, now)
    }

    /// What is at a path, such as `["v1", "maps", name]`; the pieces are encoded here.
    pub(crate) async fn get(&self, pieces: &[&str]) -> Result<Value> {
        self.get_with(pieces, &[]).await
    }

    /// The same with a query.
    pub(crate) async fn get_with(&self, pieces: &[&str], query: &[(&str, &str)]) -> Result<Value> {
        let answer = self.ask(Method::GET, pieces, query, Body::empty()).await?;
        read(answer).await
    }

    /// A change, with what is to be changed as JSON.
    pub(crate) async fn post(&self, pieces: &[&str], body: &Value) -> Result<Value> {
        self.change(Method::POST, pieces, body).await
    }

    /// The same for what is set.
    pub(crate) async fn put(&self, pieces: &[&str], body: &Value) -> Result<Value> {
        self.change(Method::PUT, pieces, body).await
    }

    async fn change(&self, method: Method, pieces: &[&str], body: &Value) -> Result<Value> {
        let body = Body::from(bytes::Bytes::from(body.to_string()));
        read(self.ask(method, pieces, &[], body).await?).await
    }

    /// The answer as it comes, for what is not JSON.
    pub(crate) async fn ask(
        &self,
        method: Method,
        pieces: &[&str],
        query: &[(&str, &str)],
        body: Body,
    ) -> Result<Response> {
        self.send(method, pieces, query, HeaderMap::new(), body).await
    }

    /// The same with headers.
    pub(crate) async fn send(
        &self,
        method: Method,
        pieces: &[&str],
        query: &[(&str, &str)],
        headers: HeaderMap,
        body: Body,
    ) -> Result<Response> {
        let path = pieces.iter().map(|piece| format!("/{}", percent_encode(piece))).collect();
        let pairs: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", percent_encode(value))).collect();
        let ask = Ask { method, path, query: pairs.join("&"), headers, body };
        let answer = self.0.ask(ask).await;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let status = answer.status;
        let said = read(answer).await.unwrap_or(Value::Null);
        let text = |name: &str| said["error"][name].as_str().map(str::to_owned);
        let message = text("message").unwrap_or_else(|| format!("the admin API says {status}"));
        Err(Refused { status, message, hint: text("hint").filter(|hint| !hint.is_empty()) })
    }
}

/// What an answer says.
pub(crate) async fn read(answer: Response) -> Result<Value> {
    let unreadable = |message: String| Refused {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        message,
        hint: None,
    };
    let bytes = answer.body.collect(ANSWER_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| unreadable(format!("the answer cannot be read: {error}")))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| unreadable(format!("the answer is not JSON: {error}")))
}
