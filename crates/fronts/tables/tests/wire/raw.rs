//! A front without a socket: request text is parsed, signed and handed over, and the answer becomes text again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_azure::auth::bearer::Tokens;
use lazuli_azure::auth::shared_key::table_text;
use lazuli_azure::auth::{Accounts, Key, Keys, Scheme};
use lazuli_engine::{Engine, Settings};
use lazuli_http::uri::Query;
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId};
use lazuli_shapes::record::Records;
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;
use lazuli_tables::{Limits, handler};

/// The time at which every request arrives.
const NOW_MS: u64 = 784_111_777_000 + 30 * 365 * 86_400_000;

/// What the answer to a plain request always has in it.
const ALWAYS: [&str; 4] = [
    "\nx-ms-request-id: 00000000-0000-0000-0000-000000000007\nx-ms-version: 2019-02-02",
    "\nserver: Lazuli\nx-content-type-options: nosniff",
    "\\nRequestId:00000000-0000-0000-0000-000000000007\\nTime:<time>",
    "\ncontent-type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
];

pub(crate) struct Server {
    handler: lazuli_http::Handler,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    /// A server with the accounts `dev` and `other`, and nothing in them.
    pub(crate) fn start() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let accounts = Arc::new(Accounts::new());
        for name in ["dev", "other"] {
            let keys = Keys { first: key("first"), second: Some(key("second")) };
            accounts.set(name, keys);
        }
        let records = runtime.block_on(records());
        let handler = handler(records, accounts, Tokens::Basic, limits);
        Self { handler, runtime }
    }

    /// Sends `METHOD target`, header lines, and after an empty line the body; `x-ms-date: none` sends no date. Answers
    /// status, headers and body, with what changes from run to run masked and what is the same in every answer left out.
    pub(crate) fn send(&self, text: &str) -> String {
        let answer = self.try_send(text).unwrap();
        ALWAYS.iter().fold(answer, |answer, always| answer.replace(always, ""))
    }

    /// Status and code of the service's refusal.
    pub(crate) fn refusal(&self, text: &str) -> String {
        let answer = self.try_send(text).unwrap();
        let code = answer.lines().find_map(|line| line.strip_prefix("x-ms-error-code: "));
        format!("{} {}", &answer[..3], code.unwrap_or("without a code"))
    }

    /// The whole answer, or nothing if the text is no HTTP.
    pub(crate) fn try_send(&self, text: &str) -> Option<String> {
        let request = parse(text)?;
        let response = self.runtime.block_on((self.handler)(request));
        let mut out = response.status.to_string();
        for (name, value) in &response.headers {
            out += &format!("\n{name}: {}", value.to_str().unwrap());
        }
        let body = self.runtime.block_on(response.body.collect(usize::MAX)).unwrap();
        if !body.is_empty() {
            out += &format!("\n\n{}", std::str::from_utf8(&body).unwrap());
        }
        Some(mask(&out) + "\n")
    }
}

/// An engine on one shard in memory.
async fn records() -> Records {
    let env = lazuli_env::real::env();
    let engine = Engine::on(env, Settings::default(), Arc::new(MemStore::new())).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    Records::new(engine)
}

/// The parameters with the signature of an account's key behind them. The text is what they sign.
pub(crate) fn shared_access(parameters: &str, text: &str) -> String {
    let signature = STANDARD.encode(key("first").sign(text));
    format!("{parameters}&sig={}", lazuli_http::uri::percent_encode(&signature))
}

fn key(text: &str) -> Key {
    Key::from_base64(&STANDARD.encode(text)).unwrap()
}

fn parse(text: &str) -> Option<Request> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    // What hyper refuses before a front sees it.
    let uri: lazuli_http::Uri = target.parse().ok()?;
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("127.0.0.1:10002"));
    let date = lazuli_http::date::format_rfc1123((NOW_MS / 1000) as i64);
    headers.insert("x-ms-date", date.parse().ok()?);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        headers.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value.parse().ok()?);
    }
    if headers.get("x-ms-date").is_some_and(|date| date == "none") {
        headers.remove("x-ms-date");
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
        let date = request.header("x-ms-date").unwrap_or_default().to_owned();
        let query = Query::parse(&request.query).unwrap_or_default();
        let text = table_text(scheme, request, &query, &account, &date);
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
    let first = match host.split_once(".table.") {
        Some((label, _)) => label,
        None => request.path.trim_start_matches('/').split('/').next().unwrap_or_default(),
    };
    first.trim_end_matches("-secondary").to_owned()
}

/// Replaces what the server's clock wrote.
fn mask(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("20") {
        let (before, tail) = rest.split_at(at);
        out += before;
        let colon = if tail.get(13..16) == Some("%3A") { "%3A" } else { ":" };
        let length = "2024-05-06T070809.1234567Z".len() + 2 * colon.len();
        let stamp = tail.get(..length).filter(|stamp| {
            stamp.as_bytes()[10] == b'T' && stamp.ends_with('Z') && stamp[13..].starts_with(colon)
        });
        match stamp {
            Some(stamp) => {
                out += "<time>";
                rest = &tail[stamp.len()..];
            }
            None => {
                out += "20";
                rest = &tail[2..];
            }
        }
    }
    out + rest
}
