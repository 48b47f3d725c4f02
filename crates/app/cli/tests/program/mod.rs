//! The real program for tests: started on free ports with data of its own, asked over real sockets, ended with the test.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::auth::Key;
use lazuli_http::date::format_rfc1123;
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
        let arguments = ["serve", "--queue-port", "0", "--table-port", "0", "--admin-port", "0"];
        let arguments = [&arguments[..], &["--blob-port", "0"]].concat();
        let mut command = lazuli(folder, &arguments);
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
        url.split_once("://").unwrap().1.to_owned()
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
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let date = format_rfc1123(i64::try_from(now).unwrap());
        let resource = path.split('?').next().unwrap();
        let signed = Key::from_base64(key).unwrap().sign(&format!("{date}\n/{ACCOUNT}{resource}"));
        let signature = STANDARD.encode(signed);
        let authorization = format!("SharedKeyLite {ACCOUNT}:{signature}");
        let headers = [
            ("x-ms-date", date.as_str()),
            ("authorization", &authorization),
            ("accept", "application/json;odata=nometadata"),
            ("content-type", "application/json"),
        ];
        let headers = [&headers[..], more].concat();
        ask(&self.endpoint("tables"), method, path, &headers, body)
    }
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
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request(authority, method, path, headers, body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer[9..12].parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
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
