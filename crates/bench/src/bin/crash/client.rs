//! A plain client of Tables: one connection, signed requests, no retries. What it was told is what counts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::auth::Key;
use lazuli_http::date::format_rfc1123;
use serde_json::{Value, json};

use crate::Result;

const ACCOUNT: &str = "devstoreaccount1";

/// The published key of that account.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const TABLE: &str = "crash";

/// A server that says nothing for this long is as good as dead.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    key: Key,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).map_err(|error| format!("connect: {error}"))?;
        let set =
            stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(ANSWER_WAIT)));
        set.map_err(|error| error.to_string())?;
        let key = Key::from_base64(KEY).map_err(|error| format!("{error:?}"))?;
        Ok(Self { stream: BufReader::new(stream), key })
    }

    pub(crate) fn create_table(&mut self) -> Result {
        let answer =
            self.send("POST", "/Tables", "", &json!({ "TableName": TABLE }).to_string())?;
        match answer.status {
            201 | 204 => Ok(()),
            status => Err(format!("create table: {status} {}", answer.body)),
        }
    }

    /// Inserts an entity that must not be there yet.
    pub(crate) fn insert(&mut self, partition: &str, row: &str, text: &str) -> Result<Answer> {
        let entity = json!({ "PartitionKey": partition, "RowKey": row, "Text": text });
        self.send("POST", &format!("/{TABLE}"), "", &entity.to_string())
    }

    pub(crate) fn get(&mut self, partition: &str, row: &str) -> Result<Answer> {
        let path = format!("/{TABLE}(PartitionKey='{partition}',RowKey='{row}')");
        self.send("GET", &path, "", "")
    }

    /// One page of all entities; `continuation` is the query that the page before asked for.
    pub(crate) fn page(&mut self, continuation: &str) -> Result<Answer> {
        self.send("GET", &format!("/{TABLE}()"), continuation, "")
    }

    fn send(&mut self, method: &str, path: &str, query: &str, body: &str) -> Result<Answer> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let date = format_rfc1123(i64::try_from(seconds).unwrap_or_default());
        let path = format!("/{ACCOUNT}{path}");
        let signature = STANDARD.encode(self.key.sign(&format!("{date}\n/{ACCOUNT}{path}")));
        let request = format!(
            "{method} {path}{query} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {date}\r\n\
             x-ms-version: 2019-02-02\r\nauthorization: SharedKeyLite {ACCOUNT}:{signature}\r\n\
             accept: application/json;odata=nometadata\r\nprefer: return-no-content\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        self.read_answer()
    }

    fn read_answer(&mut self) -> Result<Answer> {
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
        let mut answer = Answer { status, headers, body: Value::Null };
        answer.body = self.read_body(&answer)?;
        Ok(answer)
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(_) if line.ends_with('\n') => Ok(line.trim_end().to_owned()),
            Ok(_) => Err("the connection ended".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn read_body(&mut self, answer: &Answer) -> Result<Value> {
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
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|error| format!("the answer is not JSON: {error}"))
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
