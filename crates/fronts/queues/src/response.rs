//! Answers: queues and messages as XML.

use lazuli_http::date::format_rfc1123;
use lazuli_http::{Response, StatusCode, xml};
use lazuli_shapes::queue::{Delivery, Hold, Message, QueuePage};

use crate::Call;
use crate::error::{Fault, Result};
use crate::request::QueueQuery;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
const MESSAGES: &str = "QueueMessagesList";
/// When a message expires that never does.
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";
/// Roughly how many bytes stand around what a message says.
const MESSAGE_ENVELOPE_BYTES: usize = 512;

/// An answer with XML in it.
pub(crate) fn document(status: StatusCode, body: String) -> Response {
    Response::new(status)
        .with("content-type", "application/xml")
        .with("cache-control", "no-cache")
        .with_body(body)
}

/// What was put: where it is from now on, and not what it says.
pub(crate) fn put(delivery: &Delivery) -> Response {
    let mut out = begin(MESSAGE_ENVELOPE_BYTES);
    xml::open(&mut out, "QueueMessage");
    write_head(&mut out, &delivery.message);
    write_hold(&mut out, &delivery.hold);
    xml::close(&mut out, "QueueMessage");
    document(StatusCode::CREATED, end(out))
}

pub(crate) fn received(deliveries: &[Delivery]) -> Result<Response> {
    messages(deliveries.iter().map(|delivery| (&delivery.message, Some(&delivery.hold))))
}

pub(crate) fn peeked(seen: &[Message]) -> Result<Response> {
    messages(seen.iter().map(|message| (message, None)))
}

fn messages<'m>(
    messages: impl Iterator<Item = (&'m Message, Option<&'m Hold>)> + Clone,
) -> Result<Response> {
    let bytes = messages.clone().map(|(it, _)| it.content.len() + MESSAGE_ENVELOPE_BYTES).sum();
    let mut out = begin(bytes);
    for (message, hold) in messages {
        xml::open(&mut out, "QueueMessage");
        write_head(&mut out, message);
        if let Some(hold) = hold {
            write_hold(&mut out, hold);
        }
        xml::write(&mut out, "DequeueCount", &message.dequeues.to_string());
        xml::write(&mut out, "MessageText", text(message)?);
        xml::close(&mut out, "QueueMessage");
    }
    Ok(document(StatusCode::OK, end(out)))
}

fn begin(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes);
    out.push_str(HEAD);
    xml::open(&mut out, MESSAGES);
    out
}

fn end(mut out: String) -> String {
    xml::close(&mut out, MESSAGES);
    out
}

fn write_head(out: &mut String, message: &Message) {
    xml::write(out, "MessageId", &message.id.to_string());
    xml::write(out, "InsertionTime", &time(message.inserted_ms));
    match message.expires_ms {
        Some(expires_ms) => xml::write(out, "ExpirationTime", &time(expires_ms)),
        None => xml::write(out, "ExpirationTime", NEVER),
    }
}

fn write_hold(out: &mut String, hold: &Hold) {
    xml::write(out, "PopReceipt", &hold.receipt.to_string());
    xml::write(out, "TimeNextVisible", &time(hold.visible_ms));
}

fn text(message: &Message) -> Result<&str> {
    std::str::from_utf8(&message.content).map_err(|error| {
        Fault::new(lazuli_azure::storage_error::CommonCode::InternalError).because(error)
    })
}

pub(crate) fn time(ms: u64) -> String {
    format_rfc1123(i64::try_from(ms / 1000).unwrap_or(i64::MAX))
}

/// A page of a list.
pub(crate) fn queues(call: &Call, query: &QueueQuery, most: usize, page: &QueuePage) -> Response {
    let mut out = String::from(HEAD);
    out.push_str("<EnumerationResults ServiceEndpoint=\"");
    xml::write_text(&mut out, &call.target.base);
    out.push_str("/\">");
    xml::write(&mut out, "Prefix", &query.prefix);
    if let Some(marker) = &query.marker {
        xml::write(&mut out, "Marker", marker);
    }
    xml::write(&mut out, "MaxResults", &most.to_string());
    xml::open(&mut out, "Queues");
    for queue in &page.queues {
        xml::open(&mut out, "Queue");
        xml::write(&mut out, "Name", &queue.name);
        if query.with_metadata {
            xml::open(&mut out, "Metadata");
            for (name, value) in &queue.metadata {
                xml::write(&mut out, name, value);
            }
            xml::close(&mut out, "Metadata");
        }
        xml::close(&mut out, "Queue");
    }
    xml::close(&mut out, "Queues");
    xml::write(&mut out, "NextMarker", page.next.as_deref().unwrap_or_default());
    xml::close(&mut out, "EnumerationResults");
    document(StatusCode::OK, out)
}
