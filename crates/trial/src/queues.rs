//! Requests to the Queue service, and the messages in its answers.

use std::net::SocketAddr;

use lazuli_http::uri::percent_encode;
use lazuli_http::xml;

use crate::Result;
use crate::client::{Client, Request};

/// A message as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub id: String,
    pub receipt: String,
    pub dequeues: u32,
    pub text: String,
}

pub fn request(method: &str, path: &str, parameters: &[(&str, &str)], body: String) -> Request {
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={}", percent_encode(value)));
    let pairs: Vec<String> = pairs.collect();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    let has_body = !body.is_empty();
    let request = Request::storage(method, path, &query, body);
    if has_body { request.with("content-type", "application/xml") } else { request }
}

pub fn create(queue: &str) -> Request {
    request("PUT", &format!("/{queue}"), &[], String::new())
}

pub fn remove(queue: &str) -> Request {
    request("DELETE", &format!("/{queue}"), &[], String::new())
}

/// Puts a message that expires after so many seconds; never if none.
pub fn put(queue: &str, text: &str, lives_seconds: Option<u64>) -> Request {
    let lives = lives_seconds.map_or("-1".to_owned(), |seconds| seconds.to_string());
    let mut body = String::from("<QueueMessage>");
    xml::write(&mut body, "MessageText", text);
    body.push_str("</QueueMessage>");
    request("POST", &format!("/{queue}/messages"), &[("messagettl", &lives)], body)
}

pub fn get(queue: &str, most: usize, hidden_seconds: u64) -> Request {
    let (most, hidden) = (most.to_string(), hidden_seconds.to_string());
    let parameters = [("numofmessages", most.as_str()), ("visibilitytimeout", &hidden)];
    request("GET", &format!("/{queue}/messages"), &parameters, String::new())
}

/// Changes when a message becomes visible again, and nothing else of it.
pub fn update(queue: &str, id: &str, receipt: &str, hidden_seconds: u64) -> Request {
    let hidden = hidden_seconds.to_string();
    let parameters = [("popreceipt", receipt), ("visibilitytimeout", hidden.as_str())];
    request("PUT", &format!("/{queue}/messages/{id}"), &parameters, String::new())
}

pub fn delete(queue: &str, id: &str, receipt: &str) -> Request {
    let parameters = [("popreceipt", receipt)];
    request("DELETE", &format!("/{queue}/messages/{id}"), &parameters, String::new())
}

/// The messages in the body of an answer.
pub fn messages(body: &[u8]) -> Result<Vec<Received>> {
    let unclear = || format!("not a list of messages: {}", String::from_utf8_lossy(body));
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

/// Creates a queue that may exist already.
pub fn create_at(address: SocketAddr, queue: &str) -> Result {
    Client::connect(address)?.expect(create(queue), &[201, 204]).map(drop)
}
