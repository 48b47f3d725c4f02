//! A front without a socket: request text is parsed, signed and handed over, and the answer becomes text again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_documents::{Limits, Parts, handler};
use lazuli_engine::{Engine, Settings};
use lazuli_http::uri::{percent_decode, percent_encode};
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId};
use lazuli_shapes::document::{Documents, Sizing, deriving};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

/// What every answer has in it, beside the activity id.
const ALWAYS: [&str; 7] = [
    "x-ms-activity-id: ",
    "x-ms-serviceversion: ",
    "x-ms-gatewayversion: ",
    "x-ms-schemaversion: ",
    "cache-control: ",
    "server: ",
    "x-content-type-options: ",
];

pub(crate) struct Server {
    handler: lazuli_http::Handler,
    documents: Documents,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    /// A server with the accounts `dev` and `other`, and nothing in them.
    pub(crate) fn start() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::sized(limits, Sizing::default())
    }

    pub(crate) fn sized(limits: Limits, sizing: Sizing) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let accounts = Arc::new(Accounts::new());
        for name in ["dev", "other"] {
            accounts.set(name, Keys { first: key(name), second: None });
        }
        let documents = runtime.block_on(documents()).sized(sizing);
        let certificate = Some("-----BEGIN CERTIFICATE-----\n".to_owned());
        let parts = Parts { accounts, published: None, certificate, limits };
        Self { handler: handler(documents.clone(), parts), documents, runtime }
    }

    /// Does what is done in the background to ranges.
    pub(crate) fn resize(&self) {
        self.runtime.block_on(self.documents.resize()).unwrap();
    }

    /// A server with a database `d` and a container `c` in it, partitioned by `/pk`.
    pub(crate) fn with_container() -> Self {
        let server = Self::start();
        server.create_container();
        server
    }

    pub(crate) fn create_container(&self) {
        self.ok("POST /dbs\n\n{\"id\":\"d\"}");
        let key = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
        self.ok(&format!("POST /dbs/d/colls\n\n{{\"id\":\"c\",\"partitionKey\":{key}}}"));
    }

    /// Lets containers go whose writes were held back for long enough.
    pub(crate) fn release_lapsed(&self) {
        self.runtime.block_on(self.documents.release_lapsed()).unwrap();
    }

    /// Builds indexes that are to be built.
    pub(crate) fn tend(&self) {
        self.runtime.block_on(self.documents.tend()).unwrap();
    }

    /// The body of a request that must succeed.
    pub(crate) fn ok(&self, text: &str) -> String {
        let answer = self.send(text);
        assert!(answer.starts_with('2'), "{text}\n{answer}");
        answer.split_once("\n\n").map(|(_, body)| body.trim_end().to_owned()).unwrap_or_default()
    }

    /// Status and substatus of a request that must be refused. Its body has a code and a message.
    pub(crate) fn refusal(&self, text: &str) -> String {
        let answer = self.send(text);
        let (head, body) = answer.split_once("\n\n").unwrap_or((&answer, ""));
        assert!(body.contains("\"code\":") && body.contains("\"message\":"), "{text}\n{answer}");
        match header(head, "x-ms-substatus") {
            Some(substatus) => format!("{}/{substatus}", &head[..3]),
            None => head[..3].to_owned(),
        }
    }

    /// The value of a header of the answer.
    pub(crate) fn header(&self, text: &str, name: &str) -> Option<String> {
        header(&self.send(text), name)
    }

    /// Sends `METHOD target`, header lines, and after an empty line the body. `authorization: none` sends none, and
    /// `authorization: as NAME` signs with the key of that account. Answers status, headers and body, without the headers
    /// that every answer has.
    pub(crate) fn send(&self, text: &str) -> String {
        self.send_at(text, now_ms())
    }

    /// The same, received at another time.
    pub(crate) fn send_at(&self, text: &str, now_ms: u64) -> String {
        let request = parse(text, now_ms).unwrap_or_else(|| panic!("this is no request: {text}"));
        let response = self.runtime.block_on((self.handler)(request));
        let mut out = response.status.to_string();
        for (name, value) in &response.headers {
            let line = format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()));
            if !ALWAYS.iter().any(|always| line.starts_with(always)) {
                out += &format!("\n{line}");
            }
        }
        let body = self.runtime.block_on(response.body.collect(usize::MAX)).unwrap();
        if !body.is_empty() {
            out += &format!("\n\n{}", std::str::from_utf8(&body).unwrap());
        }
        out + "\n"
    }
}

pub(crate) fn header(answer: &str, name: &str) -> Option<String> {
    let head = answer.split_once("\n\n").map_or(answer, |(head, _)| head);
    let start = format!("{name}: ");
    head.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned))
}

/// An engine on one shard in memory.
async fn documents() -> Documents {
    let env = lazuli_env::real::env();
    let settings = Settings { deriving: deriving(), ..Settings::default() };
    let engine = Engine::on(env, settings, Arc::new(MemStore::new())).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    Documents::new(engine)
}

fn key(text: &str) -> Key {
    Key::from_base64(&STANDARD.encode(text)).unwrap()
}

pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_millis() as u64
}

fn parse(text: &str, now_ms: u64) -> Option<Request> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("127.0.0.1:8081"));
    let date = lazuli_http::date::format_rfc1123((now_ms / 1000) as i64);
    headers.insert("x-ms-date", date.parse().ok()?);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        headers.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value.parse().ok()?);
    }
    let mut request = Request {
        method: Method::from_bytes(method.as_bytes()).ok()?,
        path: path.to_owned(),
        query: String::new(),
        headers,
        body: Body::from(bytes::Bytes::copy_from_slice(body.as_bytes())),
        peer: ([127, 0, 0, 1], 1).into(),
        secure: false,
        received_ms: now_ms,
        id: RequestId(7),
    };
    sign(&mut request);
    Some(request)
}

/// Signs as clients do: over method, kind, link and date.
fn sign(request: &mut Request) {
    let how = request.header("authorization").unwrap_or("as dev").to_owned();
    let Some(account) = how.strip_prefix("as ") else {
        if how == "none" {
            request.headers.remove("authorization");
        }
        return;
    };
    let path = request.path.trim_matches('/').to_owned();
    let segments: Vec<String> =
        path.split('/').map(|part| percent_decode(part).unwrap().into_owned()).collect();
    let (kind, link) = match segments.len() {
        _ if path.is_empty() => (String::new(), String::new()),
        _ if path.ends_with("partitionkeydelete") => ("colls".into(), segments[..4].join("/")),
        2 if segments[0] == "offers" => ("offers".into(), segments[1].to_lowercase()),
        length if length % 2 == 0 => (segments[length - 2].clone(), segments.join("/")),
        length => (segments[length - 1].clone(), segments[..length - 1].join("/")),
    };
    let date = request.header("x-ms-date").unwrap_or_default().to_lowercase();
    let method = request.method.as_str().to_lowercase();
    let signature = key(account).sign(&format!("{method}\n{kind}\n{link}\n{date}\n\n"));
    let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(signature));
    request.headers.insert("authorization", percent_encode(&token).parse().unwrap());
}
