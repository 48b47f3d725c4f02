//! Answers: tables as JSON, and what they share with entities, at the level of metadata that the client asked for.

use lazuli_http::odata::{Metadata, Value, write_text_property};
use lazuli_http::uri::percent_encode;
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::record::RecordRef;

use crate::Call;
use crate::entity::{PARTITION_KEY, Properties, ROW_KEY, TIMESTAMP};
use crate::error::Result;
use crate::etag::timestamp;

/// An answer with JSON in it.
pub(crate) fn json(status: StatusCode, call: &Call, body: Vec<u8>) -> Response {
    Response::new(status)
        .with("content-type", call.wishes.metadata.content_type())
        .with("cache-control", "no-cache")
        .with_body(body)
}

/// An answer with XML in it.
pub(crate) fn xml(status: StatusCode, body: String) -> Response {
    Response::new(status).with("content-type", "application/xml").with_body(body)
}

/// The answer to what created something: the thing itself, or nothing but its address, as the client prefers.
pub(crate) fn created(
    call: &Call,
    link: &str,
    body: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Response> {
    let location = [&call.address.target.base, "/", link].concat();
    let response = match call.wishes.content {
        Some(false) => Response::new(StatusCode::NO_CONTENT)
            .with("preference-applied", "return-no-content")
            .with("dataserviceid", &location),
        Some(true) => {
            json(StatusCode::CREATED, call, body()?).with("preference-applied", "return-content")
        }
        None => json(StatusCode::CREATED, call, body()?),
    };
    Ok(response.with("location", location))
}

/// How a table is named in links.
pub(crate) fn table_link(table: &str) -> String {
    format!("Tables('{table}')")
}

/// How an entity is named in links.
pub(crate) fn entity_link(table: &str, partition_key: &str, row_key: &str) -> String {
    let quote = |key: &str| match key.contains('\'') {
        true => percent_encode(&key.replace('\'', "''")),
        false => percent_encode(key),
    };
    let (partition_key, row_key) = (quote(partition_key), quote(row_key));
    [table, "(PartitionKey='", &partition_key, "',RowKey='", &row_key, "')"].concat()
}

/// Opens the list of an answer: `{"odata.metadata":…,"value":[`.
pub(crate) fn begin_list(call: &Call, set: &str) -> Vec<u8> {
    let mut out = b"{".to_vec();
    write_context(&mut out, call, set);
    out.extend_from_slice(b"\"value\":[");
    out
}

pub(crate) fn end_list(mut out: Vec<u8>) -> Vec<u8> {
    out.extend_from_slice(b"]}");
    out
}

/// Writes where the types of an answer are described, with a comma behind it.
pub(crate) fn write_context(out: &mut Vec<u8>, call: &Call, set: &str) {
    if call.wishes.metadata != Metadata::None {
        let context = format!("{}/$metadata#{set}", call.address.target.base);
        write_text_property(out, "odata.metadata", &context);
        out.push(b',');
    }
}

pub(crate) fn table(call: &Call, name: &str) -> Vec<u8> {
    let mut out = b"{".to_vec();
    write_context(&mut out, call, "Tables/@Element");
    write_table_members(&mut out, call, name);
    out
}

/// One table of a list.
pub(crate) fn write_table(out: &mut Vec<u8>, call: &Call, name: &str) {
    out.push(b'{');
    write_table_members(out, call, name);
}

fn write_table_members(out: &mut Vec<u8>, call: &Call, name: &str) {
    if call.wishes.metadata == Metadata::Full {
        let link = table_link(name);
        write_links(out, call, "Tables", &link, None);
    }
    write_text_property(out, "TableName", name);
    out.push(b'}');
}

/// What the fullest level says of a thing: its type, its address, its version.
pub(crate) fn write_links(
    out: &mut Vec<u8>,
    call: &Call,
    set: &str,
    link: &str,
    etag: Option<&str>,
) {
    write_text_property(out, "odata.type", &format!("{}.{set}", call.address.target.account));
    out.push(b',');
    write_text_property(out, "odata.id", &format!("{}/{link}", call.address.target.base));
    out.push(b',');
    if let Some(etag) = etag {
        write_text_property(out, "odata.etag", etag);
        out.push(b',');
    }
    write_text_property(out, "odata.editLink", link);
    out.push(b',');
}

/// A property of a stored entity by name, the keys and the timestamp included.
pub(crate) fn property<'r>(record: &RecordRef<'r>, name: &str) -> Option<Value<'r>> {
    match name {
        PARTITION_KEY => Some(Value::String(record.partition_key.into())),
        ROW_KEY => Some(Value::String(record.row_key.into())),
        TIMESTAMP => Some(Value::DateTime(timestamp(record.time))),
        _ => Properties::open(record.payload).ok()?.find(name),
    }
}
