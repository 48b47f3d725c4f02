//! A portal on an admin API that says the same to everybody, and counts how often it is asked.

#![allow(unreachable_pub, reason = "only the modules beside it see it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lazuli_http::{Body, HeaderMap, HeaderValue, Method, Request, RequestId, Response, StatusCode};
use lazuli_net::{Stopper, stopper};
use lazuli_portal::{AdminApi, Ask, Attempts, BoxFuture, Portal, Tried};
use serde_json::{Value, json};

/// Live pages come often here, so that tests need not wait.
const REFRESH: Duration = Duration::from_millis(20);
pub const TOKEN: &str = "the-token-of-this-test";
pub const COOKIE: &str = "lazuli-portal-10010=";
/// What a hostile user would call a table.
pub const HOSTILE: &str = "tables/mine/<script>alert(1)</script>\"'&";

type Answers = dyn Fn(&Ask) -> Option<Value> + Send + Sync;

struct StandIn {
    attempts: Attempts,
    asked: AtomicUsize,
    more: Box<Answers>,
}

impl AdminApi for StandIn {
    fn try_token(&self, text: &str, now: Instant) -> Tried {
        if let Some(wait) = self.attempts.wait(now) {
            return Tried::Wait(wait);
        }
        if text == TOKEN {
            return Tried::Right;
        }
        self.attempts.count_wrong(now);
        Tried::Wrong
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Response> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let said = (self.more)(&ask).or_else(|| usual(&ask));
        let (status, said) = match said {
            Some(said) => (StatusCode::OK, said),
            None => {
                let error = json!({ "code": "not-found", "message": "there is no such thing", "hint": null });
                (StatusCode::NOT_FOUND, json!({ "error": error }))
            }
        };
        Box::pin(async move { Response::new(status).with_body(said.to_string()) })
    }
}

fn usual(ask: &Ask) -> Option<Value> {
    Some(match (ask.method.as_str(), ask.path.as_str()) {
        ("GET", "/v1/status") => json!({
            "version": "1.2.3", "uptime_s": 61, "shards": 2, "shards_down": 0, "maps": 1,
            "endpoints": { "tables": "http://127.0.0.1:10002" }, "troubles": [],
        }),
        ("GET", "/v1/overview") => json!({ "services": [], "shards": [], "step_s": 5 }),
        ("GET", "/v1/accounts") if ask.query == "keys=true" => json!({
            "accounts": [{ "name": "mine", "key1": "SECRET1", "key2": "SECRET2" }],
        }),
        ("GET", "/v1/accounts") => json!({ "accounts": [{ "name": "mine" }] }),
        ("GET", "/v1/shards") => json!({ "shards": [
            { "id": 1, "name": "shard-0001", "state": "online", "partitions": 3, "region": "local", "labels": {} },
            { "id": 2, "name": "shard-0002", "state": "draining", "partitions": 0, "region": "west", "labels": { "disk": HOSTILE } },
        ] }),
        ("GET", "/v1/jobs") => json!({ "jobs": [] }),
        ("POST", "/v1/jobs/7/pause") => json!({}),
        ("GET", "/v1/maps") => json!({ "maps": [{
            "name": HOSTILE, "kind": "range", "key": ["text"], "schema": "record/1", "partitions": 1,
        }] }),
        _ => return None,
    })
}

/// A portal, with what keeps it running.
pub struct Site {
    portal: Arc<Portal>,
    api: Arc<StandIn>,
    stopper: Stopper,
}

/// What the portal said.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// A header; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Site {
    pub fn new() -> Self {
        Self::with(|_| None)
    }

    /// A portal on an API that also answers this.
    pub fn with(more: impl Fn(&Ask) -> Option<Value> + Send + Sync + 'static) -> Self {
        let api = Arc::new(StandIn {
            attempts: Attempts::default(),
            asked: AtomicUsize::new(0),
            more: Box::new(more),
        });
        let (stopper, stop) = stopper();
        Self { portal: Portal::new(api.clone(), 10010, Vec::new(), REFRESH, stop), api, stopper }
    }

    pub fn asked(&self) -> usize {
        self.api.asked.load(Ordering::Relaxed)
    }

    pub async fn get(&self, path: &str, cookie: &str) -> Answer {
        self.send(Method::GET, path, cookie, "localhost:10010", "").await
    }

    pub async fn get_as(&self, path: &str, cookie: &str, host: &str) -> Answer {
        self.send(Method::GET, path, cookie, host, "").await
    }

    pub async fn post(&self, path: &str, cookie: &str, body: &str) -> Answer {
        self.send(Method::POST, path, cookie, "localhost:10010", body).await
    }

    /// A session: its cookie, and the secret in its forms.
    pub async fn log_in(&self) -> (String, String) {
        let answer = self.post("/portal/login", "", &format!("token={TOKEN}")).await;
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        let page = self.get("/portal/", &cookie).await;
        let (_, after) = page.body.split_once("name=\"csrf\" value=\"").unwrap();
        (cookie, after.split('"').next().unwrap().to_owned())
    }

    /// A form of another kind than the usual one.
    pub async fn post_as(&self, path: &str, cookie: &str, kind: &str, body: Body) -> Answer {
        let mut request = request(Method::POST, path, cookie, "localhost", "");
        request.headers.insert("content-type", HeaderValue::from_str(kind).unwrap());
        request.body = body;
        answer(self.portal.clone().handle(request).await).await
    }

    /// Ends what would go on by itself.
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// The answer as it comes.
    pub async fn stream(&self, path: &str, cookie: &str) -> Response {
        let request = request(Method::GET, path, cookie, "localhost", "");
        self.portal.clone().handle(request).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        cookie: &str,
        host: &str,
        body: &str,
    ) -> Answer {
        answer(self.portal.clone().handle(request(method, path, cookie, host, body)).await).await
    }
}

async fn answer(response: Response) -> Answer {
    let body = response.body.collect(16 * 1024 * 1024).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Answer { status: response.status, headers: response.headers, body }
}

fn request(method: Method, path: &str, cookie: &str, host: &str, body: &str) -> Request {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut headers = HeaderMap::new();
    for (name, value) in [("host", host), ("cookie", cookie)] {
        if !value.is_empty() {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
    }
    Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: Body::from(bytes::Bytes::from(body.to_owned())),
        peer: "127.0.0.1:1".parse().unwrap(),
        secure: false,
        received_ms: 0,
        id: RequestId(0),
    }
}
