//! Requests to the search service, and a client that sends them with an admin key.

use std::net::SocketAddr;

use serde_json::Value;

use crate::Result;
use crate::client::{Answer, Client, KEY};

/// A client of the service: one connection, no retries.
pub struct SearchClient(Client);

impl SearchClient {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Client::connect(address).map(Self)
    }

    /// Sends a request. Searches wait for everything that was answered before; writes are answered once they are durable.
    pub fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer> {
        let waits = !path.ends_with("/docs/index");
        self.exchange(method, path, body, if waits { "x-lazuli-wait: visible\r\n" } else { "" })
    }

    /// The same, and nothing waits: a search shows what is visible already.
    pub fn send_at_once(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        self.exchange(method, path, body, "")
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        header: &str,
    ) -> Result<Answer> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mark = if path.contains('?') { '&' } else { '?' };
        let head = format!(
            "{method} {path}{mark}api-version=2024-07-01 HTTP/1.1\r\nhost: localhost\r\napi-key: {KEY}\r\n\
             content-type: application/json\r\n{header}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.exchange(head.as_bytes())
    }

    /// The JSON of the response; one with any other status is a failure.
    pub fn expect(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        statuses: &[u16],
    ) -> Result<Value> {
        let answer = self.send(method, path, body)?;
        match statuses.contains(&answer.status) {
            true => Ok(answer.json()),
            false => Err(format!("{method} {path}: {} {}", answer.status, answer.text())),
        }
    }

    /// How many documents an index has.
    pub fn count(&mut self, index: &str) -> Result<usize> {
        let answer = self.send("GET", &format!("/indexes/{index}/docs/$count"), None)?;
        let text = answer.text();
        let count = text.trim_start_matches('\u{feff}').parse();
        count.map_err(|_| format!("no count: {} {text}", answer.status))
    }
}
