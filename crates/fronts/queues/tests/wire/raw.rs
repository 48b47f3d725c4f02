//! A front without a socket: request text is parsed, signed and handed over, and the answer becomes text again.

use std::cell::Cell;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_azure::auth::bearer::Tokens;
use lazuli_azure::auth::shared_key::{Form, storage_text};
use lazuli_azure::auth::{Accounts, Key, Keys, Scheme};
use lazuli_engine::{Engine, Settings};
use lazuli_http::uri::Query;
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId};
use lazuli_queues::{Limits, handler};
use lazuli_shapes::queue::Queues;
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

/// The time at which every request arrives.
pub(crate) const NOW_MS: u64 = 784_111_777_000 + 30 * 365 * 86_400_000;

/// What every answer has in it.
const ALWAYS: [&str; 3] = [
    "\nx-ms-request-id: 00000000-0000-0000-0000-000000000007\nx-ms-version: 2026-10-06\
     \nserver: Lazuli",
    "\nRequestId:00000000-0000-0000-0000-000000000007\nTime:2024-10-29T08:49:37.0000000Z",
    "\ncontent-type: application/xml",
];

pub(crate) struct Server {
    handler: lazuli_http::Handler,
    runtime: tokio::runtime::Runtime,
    /// Whether requests come over TLS.
    pub(crate) secure: Cell<bool>,
}

impl Server {
    /// A server with the accounts `dev` and `other`, and nothing in them.
    pub(crate) fn start() -> Self {
        Self::with(Limits::default(), Tokens::Basic)
    }

    pub(crate) fn with(limits: Limits, tokens: Tokens) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let accounts = Arc::new(Accounts::new());
        for name in ["dev", "other"] {
            let keys = Keys { first: key("first"), second: Some(key("second")) };
            accounts.set(name, keys);
        }
        let queues = runtime.block_on(queues());
        let handler = handler(queues, accounts, tokens, limits);
        Self { handler, runtime, secure: Cell::new(false) }
    }

    /// Sends `METHOD target`, header lines, and after an empty line the body. Answers status, headers and body, with
    /// what changes from run to run masked and what is the same in every answer left out.
    pub(crate) fn send(&self, text: &str) -> String {
        let answer = mask(&self.whole(text));
        ALWAYS.iter().fold(answer, |answer, always| answer.replace(always, ""))
    }

    /// Status and code of the service's refusal.
    pub(crate) fn refusal(&self, text: &str) -> String {
        let answer = self.whole(text);
        let code = answer.lines().find_map(|line| line.strip_prefix("x-ms-error-code: "));
        format!("{} {}", &answer[..3], code.unwrap_or("without a code"))
    }

    /// The whole answer as it is.
    pub(crate) fn whole(&self, text: &str) -> String {
        let mut request = parse(text).unwrap();
        request.secure = self.secure.get();
        let response = self.runtime.block_on((self.handler)(request));
        let mut out = response.status.to_string();
        for (name, value) in &response.headers {
            out += &format!("\n{name}: {}", value.to_str().unwrap());
        }
        let body = self.runtime.block_on(response.body.collect(usize::MAX)).unwrap();
        if !body.is_empty() {
            out += &format!("\n\n{}", std::str::from_utf8(&body).unwrap());
        }
        out + "\n"
    }
}

/// The texts of all elements of this name.
pub(crate) fn elements(answer: &str, name: &str) -> Vec<String> {
    let open = format!("<{name}>");
    let pieces = answer.split(&open).skip(1);
    pieces.filter_map(|piece| piece.split_once("</")).map(|(text, _)| text.to_owned()).collect()
}

/// An engine on one shard in memory.
async fn queues() -> Queues {
    let env = lazuli_env::real::env();
    let engine = Engine::on(env, Settings::default(), Arc::new(MemStore::new())).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    Queues::new(engine)
}

/// The parameters with the signature of an account's key behind them. The text is what they sign.
pub(crate) fn shared_access(parameters: &str, text: &str) -> String {
    signed_with(&key("first"), parameters, text)
}

pub(crate) fn signed_with(key: &Key, parameters: &str, text: &str) -> String {
    let signature = STANDARD.encode(key.sign(text));
    format!("{parameters}&sig={}", lazuli_http::uri::percent_encode(&signature))
}

fn key(text: &str) -> Key {
    Key::from_base64(&STANDARD.encode(text)).unwrap()
}

fn parse(text: &str) -> Option<Request> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let uri: lazuli_http::Uri = target.parse().ok()?;
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("127.0.0.1:10001"));
    headers.insert("x-ms-version", HeaderValue::from_static("2026-10-06"));
    headers.insert("content-length", body.len().into());
    let date = lazuli_http::date::format_rfc1123((NOW_MS / 1000) as i64);
    headers.insert("x-ms-date", date.parse().ok()?);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        headers.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value.parse().ok()?);
    }
    let mut request = Request {
        method: Method::from_bytes(method.as_bytes()).ok()?,
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        headers,
        body: Body::from(bytes::Bytes::copy_from_slice(body.as_bytes())),
        peer: ([127, 0, 0, 1], 1).into(),
        secure: false,
        received_ms: NOW_MS,
        id: RequestId(7),
    };
    sign(&mut request);
    Some(request)
}

/// Signs as the header asks for: `none`, a value of its own, or `sign`, which is also what no header means.
fn sign(request: &mut Request) {
    let how = request.header("authorization").unwrap_or("sign").to_owned();
    request.headers.remove("authorization");
    if how == "none" {
        return;
    }
    let value = if how.starts_with("sign") {
        let (scheme, name) = match how.contains("lite") {
            true => (Scheme::SharedKeyLite, "SharedKeyLite"),
            false => (Scheme::SharedKey, "SharedKey"),
        };
        let account = signer(request, &how);
        let query = Query::parse(&request.query).unwrap_or_default();
        let text = storage_text(scheme, request, &query, &account, Form::DOCUMENTED);
        let key = key(if how.contains("second") { "second" } else { "first" });
        format!("{name} {account}:{}", STANDARD.encode(key.sign(&text)))
    } else {
        how
    };
    request.headers.insert("authorization", value.parse().unwrap());
}

fn signer(request: &Request, how: &str) -> String {
    if let Some(account) = how.strip_prefix("sign as ") {
        return account.to_owned();
    }
    let host = request.header("host").unwrap_or_default();
    let first = match host.split_once(".queue.") {
        Some((label, _)) => label,
        None => request.path.trim_start_matches('/').split('/').next().unwrap_or_default(),
    };
    first.trim_end_matches("-secondary").to_owned()
}

/// Replaces what the server's clock and chance wrote.
fn mask(text: &str) -> String {
    let masked = [
        ("MessageId", "<id>"),
        ("PopReceipt", "<receipt>"),
        ("InsertionTime", "<time>"),
        ("TimeNextVisible", "<time>"),
    ];
    let mut text = text.to_owned();
    for (name, mask) in masked {
        for found in elements(&text, name) {
            let (open, close) = (format!("<{name}>"), format!("</{name}>"));
            let found = format!("{open}{found}{close}");
            text = text.replace(&found, &format!("{open}{mask}{close}"));
        }
    }
    for found in elements(&text, "ExpirationTime") {
        if !found.contains("9999") {
            text = text.replace(&found, "<time>");
        }
    }
    let lines = text.lines().map(|line| match line.split_once(": ") {
        Some((name @ ("x-ms-popreceipt" | "x-ms-time-next-visible"), _)) => {
            format!("{name}: <masked>")
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}
