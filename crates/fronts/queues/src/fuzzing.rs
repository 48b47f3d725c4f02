//! What a fuzzer calls: one function for each parser, which takes any bytes and panics if something that must hold does
//! not. The targets in `fuzz/` are these functions; the tests here run the same ones on fixed seeds.

use lazuli_azure::Operation as _;
use lazuli_http::uri::Query;
use lazuli_http::{HeaderMap, HeaderName, HeaderValue, Method, xml};

use crate::address::Resource;
use crate::error::Fault;
use crate::limits::{Limits, METADATA_BYTES_MAX};
use crate::messages;
use crate::request::Operation;

/// The XML of a message: what is read can be written and is read the same again.
pub fn queue_message(data: &[u8]) {
    let limits = Limits::default();
    let text = match messages::read_message(data, &limits) {
        Ok(text) => text,
        Err(fault) => return refused(&fault),
    };
    assert!(text.len() <= limits.message_bytes_max);
    let text = std::str::from_utf8(&text).expect("what is read is text");
    let mut written = String::from("<QueueMessage>");
    xml::write(&mut written, "MessageText", text);
    written.push_str("</QueueMessage>");
    let again = messages::read_message(written.as_bytes(), &limits);
    assert_eq!(again.as_deref(), Ok(text.as_bytes()), "{written}");
}

/// A method, a path, a query and headers, each in a line: the operation that they mean.
pub fn queue_operation(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (method, path, query) = (next(), next(), next());
    let headers = lines.filter_map(|line| line.split_once(": ")).filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    let headers = HeaderMap::from_iter(headers);
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
    let Ok(query) = Query::parse(query) else { return };
    let limits = Limits::default();
    let parsed = Resource::parse(path)
        .and_then(|resource| Operation::parse(&method, &headers, resource, &query, &limits));
    match parsed {
        Ok(operation) => check(&operation, &limits),
        Err(fault) => refused(&fault),
    }
}

/// Whatever gets as far as the shape is within the limits.
fn check(operation: &Operation, limits: &Limits) {
    let _ = (operation.row(), operation.granted_types());
    match operation {
        Operation::PutMessage { hidden_seconds, lives_seconds, .. } => {
            assert!(*hidden_seconds <= limits.hidden_seconds_max);
            assert!(lives_seconds.is_none_or(|lives| lives > *hidden_seconds));
        }
        Operation::GetMessages { most, hidden_seconds, .. } => {
            assert!((1..=limits.page_messages_max).contains(most));
            assert!((1..=limits.hidden_seconds_max).contains(hidden_seconds));
        }
        Operation::PeekMessages { most, .. } => {
            assert!((1..=limits.page_messages_max).contains(most));
        }
        Operation::UpdateMessage { hidden_seconds, .. } => {
            assert!(*hidden_seconds <= limits.hidden_seconds_max);
        }
        Operation::ListQueues(query) => {
            assert!(query.most.is_none_or(|most| (1..=limits.page_queues_max).contains(&most)));
        }
        Operation::CreateQueue { metadata, .. } | Operation::SetQueueMetadata { metadata, .. } => {
            let bytes: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
            assert!(bytes <= METADATA_BYTES_MAX);
        }
        _ => {}
    }
}

/// Whatever a client sends is its own fault.
fn refused(fault: &Fault) {
    assert!(!fault.is_ours(), "{fault:?}");
}

#[cfg(test)]
mod tests {
    use lazuli_http::mutate::corpus;

    /// Texts of each kind that a target is tried on here; `cargo fuzz` has no end.
    const ROUNDS: u32 = 10_000;

    #[test]
    fn messages_are_read_or_refused() {
        let words = [
            "<QueueMessage>",
            "</QueueMessage>",
            "<MessageText>",
            "</MessageText>",
            "<MessageText/>",
            "&lt;",
            "&#xD;",
            "&#1;",
            "\r\n",
            "<![CDATA[",
            "]]>",
            "text",
            " ",
        ];
        corpus("queue_message", &words, ROUNDS, super::queue_message);
    }

    #[test]
    fn heads_mean_an_operation_or_are_refused() {
        let words = [
            "GET",
            "PUT",
            "POST",
            "DELETE",
            "\n",
            "/orders",
            "/messages",
            "/01234567-89ab-cdef-00ff-000000000042",
            "comp=",
            "acl",
            "metadata",
            "&",
            "numofmessages=",
            "visibilitytimeout=",
            "messagettl=",
            "-1",
            "604800",
            "popreceipt=00ff0000000000420000000000000009",
            "x-ms-meta-a: 1",
            "x-ms-version: 2017-04-17",
        ];
        corpus("queue_operation", &words, ROUNDS, super::queue_operation);
    }
}
