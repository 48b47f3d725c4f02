//! A front without a socket: request text is parsed and handed over, and the answer becomes text again.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use lazuli_azure::auth::bearer::Tokens;
use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_engine::Engine;
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Request, RequestId};
use lazuli_index::Indexes;
use lazuli_search::{Parts, Settings, handler};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;
use serde_json::{Value, json};

/// The admin key of the account `dev`: base64 of `dev`.
const KEY: &str = "ZGV2";

pub(crate) struct Server {
    handler: lazuli_http::Handler,
    runtime: tokio::runtime::Runtime,
    _folder: tempfile::TempDir,
}

impl Server {
    /// A server with the accounts `dev` and `other`, whose writes wait until searches find them.
    fn start() -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let accounts = Arc::new(Accounts::new());
        for (name, key) in [("dev", KEY), ("other", "b3RoZXI=")] {
            accounts.set(name, Keys { first: Key::from_base64(key).unwrap(), second: None });
        }
        let folder = tempfile::tempdir().unwrap();
        let (handler, feeding) = runtime.block_on(async {
            handler(Parts {
                indexes: Indexes::new(engine().await, false),
                accounts,
                tokens: Tokens::Off,
                settings: Settings { waits: true, ..Settings::default() },
                folder: folder.path().to_owned(),
            })
        });
        drop(runtime.spawn(feeding));
        Self { handler, runtime, _folder: folder }
    }

    /// A server with the index `texts`, whose documents have a key and a text.
    pub(crate) fn with_index() -> Self {
        let server = Self::start();
        let key = json!({"name": "id", "type": "Edm.String", "key": true, "sortable": true});
        let fields = json!([key, {"name": "text", "type": "Edm.String"}]);
        let body = json!({"name": "texts", "fields": fields});
        assert_eq!(server.status(&format!("POST /indexes\n\n{body}")), 201);
        server
    }

    /// Writes documents that must be taken.
    pub(crate) fn write(&self, documents: Value) {
        let (status, results) = self.write_any(documents);
        assert_eq!(status, 200, "{results}");
    }

    /// Writes documents, and answers the status and the results.
    pub(crate) fn write_any(&self, documents: Value) -> (u16, Value) {
        let body = json!({"value": documents});
        let (status, body) = self.send(&format!("POST /indexes/texts/docs/index\n\n{body}"));
        (status, serde_json::from_str::<Value>(&body).unwrap()["value"].take())
    }

    pub(crate) fn status(&self, text: &str) -> u16 {
        self.send(text).0
    }

    /// The body of a request that must succeed.
    pub(crate) fn ok(&self, text: &str) -> String {
        let (status, body) = self.send(text);
        assert!((200..300).contains(&status), "{text}\n{status} {body}");
        body
    }

    pub(crate) fn json(&self, text: &str) -> Value {
        serde_json::from_str(&self.ok(text)).unwrap()
    }

    /// The status of a request, and a header of its response.
    pub(crate) fn header(&self, text: &str, name: &str) -> (u16, Option<String>) {
        let request = parse(text).unwrap_or_else(|| panic!("this is no request: {text}"));
        let response = self.runtime.block_on((self.handler)(request));
        let value = response.headers.get(name).map(|it| it.to_str().unwrap().to_owned());
        (response.status.as_u16(), value)
    }

    /// The status of a request that must be refused. Its body has a code and a message.
    pub(crate) fn refusal(&self, text: &str) -> String {
        let (status, body) = self.send(text);
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        let error = &body["error"];
        assert!(error["code"].is_string() && error["message"].is_string(), "{text}\n{body}");
        status.to_string()
    }

    /// Sends `METHOD target`, header lines, and after an empty line the body.
    fn send(&self, text: &str) -> (u16, String) {
        let request = parse(text).unwrap_or_else(|| panic!("this is no request: {text}"));
        let response = self.runtime.block_on((self.handler)(request));
        let body = self.runtime.block_on(response.body.collect(usize::MAX)).unwrap();
        (response.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
    }
}

fn parse(text: &str) -> Option<Request> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = match query {
        "" => "api-version=2024-07-01".to_owned(),
        query => format!("{query}&api-version=2024-07-01"),
    };
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("localhost"));
    headers.insert("api-key", HeaderValue::from_static(KEY));
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name: HeaderName = name.trim().parse().ok()?;
        headers.insert(name, HeaderValue::from_str(value.trim()).ok()?);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(Request {
        method: method.parse().ok()?,
        path: path.to_owned(),
        query,
        headers,
        body: Body::from(bytes::Bytes::copy_from_slice(body.as_bytes())),
        peer: ([127, 0, 0, 1], 1).into(),
        secure: false,
        received_ms: u64::try_from(now.as_millis()).ok()?,
        id: RequestId(1),
    })
}

async fn engine() -> Arc<Engine> {
    let env = lazuli_env::real::env();
    let catalog = Arc::new(MemStore::new());
    let engine = Engine::on(env, Default::default(), catalog).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    engine
}
