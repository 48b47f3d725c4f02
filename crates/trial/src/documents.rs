//! Requests to the document service, and a client that signs them.

use std::net::SocketAddr;
use std::sync::LazyLock;

use lazuli_azure::auth::Key;
use lazuli_azure::auth::master_key::authorization;
use lazuli_http::client::blocking::{Answer, date_now};
use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

use crate::Result;
use crate::client::Client;

/// The key that emulators of the service publish.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

static SIGNER: LazyLock<Key> =
    LazyLock::new(|| Key::from_base64(KEY).expect("the published key is base64"));

/// The path of the property that is the partition key of every container here.
const KEY_PATH: &str = "/pk";

/// A request before it is signed.
#[derive(Clone, Debug)]
pub struct Request {
    method: &'static str,
    path: String,
    /// What is signed beside the method and the date: the type of the resource and its link.
    kind: &'static str,
    link: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Request {
    fn new(method: &'static str, path: &str, kind: &'static str, link: &str) -> Self {
        let (path, link) = (path.to_owned(), link.to_owned());
        let headers = vec![("host", "localhost".to_owned())];
        let request = Self { method, path, kind, link, headers, body: Vec::new() };
        request.with("x-ms-version", "2020-07-15")
    }

    /// Adds a header.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string().into_bytes();
        self.with("content-type", "application/json")
    }

    fn of_key(self, key: &str) -> Self {
        self.with("x-ms-documentdb-partitionkey", &json!([key]).to_string())
    }

    /// The whole request, signed as of now.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let date = date_now();
        let authorization = authorization(&SIGNER, self.method, self.kind, &self.link, &date);
        let mut out = format!("{} /{} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str(&format!("x-ms-date: {date}\r\nauthorization: {authorization}\r\n"));
        out.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        [out.as_bytes(), &self.body].concat()
    }
}

pub fn create_database(name: &str) -> Request {
    Request::new("POST", "dbs", "dbs", "").json(&json!({ "id": name }))
}

/// A container: its requests are those of its items.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    pub database: &'a str,
    pub name: &'a str,
}

impl Container<'_> {
    fn link(&self) -> String {
        format!("dbs/{}/colls/{}", self.database, self.name)
    }

    /// Creates it with this throughput, which decides how many ranges it begins with.
    pub fn create(&self, units: u32) -> Request {
        let parent = format!("dbs/{}", self.database);
        let key = json!({ "paths": [KEY_PATH], "kind": "Hash", "version": 2 });
        Request::new("POST", &format!("{parent}/colls"), "colls", &parent)
            .with("x-ms-offer-throughput", &units.to_string())
            .json(&json!({ "id": self.name, "partitionKey": key }))
    }

    /// The same, with an indexing policy of its own.
    pub fn create_with(&self, units: u32, indexing: &Value) -> Request {
        let request = self.create(units);
        let mut body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        body["indexingPolicy"] = indexing.clone();
        Request { body: body.to_string().into_bytes(), ..request }
    }

    pub fn delete(&self) -> Request {
        Request::new("DELETE", &self.link(), "colls", &self.link())
    }

    /// A request about all items.
    fn items(&self, method: &'static str) -> Request {
        let link = self.link();
        Request::new(method, &format!("{link}/docs"), "docs", &link)
    }

    /// A request about one item.
    fn item(&self, method: &'static str, key: &str, id: &str) -> Request {
        let link = self.link();
        let path = format!("{link}/docs/{}", percent_encode(id));
        Request::new(method, &path, "docs", &format!("{link}/docs/{id}")).of_key(key)
    }

    pub fn create_item(&self, key: &str, item: &Value) -> Request {
        self.items("POST").of_key(key).json(item)
    }

    pub fn upsert_item(&self, key: &str, item: &Value) -> Request {
        self.create_item(key, item).with("x-ms-documentdb-is-upsert", "true")
    }

    pub fn read_item(&self, key: &str, id: &str) -> Request {
        self.item("GET", key, id)
    }

    pub fn replace_item(&self, key: &str, id: &str, item: &Value) -> Request {
        self.item("PUT", key, id).json(item)
    }

    pub fn patch_item(&self, key: &str, id: &str, patch: &Value) -> Request {
        self.item("PATCH", key, id).json(patch)
    }

    pub fn delete_item(&self, key: &str, id: &str) -> Request {
        self.item("DELETE", key, id)
    }

    /// All of the operations or none of them, on items of one partition key.
    pub fn batch(&self, key: &str, operations: &Value) -> Request {
        let request = self.items("POST").of_key(key).json(operations);
        request
            .with("x-ms-cosmos-is-batch-request", "true")
            .with("x-ms-cosmos-batch-atomic", "true")
    }

    /// A page of a query, in one partition key or over all.
    pub fn query(&self, key: Option<&str>, text: &str, parameters: &[(&str, Value)]) -> Request {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        let mut request = self.items("POST").with("x-ms-documentdb-isquery", "true");
        request.body = json!({ "query": text, "parameters": parameters }).to_string().into_bytes();
        let request = request.with("content-type", "application/query+json");
        match key {
            Some(key) => request.of_key(key),
            None => request.with("x-ms-documentdb-query-enablecrosspartition", "true"),
        }
    }

    /// A page of all items, in the order in which they are kept.
    pub fn list(&self) -> Request {
        self.items("GET")
    }

    pub fn ranges(&self) -> Request {
        let link = self.link();
        Request::new("GET", &format!("{link}/pkranges"), "pkranges", &link)
    }

    /// A page of what has changed in a range since a position; from the beginning without one.
    pub fn changes(&self, range: &str, since: Option<&str>) -> Request {
        let request = self.items("GET").with("a-im", "Incremental Feed");
        let request = request.with("x-ms-documentdb-partitionkeyrangeid", range);
        since.into_iter().fold(request, |request, since| request.with("if-none-match", since))
    }
}

/// A client of the service: one connection, no retries.
pub struct DocumentClient(Client);

impl DocumentClient {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Client::connect(address).map(Self)
    }

    pub fn send(&mut self, request: &Request) -> Result<Answer> {
        self.0.exchange(&request.signed_bytes())
    }

    /// The same; an answer with any other status is a failure.
    pub fn expect(&mut self, request: &Request, statuses: &[u16]) -> Result<Answer> {
        let answer = self.send(request)?;
        match statuses.contains(&answer.status) {
            true => Ok(answer),
            false => {
                let Request { method, path, .. } = request;
                Err(format!("{method} {path}: {} {}", answer.status, answer.text()))
            }
        }
    }

    /// The documents of all pages of a query or a list of items.
    pub fn all(&mut self, request: &Request) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        let mut continuation: Option<String> = None;
        loop {
            let mut page = request.clone().with("x-ms-max-item-count", "1000");
            if let Some(continuation) = &continuation {
                page = page.with("x-ms-continuation", continuation);
            }
            let answer = self.expect(&page, &[200])?;
            match answer.json()["Documents"].take() {
                Value::Array(mut documents) => found.append(&mut documents),
                _ => return Err(format!("a page without documents: {}", answer.text())),
            }
            continuation = answer.header("x-ms-continuation").map(str::to_owned);
            if continuation.is_none() {
                return Ok(found);
            }
        }
    }
}
