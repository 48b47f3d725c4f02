//! Queues: list, count, peek, put, clear.

use bytes::Bytes;
use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, Method, Request, Response, xml};
use serde_json::{Map, Value, json};

use super::super::refusal::{Refusal, Result};
use super::super::{body_up_to, ok};
use super::answer::{ask, document, header, new_name};
use super::request::{Page, QueuePath};
use crate::owner::{Ask, Owner, Service};

/// The largest body that puts a message: 64 KiB of text, every sign of it escaped.
const MESSAGE_BODY_BYTES_MAX: usize = 512 * 1024;

pub(super) async fn list(owner: &Owner, account: &str, page: &Page) -> Result<Response> {
    let wanted = Ask::new(Service::Queues, Method::GET, account, "/".to_owned())
        .query("comp", "list")
        .query("maxresults", &page.most.to_string())
        .maybe_query("marker", page.after.as_deref());
    let found = document(ask(owner, wanted).await?).await?;
    let queues = found.child("Queues").map(|list| list.children.iter()).into_iter().flatten();
    let queues: Vec<Value> =
        queues.map(|queue| json!({ "name": queue.child_text("Name") })).collect();
    Ok(ok(&json!({ "queues": queues, "next": found.child_text("NextMarker") })))
}

pub(super) async fn create(owner: &Owner, account: &str, request: Request) -> Result<Response> {
    let (account, queue) = (account.to_owned(), new_name(request).await?);
    let path = QueuePath { account, queue };
    ask(owner, self::queue(&path, Method::PUT, "")).await?;
    Ok(ok(&json!({ "name": path.queue })))
}

pub(super) async fn show(owner: &Owner, path: &QueuePath) -> Result<Response> {
    let answer = ask(owner, queue(path, Method::GET, "").query("comp", "metadata")).await?;
    let count = header(&answer, "x-ms-approximate-messages-count");
    let count: Option<u64> = count.and_then(|count| count.parse().ok());
    let metadata: Map<String, Value> = super::blobs::metadata(&answer);
    Ok(ok(&json!({ "name": path.queue, "messages": count, "metadata": metadata })))
}

/// Peeks at messages from the front of the queue: they stay visible, and their dequeue counts do not change.
pub(super) async fn peek(owner: &Owner, path: &QueuePath, most: usize) -> Result<Response> {
    let wanted = queue(path, Method::GET, "/messages")
        .query("peekonly", "true")
        .query("numofmessages", &most.to_string());
    let found = document(ask(owner, wanted).await?).await?;
    let messages: Vec<Value> = found.children.iter().map(message).collect();
    Ok(ok(&json!({ "messages": messages })))
}

fn message(element: &xml::Element) -> Value {
    let text = |name: &str| element.child(name).map(|child| child.text.as_str());
    json!({
        "id": text("MessageId"),
        "inserted": text("InsertionTime"),
        "expires": text("ExpirationTime"),
        "dequeues": text("DequeueCount").and_then(|count| count.parse::<u64>().ok()),
        "text": text("MessageText"),
    })
}

/// `{"text": …, "hidden_seconds": …, "lives_seconds": …}`; a message that lives for -1 seconds lives forever.
pub(super) async fn put(owner: &Owner, path: &QueuePath, request: Request) -> Result<Response> {
    let body = body_up_to(request, MESSAGE_BODY_BYTES_MAX).await?;
    let text = body["text"].as_str().ok_or_else(|| Refusal::bad_request("text must be text"))?;
    if !xml::can_carry(text) {
        return Err(Refusal::bad_request("text has characters that no message can carry"));
    }
    let number = |name: &str| match &body[name] {
        Value::Null => Ok(None),
        value => match value.as_i64() {
            Some(number) => Ok(Some(number.to_string())),
            None => Err(Refusal::bad_request(format!("{name} must be a whole number"))),
        },
    };
    let mut document = String::from("<QueueMessage>");
    xml::write(&mut document, "MessageText", text);
    document.push_str("</QueueMessage>");
    let wanted = queue(path, Method::POST, "/messages")
        .maybe_query("visibilitytimeout", number("hidden_seconds")?.as_deref())
        .maybe_query("messagettl", number("lives_seconds")?.as_deref())
        .body(Body::from(Bytes::from(document)));
    let put = self::document(ask(owner, wanted).await?).await?;
    let mut put = put.children.first().map(message).unwrap_or_default();
    if let Some(members) = put.as_object_mut() {
        members.retain(|name, _| matches!(name.as_str(), "id" | "inserted" | "expires"));
    }
    Ok(ok(&put))
}

pub(super) async fn clear(owner: &Owner, path: &QueuePath) -> Result<Response> {
    ask(owner, queue(path, Method::DELETE, "/messages")).await?;
    Ok(ok(&json!({ "cleared": true })))
}

fn queue(path: &QueuePath, method: Method, rest: &str) -> Ask {
    let place = format!("/{}{rest}", percent_encode(&path.queue));
    Ask::new(Service::Queues, method, &path.account, place)
}
