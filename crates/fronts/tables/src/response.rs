//! Answers: tables and entities as JSON, at the level of metadata that the client asked for.

use lazuli_http::odata::{Metadata, Value, write_null, write_text_property};
use lazuli_http::uri::percent_encode;
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::record::Record;

use crate::Call;
use crate::entity::{PARTITION_KEY, Properties, ROW_KEY, TIMESTAMP};
use crate::error::Result;
use crate::etag::{etag, stamp, timestamp, write_etag_json};

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
    let location = format!("{}/{link}", call.address.target.base);
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
    format!("{table}(PartitionKey='{}',RowKey='{}')", quote(partition_key), quote(row_key))
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
fn write_context(out: &mut Vec<u8>, call: &Call, set: &str) {
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
fn write_links(out: &mut Vec<u8>, call: &Call, set: &str, link: &str, etag: Option<&str>) {
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

pub(crate) fn entity(
    call: &Call,
    table: &str,
    record: &Record,
    select: Option<&[String]>,
) -> Result<Vec<u8>> {
    let mut out = b"{".to_vec();
    write_context(&mut out, call, &format!("{table}/@Element"));
    write_entity_members(&mut out, call, table, record, select)?;
    Ok(out)
}

/// Roughly how many bytes these entities take as JSON, so that the answer grows once.
pub(crate) fn entities_bytes(records: &[Record]) -> usize {
    let stored = |record: &Record| {
        record.partition_key.len() + record.row_key.len() + record.payload.len() * 5 / 4
    };
    records.iter().map(|record| stored(record) + ENTITY_MEMBERS_BYTES).sum()
}

/// The names and quotation marks of what every entity has.
const ENTITY_MEMBERS_BYTES: usize = 200;

/// One entity of a list.
pub(crate) fn write_entity(
    out: &mut Vec<u8>,
    call: &Call,
    table: &str,
    record: &Record,
    select: Option<&[String]>,
) -> Result<()> {
    out.push(b'{');
    write_entity_members(out, call, table, record, select)
}

fn write_entity_members(
    out: &mut Vec<u8>,
    call: &Call,
    table: &str,
    record: &Record,
    select: Option<&[String]>,
) -> Result<()> {
    let level = call.wishes.metadata;
    let stamp = stamp(record.version);
    match level {
        Metadata::None => {}
        Metadata::Minimal => {
            out.extend_from_slice(b"\"odata.etag\":");
            write_etag_json(out, &stamp);
            out.push(b',');
        }
        Metadata::Full => {
            let link = entity_link(table, &record.partition_key, &record.row_key);
            write_links(out, call, table, &link, Some(&etag(record.version)));
        }
    }
    let wanted = |name: &[u8]| {
        select.is_none_or(|names| names.iter().any(|selected| selected.as_bytes() == name))
    };
    let selected = |name: &str| wanted(name.as_bytes());
    if selected(PARTITION_KEY) {
        write_text_property(out, PARTITION_KEY, &record.partition_key);
        out.push(b',');
    }
    if selected(ROW_KEY) {
        write_text_property(out, ROW_KEY, &record.row_key);
        out.push(b',');
    }
    if selected(TIMESTAMP) {
        write_timestamp(out, &stamp, level);
        out.push(b',');
    }
    let properties = Properties::open(&record.payload)?;
    properties.clone().write(out, level, wanted)?;
    // A property that was asked for and is not there is null, so that every row of an answer has the same columns.
    let system = |name: &str| matches!(name, PARTITION_KEY | ROW_KEY | TIMESTAMP);
    for name in select.unwrap_or_default() {
        if !system(name) && properties.find(name).is_none() {
            write_null(out, name);
            out.push(b',');
        }
    }
    match out.last_mut() {
        Some(last) if *last == b',' => *last = b'}',
        _ => out.push(b'}'),
    }
    Ok(())
}

/// Only the fullest level notes the type of the timestamp: the others know it.
fn write_timestamp(out: &mut Vec<u8>, stamp: &[u8], level: Metadata) {
    if level == Metadata::Full {
        write_text_property(out, "Timestamp@odata.type", "Edm.DateTime");
        out.push(b',');
    }
    out.extend_from_slice(b"\"Timestamp\":\"");
    out.extend_from_slice(stamp);
    out.push(b'"');
}

/// A property of a stored entity by name, the keys and the timestamp included.
pub(crate) fn property<'r>(record: &'r Record, name: &str) -> Option<Value<'r>> {
    match name {
        PARTITION_KEY => Some(Value::String((*record.partition_key).into())),
        ROW_KEY => Some(Value::String(record.row_key.as_str().into())),
        TIMESTAMP => Some(Value::DateTime(timestamp(record.version))),
        _ => Properties::open(&record.payload).ok()?.find(name),
    }
}
