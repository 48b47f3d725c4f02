//! An answer without what may differ between two servers: ids, times, etags, ports.

use std::collections::BTreeMap;

use lazuli_http::client::blocking::Answer;
use serde_json::Value;

use super::Front;

const MASK: &str = "*";
/// Headers that say the same on all servers.
const HEADERS: [&str; 21] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-range",
    "content-type",
    "preference-applied",
    "x-ms-approximate-messages-count",
    "x-ms-blob-append-offset",
    "x-ms-blob-committed-block-count",
    "x-ms-blob-content-md5",
    "x-ms-blob-type",
    "x-ms-content-crc64",
    "x-ms-error-code",
    "x-ms-item-count",
    "x-ms-lease-id",
    "x-ms-lease-state",
    "x-ms-lease-status",
    "x-ms-lease-time",
    "x-ms-meta-colour",
    "x-ms-substatus",
];
/// Headers of which only the presence is compared. What a write of an item costs depends on the second of the write before:
/// the time of an item is indexed too.
const PRESENT: [&str; 7] = [
    "etag",
    "last-modified",
    "x-ms-continuation",
    "x-ms-continuation-nextpartitionkey",
    "x-ms-continuation-nextrowkey",
    "x-ms-request-charge",
    "x-ms-snapshot",
];
const FIELDS_OF_JSON: [&str; 11] = [
    "ActivityId",
    "Timestamp",
    "_etag",
    "_lsn",
    "_rid",
    "_self",
    "_ts",
    "eTag",
    "etag",
    "odata.etag",
    "requestCharge",
];
const ELEMENTS_OF_XML: [&str; 14] = [
    "MessageId",
    "PopReceipt",
    "InsertionTime",
    "ExpirationTime",
    "TimeNextVisible",
    "Last-Modified",
    "Etag",
    "Creation-Time",
    "LastModified",
    "Snapshot",
    "AccessTierChangeTime",
    "NextMarker",
    "LeaseTime",
    "LastSyncTime",
];

/// What is compared.
#[derive(Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Shown {
    pub(super) fn of(front: Front, answer: &Answer) -> Self {
        let mut headers = BTreeMap::new();
        for (name, value) in &answer.headers {
            let name = name.to_ascii_lowercase();
            if HEADERS.contains(&name.as_str()) {
                headers.insert(name, value.clone());
            } else if PRESENT.contains(&name.as_str()) {
                headers.insert(name, MASK.to_owned());
            }
        }
        let text = answer.text();
        let body = match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => masked(Value::Object(object)).to_string(),
            Ok(Value::Array(array)) => masked(Value::Array(array)).to_string(),
            _ if text.contains("<?xml") => masked_xml(&text),
            _ => text.clone(),
        };
        if body != text || matches!(front, Front::Documents(_)) {
            // Times and ids are not equally long.
            headers.remove("content-length");
        }
        Self { status: answer.status, headers, body }
    }
}

fn masked(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| match FIELDS_OF_JSON.contains(&name.as_str()) {
                true => (name, Value::from(MASK)),
                false => (name, masked(value)),
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::String(text) => Value::from(without_ids(&text)),
        other => other,
    }
}

fn masked_xml(text: &str) -> String {
    let mut out = without_ids(text);
    for element in ELEMENTS_OF_XML {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let mut parts = out.split(&open);
        let mut done = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let behind = part.split_once(&close).map_or("", |(_, behind)| behind);
            done.push_str(&format!("{open}{MASK}{close}{behind}"));
        }
        out = done;
    }
    out
}

/// Without the id of the request and its time, which end messages of errors, and without ports.
fn without_ids(text: &str) -> String {
    let mut masked = text.to_owned();
    let marks = [
        ("127.0.0.1:", "/\"<"),
        ("RequestId:", "\n<\""),
        ("Time:", "\n<\""),
        ("ActivityId: ", ",\""),
    ];
    for (begin, ends) in marks {
        let mut parts = masked.split(begin);
        let mut done = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c| ends.contains(c)).unwrap_or(part.len());
            done.push_str(&format!("{begin}{MASK}{}", &part[end..]));
        }
        masked = done;
    }
    masked
}

/// A header, the first XML element of this name, or a field of a JSON object.
pub(super) fn field(answer: &Answer, name: &str) -> Option<String> {
    if let Some(value) = answer.header(name) {
        return Some(value.to_owned());
    }
    let text = answer.text();
    if let Some((_, behind)) = text.split_once(&format!("<{name}>")) {
        return behind.split_once('<').map(|(value, _)| encoded(value));
    }
    answer.json()[name].as_str().map(str::to_owned)
}

/// As part of a query.
fn encoded(value: &str) -> String {
    value.replace('+', "%2B").replace('=', "%3D").replace('/', "%2F")
}
