//! Entities as JSON, one after another, at the level of metadata that the client asked for.
//!
//! The entities of an answer mostly have the same partition key and the same properties, and were often written at the
//! same moment. So what was made for one is kept for the next.

use std::sync::Arc;

use lazuli_engine::Lsn;
use lazuli_http::odata::{
    Metadata, type_note, write_null, write_stored_text, write_string, write_text_property,
    write_value,
};
use lazuli_shapes::record::Record;

use crate::Call;
use crate::entity::{Damaged, PARTITION_KEY, Properties, ROW_KEY, Stored, TIMESTAMP};
use crate::error::Result;
use crate::etag::{etag, stamp, write_etag_json};
use crate::response::{entity_link, write_context, write_links};

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
        if self.call.wishes.metadata == Metadata::Full {
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
        let level = self.call.wishes.metadata;
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
                write_property(out, &name.json, &value, self.call.wishes.metadata)?;
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
