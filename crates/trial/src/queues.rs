//! A plain client of Queues: requests signed as SharedKey wants it, and answers as they come.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use lazuli_http::date::format_rfc1123;
use lazuli_http::xml;

use crate::Result;
use crate::client::{ACCOUNT, Answer, Client, signature};

const VERSION: &str = "2021-12-02";
const CONTENT_TYPE: &str = "application/xml";

/// A message as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub id: String,
    pub receipt: String,
    pub dequeues: u32,
    pub text: String,
}

/// A whole request, signed as of now. The path begins behind the account; names of parameters are in lower case and
/// sorted.
pub fn request(method: &str, path: &str, parameters: &[(&str, &str)], body: &str) -> Vec<u8> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let date = format_rfc1123(i64::try_from(seconds).unwrap_or_default());
    let (mut query, mut signed_query) = (String::new(), String::new());
    for (name, value) in parameters {
        let sign = if query.is_empty() { '?' } else { '&' };
        query.push_str(&format!("{sign}{name}={}", percent_encoded(value)));
        signed_query.push_str(&format!("\n{name}:{value}"));
    }
    let (length, content_type) = match body.len() {
        0 => (String::new(), ""),
        bytes => (bytes.to_string(), CONTENT_TYPE),
    };
    let text = format!(
        "{method}\n\n\n{length}\n\n{content_type}\n\n\n\n\n\n\n\
         x-ms-date:{date}\nx-ms-version:{VERSION}\n/{ACCOUNT}/{ACCOUNT}{path}{signed_query}"
    );
    let mut out = format!(
        "{method} /{ACCOUNT}{path}{query} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {date}\r\n\
         x-ms-version: {VERSION}\r\nauthorization: SharedKey {ACCOUNT}:{}\r\ncontent-length: {}\r\n",
        signature(&text),
        body.len()
    );
    if !body.is_empty() {
        out.push_str(&format!("content-type: {CONTENT_TYPE}\r\n"));
    }
    out.push_str("\r\n");
    out.push_str(body);
    out.into_bytes()
}

fn percent_encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

pub fn create(queue: &str) -> Vec<u8> {
    request("PUT", &format!("/{queue}"), &[], "")
}

pub fn remove(queue: &str) -> Vec<u8> {
    request("DELETE", &format!("/{queue}"), &[], "")
}

/// Puts a message that lives for so many seconds; for ever if none.
pub fn put(queue: &str, text: &str, lives_seconds: Option<u64>) -> Vec<u8> {
    let lives = lives_seconds.map_or("-1".to_owned(), |seconds| seconds.to_string());
    let mut body = String::from("<QueueMessage>");
    xml::write(&mut body, "MessageText", text);
    body.push_str("</QueueMessage>");
    request("POST", &format!("/{queue}/messages"), &[("messagettl", &lives)], &body)
}

pub fn get(queue: &str, most: usize, hidden_seconds: u64) -> Vec<u8> {
    let parameters =
        [("numofmessages", most.to_string()), ("visibilitytimeout", hidden_seconds.to_string())];
    let parameters = parameters.each_ref().map(|(name, value)| (*name, value.as_str()));
    request("GET", &format!("/{queue}/messages"), &parameters, "")
}

/// Changes when a message can be received again, and leaves it as it is otherwise.
pub fn update(queue: &str, id: &str, receipt: &str, hidden_seconds: u64) -> Vec<u8> {
    let hidden = hidden_seconds.to_string();
    let parameters = [("popreceipt", receipt), ("visibilitytimeout", hidden.as_str())];
    request("PUT", &format!("/{queue}/messages/{id}"), &parameters, "")
}

pub fn delete(queue: &str, id: &str, receipt: &str) -> Vec<u8> {
    request("DELETE", &format!("/{queue}/messages/{id}"), &[("popreceipt", receipt)], "")
}

/// The messages in the body of an answer.
pub fn messages(body: &[u8]) -> Result<Vec<Received>> {
    let unclear = || format!("no list of messages: {}", String::from_utf8_lossy(body));
    let list = xml::parse(body).map_err(|_| unclear())?;
    let read = |message: &xml::Element| {
        let text = |name| message.child_text(name).map(str::to_owned);
        Some(Received {
            id: text("MessageId")?,
            receipt: text("PopReceipt")?,
            dequeues: text("DequeueCount")?.parse().ok()?,
            text: text("MessageText")?,
        })
    };
    list.children.iter().map(|message| read(message).ok_or_else(unclear)).collect()
}

/// Makes a queue that there may be already.
pub fn create_at(address: SocketAddr, queue: &str) -> Result {
    let answer = Client::connect(address)?.exchange(&create(queue))?;
    match answer.status {
        201 | 204 => Ok(()),
        status => Err(format!("create queue: {status} {}", answer.text())),
    }
}

impl Answer {
    /// The service's code for what went wrong.
    pub fn code(&self) -> &str {
        self.header("x-ms-error-code").unwrap_or_default()
    }
}
