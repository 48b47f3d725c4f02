//! Answers: tables as JSON, and what they share with entities, at the level of metadata that the client asked for.

use std::sync::Arc;

use lazuli_azure::odata::{
    Metadata, Value, type_note, write_null, write_stored_text, write_string, write_text_property,
    write_value,
};
use lazuli_engine::Lsn;
use lazuli_http::uri::percent_encode;
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::record::{Record, RecordRef};

use crate::Call;
use crate::entity::{Damaged, PARTITION_KEY, Properties, ROW_KEY, Stored, TIMESTAMP};
use crate::error::Result;
use crate::etag::{etag, stamp, timestamp, write_etag_json};

/// An answer with JSON in it.
pub(crate) fn json(status: StatusCode, call: &Call, body: Vec<u8>) -> Response {
    Response::new(status)
        .with("content-type", call.own.wishes.metadata.content_type())
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
    let location = [&call.target.base, "/", link].concat();
    let response = match call.own.wishes.content {
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
    if call.own.wishes.metadata != Metadata::None {
        let context = format!("{}/$metadata#{set}", call.target.base);
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
    if call.own.wishes.metadata == Metadata::Full {
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
    write_text_property(out, "odata.type", &format!("{}.{set}", call.target.account));
    out.push(b',');
    write_text_property(out, "odata.id", &format!("{}/{link}", call.target.base));
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

/// The names and quotation marks of what every entity has.
const ENTITY_MEMBERS_BYTES: usize = 200;

/// One entity as the whole answer.
pub(crate) fn entity(
    call: &Call,
    table: &str,
    record: &Record,
    select: Option<&[String]>,
) -> Result<Vec<u8>> {
    let mut out = b"{".to_vec();
    write_context(&mut out, call, &format!("{table}/@Element"));
    EntityWriter::new(call, table, select).write_members(&mut out, record)?;
    Ok(out)
}

/// Roughly how many bytes these entities take as JSON, so that the answer grows once.
pub(crate) fn entities_bytes(records: &[Record]) -> usize {
    let stored = |record: &Record| {
        record.partition_key.len() + record.row_key.len() + record.payload.len() * 5 / 4
    };
    records.iter().map(|record| stored(record) + ENTITY_MEMBERS_BYTES).sum()
}

pub(crate) struct EntityWriter<'a> {
    call: &'a Call,
    table: &'a str,
    select: Option<&'a [String]>,
    frame: Option<Frame>,
    /// The names of the properties of the last entity, by their places.
    names: Vec<Name>,
}

/// What stands around the row key of entities with the same version and partition key.
struct Frame {
    version: Lsn,
    partition_key: Arc<str>,
    before: Vec<u8>,
    has_row_key: bool,
    behind: Vec<u8>,
}

impl Frame {
    fn is_of(&self, record: &Record) -> bool {
        self.version == record.version && Arc::ptr_eq(&self.partition_key, &record.partition_key)
    }
}

/// The name of a property, as it is stored and as JSON: between quotation marks, a colon behind them.
#[derive(Default)]
struct Name {
    stored: Vec<u8>,
    json: Vec<u8>,
}

impl Name {
    /// Makes this the name. Fails if it is no text.
    fn set(&mut self, stored: &[u8]) -> std::result::Result<(), Damaged> {
        self.json.clear();
        if !write_stored_text(&mut self.json, stored) {
            return Err(Damaged);
        }
        self.json.push(b':');
        self.stored.clear();
        self.stored.extend_from_slice(stored);
        Ok(())
    }
}

impl<'a> EntityWriter<'a> {
    pub(crate) fn new(call: &'a Call, table: &'a str, select: Option<&'a [String]>) -> Self {
        Self { call, table, select, frame: None, names: Vec::new() }
    }

    /// One entity of a list.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, record: &Record) -> Result<()> {
        out.push(b'{');
        self.write_members(out, record)
    }

    fn write_members(&mut self, out: &mut Vec<u8>, record: &Record) -> Result<()> {
        if self.call.own.wishes.metadata == Metadata::Full {
            let link = entity_link(self.table, &record.partition_key, &record.row_key);
            write_links(out, self.call, self.table, &link, Some(&etag(record.version)));
        }
        let frame = match &self.frame {
            Some(frame) if frame.is_of(record) => frame,
            _ => {
                let frame = self.frame_of(record);
                self.frame.insert(frame)
            }
        };
        out.extend_from_slice(&frame.before);
        if frame.has_row_key {
            write_string(out, &record.row_key);
        }
        out.extend_from_slice(&frame.behind);
        let properties = Properties::open(&record.payload)?;
        self.write_properties(out, properties.clone())?;
        self.write_missing(out, &properties);
        match out.last_mut() {
            Some(last) if *last == b',' => *last = b'}',
            _ => out.push(b'}'),
        }
        Ok(())
    }

    fn frame_of(&self, record: &Record) -> Frame {
        let level = self.call.own.wishes.metadata;
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        if level == Metadata::Minimal {
            before.extend_from_slice(b"\"odata.etag\":");
            write_etag_json(&mut before, &stamp(record.version));
            before.push(b',');
        }
        if self.selects(PARTITION_KEY.as_bytes()) {
            write_text_property(&mut before, PARTITION_KEY, &record.partition_key);
            before.push(b',');
        }
        let has_row_key = self.selects(ROW_KEY.as_bytes());
        if has_row_key {
            before.extend_from_slice(b"\"RowKey\":");
            behind.push(b',');
        }
        if self.selects(TIMESTAMP.as_bytes()) {
            write_timestamp(&mut behind, &stamp(record.time), level);
        }
        let (version, partition_key) = (record.version, record.partition_key.clone());
        Frame { version, partition_key, before, has_row_key, behind }
    }

    fn selects(&self, name: &[u8]) -> bool {
        self.select.is_none_or(|names| names.iter().any(|selected| selected.as_bytes() == name))
    }

    fn write_properties(
        &mut self,
        out: &mut Vec<u8>,
        mut properties: Properties<'_>,
    ) -> std::result::Result<(), Damaged> {
        let mut place = 0;
        while !properties.is_empty() {
            let (stored, value) = properties.stored().ok_or(Damaged)?;
            if self.selects(stored) {
                if self.names.len() == place {
                    self.names.push(Name::default());
                }
                let name = &mut self.names[place];
                if name.json.is_empty() || name.stored != stored {
                    name.set(stored)?;
                }
                write_property(out, &name.json, &value, self.call.own.wishes.metadata)?;
                place += 1;
            }
        }
        Ok(())
    }

    /// A property that was asked for and is not there is null, so that every row of an answer has the same columns.
    fn write_missing(&self, out: &mut Vec<u8>, properties: &Properties<'_>) {
        let system = |name: &str| matches!(name, PARTITION_KEY | ROW_KEY | TIMESTAMP);
        for name in self.select.unwrap_or_default() {
            if !system(name) && properties.find(name).is_none() {
                write_null(out, name);
                out.push(b',');
            }
        }
    }
}

/// Writes a property behind its name, a comma behind it, unless its text is damaged.
fn write_property(
    out: &mut Vec<u8>,
    name: &[u8],
    value: &Stored<'_>,
    level: Metadata,
) -> std::result::Result<(), Damaged> {
    match value {
        Stored::Text(text) => {
            out.extend_from_slice(name);
            if !write_stored_text(out, text) {
                return Err(Damaged);
            }
        }
        Stored::Value(value) => {
            if let Some(kind) = type_note(value, level) {
                // The note stands inside of the quotation marks.
                out.extend_from_slice(name.strip_suffix(b"\":").unwrap_or(name));
                out.extend_from_slice(b"@odata.type\":\"");
                out.extend_from_slice(kind.as_bytes());
                out.extend_from_slice(b"\",");
            }
            out.extend_from_slice(name);
            write_value(out, value);
        }
    }
    out.push(b',');
    Ok(())
}

/// Only the fullest level notes the type of the timestamp: the others know it.
fn write_timestamp(out: &mut Vec<u8>, stamp: &[u8], level: Metadata) {
    if level == Metadata::Full {
        out.extend_from_slice(b"\"Timestamp@odata.type\":\"Edm.DateTime\",");
    }
    out.extend_from_slice(b"\"Timestamp\":\"");
    out.extend_from_slice(stamp);
    out.extend_from_slice(b"\",");
}
