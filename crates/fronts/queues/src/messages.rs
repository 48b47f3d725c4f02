//! Operations on messages: put, get, peek, update, delete, clear.

use bytes::Bytes;
use lazuli_azure::storage_error::CommonCode;
use lazuli_http::{Response, StatusCode, xml};
use lazuli_shapes::queue::{MessageId, NewMessage, Receipt, Update};

use crate::error::{Fault, Result, from_core};
use crate::limits::Limits;
use crate::{Call, Front, response};

const SECOND_MS: u64 = 1000;

pub(crate) async fn put(
    front: &Front,
    call: &Call,
    queue: &str,
    hidden_seconds: u64,
    lives_seconds: Option<u64>,
    body: &[u8],
) -> Result<Response> {
    let new = NewMessage {
        content: read_message(body, &front.limits)?,
        hidden_ms: hidden_seconds * SECOND_MS,
        lives_ms: lives_seconds.map(|seconds| seconds * SECOND_MS),
    };
    let put = front.queues.put(call.account(), queue, new).await.map_err(from_core)?;
    Ok(response::put(&put))
}

pub(crate) async fn get(
    front: &Front,
    call: &Call,
    queue: &str,
    most: usize,
    hidden_seconds: u64,
) -> Result<Response> {
    let hidden_ms = hidden_seconds * SECOND_MS;
    let received = front.queues.receive(call.account(), queue, most, hidden_ms).await;
    let received = received.map_err(from_core)?;
    front.throttle.spend(call, queue, received.len(), front.queues.engine());
    response::received(&received)
}

pub(crate) async fn peek(front: &Front, call: &Call, queue: &str, most: usize) -> Result<Response> {
    let seen = front.queues.peek(call.account(), queue, most).await.map_err(from_core)?;
    front.throttle.spend(call, queue, seen.len(), front.queues.engine());
    response::peeked(&seen)
}

pub(crate) async fn clear(front: &Front, call: &Call, queue: &str) -> Result<Response> {
    front.queues.clear(call.account(), queue).await.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

/// Without a body the message goes on saying what it says.
pub(crate) async fn update(
    front: &Front,
    call: &Call,
    queue: &str,
    (id, receipt): (MessageId, Receipt),
    hidden_seconds: u64,
    body: &[u8],
) -> Result<Response> {
    let content = match body.is_empty() {
        true => None,
        false => Some(read_message(body, &front.limits)?),
    };
    let update = Update { hidden_ms: hidden_seconds * SECOND_MS, content };
    let hold = front.queues.update(call.account(), queue, id, receipt, update).await;
    let hold = hold.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT)
        .with("x-ms-popreceipt", hold.receipt.to_string())
        .with("x-ms-time-next-visible", response::time(hold.visible_ms)))
}

pub(crate) async fn delete(
    front: &Front,
    call: &Call,
    queue: &str,
    id: MessageId,
    receipt: Receipt,
) -> Result<Response> {
    let deleted = front.queues.delete_message(call.account(), queue, id, receipt).await;
    deleted.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

/// Reads a message. What it says is kept as it was sent, space and all.
pub(crate) fn read_message(body: &[u8], limits: &Limits) -> Result<Bytes> {
    let not_xml = || Fault::new(CommonCode::InvalidXmlDocument);
    let mut root = xml::parse(body).map_err(|_| not_xml())?;
    if root.name != "QueueMessage" {
        return Err(not_xml());
    }
    let text = root.children.iter_mut().find(|child| child.name == "MessageText");
    let text = text.ok_or_else(|| {
        Fault::new(CommonCode::MissingRequiredXmlNode).detail("XmlNodeName", "MessageText")
    })?;
    let text = std::mem::take(&mut text.text);
    if text.len() > limits.message_bytes_max {
        return Err(Fault::new(CommonCode::RequestBodyTooLarge)
            .detail("MaxLimit", limits.message_bytes_max.to_string()));
    }
    if !xml::can_carry(&text) {
        return Err(not_xml());
    }
    Ok(text.into())
}

#[cfg(test)]
mod message_tests {
    use super::*;
    use crate::error::Code;

    fn read_text(body: &str) -> std::result::Result<String, Code> {
        let limits = Limits { message_bytes_max: 8, ..Limits::default() };
        let read = read_message(body.as_bytes(), &limits).map_err(|fault| fault.code)?;
        Ok(String::from_utf8(read.to_vec()).unwrap())
    }

    #[test]
    fn what_a_message_says_is_kept_as_it_was_sent() {
        let text = |inner: &str| {
            read_text(&format!("<QueueMessage><MessageText>{inner}</MessageText></QueueMessage>"))
        };
        assert_eq!(text(" a&lt;b\n ").as_deref(), Ok(" a<b\n "));
        assert_eq!(text("").as_deref(), Ok(""));
        assert_eq!(text("12345678").as_deref(), Ok("12345678"));
        assert_eq!(text("123456789"), Err(Code::Common(CommonCode::RequestBodyTooLarge)));
        let declared =
            "\u{feff}<?xml version='1.0'?>\n<QueueMessage>\n <MessageText/>\n</QueueMessage>";
        assert_eq!(read_text(declared).as_deref(), Ok(""));
        assert_eq!(text("&#1;"), Err(Code::Common(CommonCode::InvalidXmlDocument)));
        assert_eq!(text("<b/>").as_deref(), Ok(""));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let invalid = Err(Code::Common(CommonCode::InvalidXmlDocument));
        assert_eq!(read_text(""), invalid);
        assert_eq!(read_text("hello"), invalid);
        assert_eq!(read_text("<Message><MessageText>a</MessageText></Message>"), invalid);
        let missing = Err(Code::Common(CommonCode::MissingRequiredXmlNode));
        assert_eq!(read_text("<QueueMessage/>"), missing);
    }
}
