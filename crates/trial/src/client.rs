//! A plain client of the storage services: one connection, signed requests, no retries.

use std::net::SocketAddr;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_azure::auth::{self, Dialect, Key};
use lazuli_http::client::blocking::{Connection, Options, date_now};
use lazuli_http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::json;

pub use lazuli_http::client::blocking::Answer;

use crate::Result;

pub const ACCOUNT: &str = "devstoreaccount1";

/// The published key of that account.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

static SIGNER: LazyLock<Key> =
    LazyLock::new(|| Key::from_base64(KEY).expect("the published key is base64"));

const BATCH: &str = "batch_trial";
const CHANGE_SET: &str = "changeset_trial";

/// A request before it is signed. The path begins behind the account.
#[derive(Clone, Debug)]
pub struct Request {
    dialect: Dialect,
    pub method: String,
    pub path: String,
    /// With its question mark, or empty.
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A request to the Table service.
    pub fn tables(method: &str, path: &str, query: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("x-ms-version", "2019-02-02"),
            ("accept", "application/json;odata=nometadata"),
            ("prefer", "return-no-content"),
            ("content-type", "application/json"),
        ];
        Self::new(Dialect::Tables, method, path, query, &headers, body)
    }

    /// A request to the Blob or the Queue service.
    pub fn storage(method: &str, path: &str, query: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = [("x-ms-version", "2021-12-02")];
        Self::new(Dialect::Storage, method, path, query, &headers, body)
    }

    fn new(
        dialect: Dialect,
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Self {
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        let request = Self { dialect, method, path, query, headers: Vec::new(), body: body.into() };
        let headers = [("host", "localhost")].iter().chain(headers);
        headers.fold(request, |request, (name, value)| request.with(name, value))
    }

    /// Sets a header, in place of one of the same name.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(it, _)| it != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same request, signed as of now. A query that cannot be read is left out of the signed text.
    pub fn signed(self) -> Self {
        let request = self.with("x-ms-date", &date_now());
        let mut headers: HeaderMap = request
            .headers
            .iter()
            .filter_map(|(name, value)| {
                let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
                Some((HeaderName::try_from(name).ok()?, value))
            })
            .collect();
        headers.insert("content-length", request.body.len().into());
        let method = request.method.parse().unwrap_or(Method::GET);
        let path = format!("/{ACCOUNT}{}", request.path);
        let query = request.query.trim_start_matches('?').to_owned();
        let mut signed = lazuli_http::Request::outgoing(method, path, query, headers);
        if auth::sign(&mut signed, request.dialect, ACCOUNT, &SIGNER).is_err() {
            signed.query.clear();
            // The date is there, and an empty query can be read.
            let _ = auth::sign(&mut signed, request.dialect, ACCOUNT, &SIGNER);
        }
        let authorization = signed.header("authorization").unwrap_or_default();
        request.with("authorization", authorization)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} /{ACCOUNT}{}{} HTTP/1.1\r\n", self.method, self.path, self.query);
        for (name, value) in &self.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        [out.as_bytes(), &self.body].concat()
    }
}

/// The signature of a text by the account's key.
pub fn signature(text: &str) -> String {
    STANDARD.encode(SIGNER.sign(text))
}

/// A transaction of these changes, as SDKs send it.
pub fn transaction(changes: &[Request]) -> Request {
    let mut body =
        format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGE_SET}\r\n\r\n");
    for change in changes {
        let Request { method, path, .. } = change;
        body.push_str(&format!(
            "--{CHANGE_SET}\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\n\
             {method} http://localhost/{ACCOUNT}{path} HTTP/1.1\r\n"
        ));
        for (name, value) in change.headers.iter().filter(|(name, _)| name != "host") {
            body.push_str(&format!("{name}: {value}\r\n"));
        }
        body.push_str(&format!("\r\n{}\r\n", String::from_utf8_lossy(&change.body)));
    }
    body.push_str(&format!("--{CHANGE_SET}--\r\n--{BATCH}--\r\n"));
    let content_type = format!("multipart/mixed; boundary={BATCH}");
    Request::tables("POST", "/$batch", "", body).with("content-type", &content_type)
}

pub struct Client(Connection);

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let opened = Connection::open(&address.to_string(), &Options::default());
        opened.map(Self).map_err(|error| format!("connect: {error}"))
    }

    pub fn create_table(&mut self, name: &str) -> Result {
        let body = json!({ "TableName": name }).to_string();
        self.expect(Request::tables("POST", "/Tables", "", body), &[201, 204]).map(drop)
    }

    /// Signs a request, sends it and waits for the answer.
    pub fn send(&mut self, request: Request) -> Result<Answer> {
        self.exchange(&request.signed().bytes())
    }

    /// The same; an answer with any other status is a failure.
    pub fn expect(&mut self, request: Request, statuses: &[u16]) -> Result<Answer> {
        let what = format!("{} {}", request.method, request.path);
        let answer = self.send(request)?;
        match statuses.contains(&answer.status) {
            true => Ok(answer),
            false => Err(format!("{what}: {} {}", answer.status, answer.text())),
        }
    }

    /// Sends any bytes and waits for the answer.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Answer> {
        self.0.exchange(request, b"").map(|(answer, _)| answer).map_err(|error| error.to_string())
    }

    /// Sends any bytes, says that no more will come, and reads the server's answer, if it has one.
    pub fn exchange_last(self, request: &[u8]) -> Option<Answer> {
        self.0.exchange_last(request)
    }
}
