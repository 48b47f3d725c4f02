//! One message of a queue as the service writes it in XML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_console::{Failure, Result};
use lazuli_http::xml::{self, Element};
use serde_json::{Value, json};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: String,
    /// What deletes it; empty for a message that was only looked at.
    pub(super) receipt: String,
    inserted: String,
    expires: String,
    dequeued: u64,
    text: String,
}

impl Message {
    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "id": self.id, "inserted": self.inserted, "expires": self.expires,
            "dequeued": self.dequeued, "text": self.text,
        });
        if !self.receipt.is_empty() {
            value["receipt"] = json!(self.receipt);
        }
        value
    }
}

/// The body of a request that puts this text.
pub(super) fn body(text: &str, base64: bool) -> Result<String> {
    let encoded = base64.then(|| STANDARD.encode(text));
    let text = encoded.as_deref().unwrap_or(text);
    if !xml::can_carry(text) {
        let failure = Failure::failed("the text has characters that XML cannot carry");
        return Err(failure.hint("--base64 encodes it"));
    }
    let mut out = String::new();
    xml::open(&mut out, "QueueMessage");
    xml::write(&mut out, "MessageText", text);
    xml::close(&mut out, "QueueMessage");
    Ok(out)
}

/// The messages of an answer; none if it is not one. A text that is not base64 stays as it is.
pub(super) fn read_messages(root: &Element, base64: bool) -> Option<Vec<Message>> {
    if root.name != "QueueMessagesList" {
        return None;
    }
    root.children.iter().map(|element| read_message(element, base64)).collect()
}

fn read_message(element: &Element, base64: bool) -> Option<Message> {
    let text = |name: &str| element.child_text(name).unwrap_or_default().to_owned();
    let body = text("MessageText");
    let decoded = base64.then(|| STANDARD.decode(&body).ok()).flatten();
    Some(Message {
        id: element.child_text("MessageId")?.to_owned(),
        receipt: text("PopReceipt"),
        inserted: text("InsertionTime"),
        expires: text("ExpirationTime"),
        dequeued: element.child_text("DequeueCount")?.parse().ok()?,
        text: decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(body),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_or_refused() {
        let expected = "<QueueMessage><MessageText>a&lt;b</MessageText></QueueMessage>";
        assert_eq!(body("a<b", false).unwrap(), expected);
        assert!(body("\u{1}", false).is_err());
        assert!(body("\u{1}", true).unwrap().contains("AQ=="));
    }

    #[test]
    fn messages_are_read_with_and_without_receipts() {
        let text = "<QueueMessagesList><QueueMessage><MessageId>1</MessageId>\
            <InsertionTime>i</InsertionTime><ExpirationTime>e</ExpirationTime>\
            <DequeueCount>2</DequeueCount><MessageText>aGk=</MessageText></QueueMessage>\
            <QueueMessage><MessageId>2</MessageId><PopReceipt>r</PopReceipt>\
            <DequeueCount>0</DequeueCount><MessageText>not base64</MessageText></QueueMessage>\
            </QueueMessagesList>";
        let read = read_messages(&xml::parse(text.as_bytes()).unwrap(), true).unwrap();
        let shown: Vec<_> = read.iter().map(|one| (one.text.as_str(), one.dequeued)).collect();
        assert_eq!(shown, [("hi", 2), ("not base64", 0)]);
        assert_eq!(read[0].json().get("receipt"), None);
        assert_eq!(read[1].json()["receipt"], "r");
        let other = xml::parse(b"<Other/>").unwrap();
        assert_eq!(read_messages(&other, false), None);
    }
}
