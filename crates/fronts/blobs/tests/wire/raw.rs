//! A front without a socket: request text is parsed, signed and handed over, and the answer becomes text again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_azure::auth::bearer::Tokens;
use lazuli_azure::auth::shared_key::{Form, storage_text};
use lazuli_azure::auth::{Accounts, Key, Keys, Scheme};
use lazuli_blobs::{Limits, handler};
use lazuli_engine::{Engine, Settings};
use lazuli_http::uri::Query;
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId};
use lazuli_shapes::blob::Blobs;
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;
use lazuli_store::mem_blocks::MemBlocks;

/// What the answer to a plain request always has in it.
const ALWAYS: [&str; 3] = [
    "\nx-ms-request-id: 00000000-0000-0000-0000-000000000007\nx-ms-version: 2021-12-02",
    "\nserver: Lazuli\nx-content-type-options: nosniff",
    "\nRequestId:00000000-0000-0000-0000-000000000007\nTime:<time>",
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
        let blobs = runtime.block_on(blobs());
        let handler = handler(blobs, accounts, Tokens::Basic, limits);
        Self { handler, runtime }
    }

    /// Sends `METHOD target`, header lines, and after an empty line the body. Answers status, headers and body, with
    /// what changes from run to run masked and what is the same in every answer left out.
    pub(crate) fn send(&self, text: &str) -> String {
        let answer = self.try_send(text).unwrap();
        ALWAYS.iter().fold(answer, |answer, always| answer.replace(always, ""))
    }

    /// Sends what must succeed.
    pub(crate) fn done(&self, text: &str) -> String {
        let answer = self.send(text);
        assert!(answer.starts_with('2'), "{text}\n{answer}");
        answer
    }

    /// Status and code of the service's refusal.
    pub(crate) fn refusal(&self, text: &str) -> String {
        let answer = self.try_send(text).unwrap();
        let code = answer.lines().find_map(|line| line.strip_prefix("x-ms-error-code: "));
        format!("{} {}", &answer[..3], code.unwrap_or("without a code"))
    }

    /// The value of a header of the answer to what must succeed, as it is.
    pub(crate) fn header(&self, text: &str, name: &str) -> String {
        let answer = self.answer(text).unwrap();
        assert!(answer.starts_with('2'), "{text}\n{answer}");
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    }

    /// The whole answer, or nothing if the text is no HTTP.
    pub(crate) fn try_send(&self, text: &str) -> Option<String> {
        Some(mask(&self.answer(text)?) + "\n")
    }

    fn answer(&self, text: &str) -> Option<String> {
        let request = parse(text)?;
        let response = self.runtime.block_on((self.handler)(request));
        let mut out = response.status.to_string();
        for (name, value) in &response.headers {
            out += &format!("\n{name}: {}", value.to_str().unwrap());
        }
        let body = self.runtime.block_on(response.body.collect(usize::MAX)).unwrap();
        if !body.is_empty() {
            out += &format!("\n\n{}", String::from_utf8_lossy(&body));
        }
        Some(out)
    }
}

/// Blobs on one shard in memory.
async fn blobs() -> Blobs {
    let env = lazuli_env::real::env();
    let engine = Engine::on(env, Settings::default(), Arc::new(MemStore::new())).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    Blobs::new(engine, Arc::new(MemBlocks::new()))
}

fn key(text: &str) -> Key {
    Key::from_base64(&STANDARD.encode(text)).unwrap()
}

/// The parameters with the signature of an account's key behind them. The text is what they sign.
pub(crate) fn shared_access(parameters: &str, text: &str) -> String {
    let signature = STANDARD.encode(key("first").sign(text));
    format!("{parameters}&sig={}", lazuli_http::uri::percent_encode(&signature))
}

fn now_ms() -> u64 {
    lazuli_env::real::env().clock.now_ms()
}

fn parse(text: &str) -> Option<Request> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    // What hyper refuses before a front sees it.
    let uri: lazuli_http::Uri = target.parse().ok()?;
    let now = now_ms();
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("127.0.0.1:10000"));
    headers.insert("x-ms-version", HeaderValue::from_static("2021-12-02"));
    let date = lazuli_http::date::format_rfc1123((now / 1000) as i64);
    headers.insert("x-ms-date", date.parse().ok()?);
    if !body.is_empty() {
        headers.insert("content-length", body.len().to_string().parse().ok()?);
    }
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
        received_ms: now,
        id: RequestId(7),
    };
    sign(&mut request);
    Some(request)
}

/// Signs as the header asks for: `none`, a value of its own, or `sign`, which is also what no header means. Who signed in
/// the address does not sign again.
fn sign(request: &mut Request) {
    let how = request.header("authorization").unwrap_or("sign").to_owned();
    request.headers.remove("authorization");
    if how == "none" || request.query.contains("sig=") {
        return;
    }
    let value = if how == "sign" {
        let host = request.header("host").unwrap_or_default();
        let first = match host.split_once('.') {
            Some((label, _)) if label.parse::<u8>().is_err() => label,
            _ => request.path.trim_start_matches('/').split('/').next().unwrap_or_default(),
        };
        let account = first.trim_end_matches("-secondary").to_owned();
        let query = Query::parse(&request.query).unwrap_or_default();
        let form = Form::DOCUMENTED;
        let text = storage_text(Scheme::SharedKey, request, &query, &account, form);
        format!("SharedKey {account}:{}", STANDARD.encode(key("first").sign(&text)))
    } else {
        how
    };
    request.headers.insert("authorization", value.parse().unwrap());
}

/// Replaces what the server's clock wrote: moments, dates, ETags and ids.
fn mask(text: &str) -> String {
    let text = masked(text, "2024-05-06T07:08:09.1234567Z", "<time>");
    let text = masked(&text, "Sun, 06 Nov 1994 08:49:37 GMT", "<date>");
    let text = masked(&text, "0x8DBE55EE8F6C4B7", "<etag>");
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let kept = text.replace("00000000-0000-0000-0000-000000000007", "<request>");
    masked(&kept, id, "<id>").replace("<request>", "00000000-0000-0000-0000-000000000007")
}

/// Replaces what has the shape of the example: digits, letters and other signs at the same places.
fn masked(text: &str, example: &str, mark: &str) -> String {
    let is_id = example.starts_with("0f8");
    let alike = |(one, other): (char, char)| match other {
        _ if is_id && other != '-' => one.is_ascii_hexdigit() && !one.is_ascii_uppercase(),
        '0'..='9' | 'A'..='F' if example.starts_with("0x8D") => {
            one.is_ascii_digit() || one.is_ascii_uppercase()
        }
        '0'..='9' => one.is_ascii_digit(),
        'A'..='Z' | 'a'..='z' => one.is_ascii_alphabetic(),
        _ => one == other,
    };
    let (chars, shape): (Vec<char>, Vec<char>) =
        (text.chars().collect(), example.chars().collect());
    let (mut out, mut at) = (String::new(), 0);
    while at < chars.len() {
        let part = chars.get(at..at + shape.len());
        let begins =
            |part: &[char]| !example.starts_with("0x8D") || part.starts_with(&['0', 'x', '8', 'D']);
        let is_alike = |part: &[char]| {
            part.iter().copied().zip(shape.iter().copied()).all(alike) && begins(part)
        };
        if part.is_some_and(is_alike) {
            out += mark;
            at += shape.len();
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}
