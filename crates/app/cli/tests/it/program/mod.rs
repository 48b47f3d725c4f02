//! The real program for tests: started on free ports with data of its own, asked over real sockets, ended with the test.

#![allow(unreachable_pub, reason = "only the modules beside it see it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use lazuli_azure::auth::{self, Dialect, Key};
use lazuli_http::client::blocking::{Answer, Connection, Options, Trust, date_now};
use lazuli_http::{HeaderMap, HeaderName, Request};
use serde_json::Value;

/// How long the program may take to get ready or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program with these arguments, in an environment without settings.
pub fn lazuli(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lazuli"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LAZULI_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    lazuli(folder, arguments).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    folder: PathBuf,
    pub ready: Value,
}

impl Server {
    pub fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[], &[])
    }

    pub fn start_with(folder: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let ready = folder.join("ready.json");
        let _ = std::fs::remove_file(&ready);
        let mut command = lazuli(folder, &["serve", "--ports", "free"]);
        command.arg("--ready-file").arg(&ready).args(flags).envs(variables.iter().copied());
        let output = std::fs::File::create(folder.join("stdout.txt")).unwrap();
        let errors = std::fs::File::create(folder.join("stderr.txt")).unwrap();
        let mut child = command.stdout(output).stderr(errors).spawn().unwrap();
        let began = Instant::now();
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&ready) {
                break text;
            }
            let log = || std::fs::read_to_string(folder.join("stderr.txt")).unwrap();
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the server ended with {status}: {}", log());
            }
            assert!(began.elapsed() < PATIENCE, "the server is not ready: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        };
        Self { child, folder: folder.to_owned(), ready: serde_json::from_str(&text).unwrap() }
    }

    /// The authority of an endpoint, such as `127.0.0.1:4711`.
    pub fn endpoint(&self, name: &str) -> String {
        let url = self.ready["endpoints"][name].as_str().unwrap();
        url.split_once("://").map_or(url, |(_, authority)| authority).to_owned()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("stderr.txt")).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Runs a command that must succeed on this server, and returns what it printed.
    pub fn command(&self, arguments: &[&str]) -> String {
        let output = run(&self.folder, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// The same with its JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.command(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// Asks the Tables front with a signed request.
    pub fn tables(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        self.tables_with(key, method, path, &[], body)
    }

    /// The same with headers of the caller's choice.
    pub fn tables_with(
        &self,
        key: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let answer = self.exchange_tables(key, method, path, more, body);
        (answer.status, answer.text())
    }

    /// The same with the whole answer.
    pub fn exchange_tables(
        &self,
        key: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let headers =
            [("accept", "application/json;odata=nometadata"), ("content-type", "application/json")];
        let headers = [&headers[..], more].concat();
        let headers = signed(Dialect::Tables, key, method, path, &headers, body);
        exchange(&self.endpoint("tables"), None, method, path, &borrowed(&headers), body).unwrap()
    }

    /// Asks the Blobs or the Queues front with a signed request.
    pub fn storage(
        &self,
        front: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let answer = self.exchange_storage(front, method, path, more, body);
        (answer.status, answer.text())
    }

    /// The same with the whole answer.
    pub fn exchange_storage(
        &self,
        front: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let headers = [&[("x-ms-version", "2021-12-02")], more].concat();
        let headers = signed(Dialect::Storage, PUBLISHED_KEY, method, path, &headers, body);
        exchange(&self.endpoint(front), None, method, path, &borrowed(&headers), body).unwrap()
    }

    pub fn blobs(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        self.storage("blobs", method, path, more, body)
    }
}

/// These headers with a date and a signature as of now.
fn signed(
    dialect: Dialect,
    key: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Vec<(String, String)> {
    let date = date_now();
    let headers = [&[("x-ms-date", date.as_str())], headers].concat();
    let mut map: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
        .collect();
    map.insert("content-length", body.len().into());
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut request =
        Request::outgoing(method.parse().unwrap(), path.to_owned(), query.to_owned(), map);
    auth::sign(&mut request, dialect, ACCOUNT, &Key::from_base64(key).unwrap()).unwrap();
    let authorization = ("authorization", request.header("authorization").unwrap());
    let all = [&headers[..], &[authorization]].concat();
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn borrowed(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const ACCOUNT: &str = "devstoreaccount1";
pub const PUBLISHED_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// One request on a connection of its own: status and body.
pub fn ask(
    authority: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let answer = exchange(authority, None, method, path, headers, body).unwrap();
    (answer.status, answer.text())
}

/// The same with the whole answer, over TLS if there is something to trust.
pub fn exchange(
    authority: &str,
    trust: Option<Trust>,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<Answer> {
    let options = Options { answer_wait: PATIENCE, trust, ..Options::default() };
    let text = request(authority, method, path, headers, body);
    Ok(Connection::open(authority, &options)?.exchange(text.as_bytes(), b"")?.0)
}

pub fn request(
    authority: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()));
    text
}
