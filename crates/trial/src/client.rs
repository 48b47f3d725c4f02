//! A plain client of Tables: one connection, signed requests, no retries. What it was told is what counts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::auth::Key;
use lazuli_http::date::format_rfc1123;
use serde_json::{Value, json};

use crate::Result;

pub const ACCOUNT: &str = "devstoreaccount1";

/// The published key of that account.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server that says nothing for this long is as good as dead.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

const BATCH: &str = "batch_trial";
const CHANGE_SET: &str = "changeset_trial";

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A request before it is signed. The path begins behind the account.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// With its question mark, or empty.
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn new(method: &str, path: &str, query: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("host", "localhost"),
            ("x-ms-version", "2019-02-02"),
            ("accept", "application/json;odata=nometadata"),
            ("prefer", "return-no-content"),
            ("content-type", "application/json"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        Self { method, path, query, headers, body: body.into() }
    }

    /// Sets a header, in place of one of the same name.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(it, _)| it != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same request, signed as of now. `component` is the parameter of the query that is signed too.
    pub fn signed(self, component: Option<&str>) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let date = format_rfc1123(i64::try_from(seconds).unwrap_or_default());
        let component = component.map(|it| format!("?comp={it}")).unwrap_or_default();
        let text = format!("{date}\n/{ACCOUNT}/{ACCOUNT}{}{component}", self.path);
        let signature = format!("SharedKeyLite {ACCOUNT}:{}", signature(&text));
        self.with("x-ms-date", &date).with("authorization", &signature)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} /{ACCOUNT}{}{} HTTP/1.1\r\n", self.method, self.path, self.query);
        for (name, value) in &self.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        [out.as_bytes(), &self.body].concat()
    }
}

/// What the account's key makes of a text.
pub fn signature(text: &str) -> String {
    let key = Key::from_base64(KEY).expect("the published key is base64");
    STANDARD.encode(key.sign(text))
}

/// A transaction of these changes, as SDKs send it.
pub fn transaction(changes: &[Request]) -> Request {
    let mut body =
        format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGE_SET}\r\n\r\n");
    for change in changes {
        let Request { method, path, .. } = change;
        body.push_str(&format!(
            "--{CHANGE_SET}\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\n\
             {method} http://localhost/{ACCOUNT}{path} HTTP/1.1\r\n"
        ));
        for (name, value) in change.headers.iter().filter(|(name, _)| name != "host") {
            body.push_str(&format!("{name}: {value}\r\n"));
        }
        body.push_str(&format!("\r\n{}\r\n", String::from_utf8_lossy(&change.body)));
    }
    body.push_str(&format!("--{CHANGE_SET}--\r\n--{BATCH}--\r\n"));
    let content_type = format!("multipart/mixed; boundary={BATCH}");
    Request::new("POST", "/$batch", "", body).with("content-type", &content_type)
}

pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).map_err(|error| format!("connect: {error}"))?;
        let set =
            stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(ANSWER_WAIT)));
        set.map_err(|error| error.to_string())?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub fn create_table(&mut self, name: &str) -> Result {
        let body = json!({ "TableName": name }).to_string();
        let answer = self.send(Request::new("POST", "/Tables", "", body))?;
        match answer.status {
            201 | 204 => Ok(()),
            status => Err(format!("create table: {status} {}", answer.text())),
        }
    }

    /// Signs a request, sends it and waits for the answer.
    pub fn send(&mut self, request: Request) -> Result<Answer> {
        self.exchange(&request.signed(None).bytes())
    }

    /// Sends any bytes and waits for the answer.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.get_mut().write_all(request).map_err(|error| error.to_string())?;
        // The answer to this method says how long its body would be and has none.
        self.read_answer(!request.starts_with(b"HEAD "))
    }

    /// Sends any bytes, says that no more will come, and reads what the server has to say to it, if anything.
    pub fn last_words(mut self, request: &[u8]) -> Option<Answer> {
        let stream = self.stream.get_mut();
        // A server that has heard enough may close before everything is sent.
        let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
        self.read_answer(!request.starts_with(b"HEAD ")).ok()
    }

    fn read_answer(&mut self, with_body: bool) -> Result<Answer> {
        let line = self.read_line()?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or(format!("not a status line: {line}"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(format!("not a header: {line}"))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        if status == 100 {
            return self.read_answer(with_body);
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if with_body {
            answer.body = self.read_body(&answer)?;
        }
        Ok(answer)
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = Vec::new();
        match self.stream.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => {
                Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
            }
            Ok(_) => Err("the connection ended".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn read_body(&mut self, answer: &Answer) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if answer.header("transfer-encoding").is_some() {
            loop {
                let line = self.read_line()?;
                let size =
                    usize::from_str_radix(&line, 16).map_err(|_| format!("chunk: {line}"))?;
                self.read_exactly(size, &mut bytes)?;
                self.read_line()?;
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = answer.header("content-length") {
            let size = length.parse().map_err(|_| format!("content-length: {length}"))?;
            self.read_exactly(size, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn read_exactly(&mut self, size: usize, bytes: &mut Vec<u8>) -> Result {
        let start = bytes.len();
        if start + size > ANSWER_BYTES_MAX {
            return Err(format!("an answer of over {ANSWER_BYTES_MAX} bytes"));
        }
        bytes.resize(start + size, 0);
        self.stream.read_exact(&mut bytes[start..]).map_err(|error| error.to_string())
    }
}
