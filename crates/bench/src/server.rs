//! A server in this process on free ports, and a client of its admin API.

use std::net::SocketAddr;
use std::path::Path;

use lazuli_server::Server;
use lazuli_server::settings::{Settings, Sources};
use lazuli_store::Result;
use lazuli_trial::client::{Answer, Client};
use serde_json::Value;

use crate::figures::failed;

const TOKEN: &str = "a-token-for-one-benchmark";
const SETTINGS: &[(&str, &str)] = &[("ports", "free"), ("log-level", "error")];

pub(crate) struct BenchServer(Server);

impl BenchServer {
    /// Starts a server on the data in `folder`, with further settings.
    pub(crate) async fn start(folder: &Path, settings: &[(&'static str, &str)]) -> Result<Self> {
        let data = folder.join("data").to_string_lossy().into_owned();
        let flags = SETTINGS.iter().chain(settings).map(|(name, text)| (*name, (*text).to_owned()));
        let sources = Sources {
            flags: flags.chain([("data", data)]).collect(),
            variables: [("LAZULI_ADMIN_TOKEN".to_owned(), TOKEN.to_owned())].into(),
            file: None,
            folder: folder.join("nothing"),
        };
        let settings = sources.texts().and_then(|texts| Settings::read(&texts)).map_err(failed)?;
        Server::start(settings).await.map(Self).map_err(failed)
    }

    pub(crate) fn address(&self, endpoint: &str) -> Result<SocketAddr> {
        let found = self.0.endpoints().iter().find(|it| it.name == endpoint);
        found.map(|it| it.address).ok_or_else(|| failed("no such endpoint"))
    }

    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }
}

/// A client of the admin API.
pub(crate) struct Admin(Client);

impl Admin {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        Client::connect(address).map(Self).map_err(failed)
    }

    /// Sends a request; null is no body. Any status but 200 is a failure.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = self.0.exchange(request.as_bytes()).map_err(failed)?;
        match answer.status {
            200 => Ok(answer),
            status => Err(failed(format_args!("{method} {path}: {status} {}", answer.text()))),
        }
    }

    pub(crate) fn json(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        serde_json::from_slice(&self.send(method, path, body)?.body).map_err(failed)
    }

    /// One metric without labels.
    pub(crate) fn metric(&mut self, name: &str) -> Result<f64> {
        let page = self.send("GET", "/metrics", &Value::Null)?.text();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|text| text.parse().ok()).ok_or_else(|| failed(format_args!("no {name}")))
    }
}
