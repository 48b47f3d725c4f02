//! Items: what a client writes, what is stored of it, and what it gets back.
//!
//! Stored: `format (1) | LSN of the creation (8) | encoded object`. The format also says whether the item is in the index: 1 as
//! the policy says, 2 not, 3 in any case. Names that belong to the service are never stored: they follow from the item's
//! place, its number and the container's id, and are added when it is read.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Error, Item, Lsn, Result};
use lazuli_value::json::Sink;
use lazuli_value::{Encoder, Node, Value, View, encode_json, json};

use super::key::PartitionKey;
use super::limits::{ID_BYTES_MAX, ITEM_BYTES_MAX};
use super::reason::DocumentReason;
use super::rid::Rid;

const HEAD_BYTES: usize = 9;

/// Whether an item is in the index, as the request that wrote it has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexDirective {
    /// As the policy of the container says.
    #[default]
    Policy,
    Exclude,
    Include,
}

impl IndexDirective {
    /// The first byte of a stored item.
    fn format(self) -> u8 {
        match self {
            Self::Policy => 1,
            Self::Exclude => 2,
            Self::Include => 3,
        }
    }

    /// That of a stored item.
    pub(super) fn of(payload: &[u8]) -> Result<Self> {
        match payload.first() {
            Some(1) => Ok(Self::Policy),
            Some(2) => Ok(Self::Exclude),
            Some(3) => Ok(Self::Include),
            _ => Err(damaged()),
        }
    }
}

/// The names that belong to the service.
pub const SYSTEM_NAMES: [&str; 7] =
    ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn", "_metadata"];

/// An item as a client writes it: a checked object with an id.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Without the names of the service.
    encoded: Bytes,
    id: String,
    ttl_s: Option<i64>,
    directive: IndexDirective,
}

impl Body {
    /// Of a JSON text. Fails with `BadItem` or `BadId`.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        if text.len() > ITEM_BYTES_MAX {
            return Err(too_large());
        }
        let encoded = encode_json(text)
            .map_err(|error| Error::invalid(DocumentReason::BadItem, error.to_string()))?;
        // A text that is too deep was refused when it was read.
        Self::of(View::trusted(&encoded), &encoded)
    }

    pub fn from_value(value: &Value) -> Result<Self> {
        let encoded = value.encode();
        let whole = View::parse(&encoded)
            .map_err(|error| Error::invalid(DocumentReason::BadItem, error.to_string()))?;
        Self::of(whole, &encoded)
    }

    fn of(whole: View<'_>, encoded: &[u8]) -> Result<Self> {
        if encoded.len() > ITEM_BYTES_MAX {
            return Err(too_large());
        }
        if !matches!(whole.node(), Node::Object(_)) {
            return Err(Error::invalid(DocumentReason::BadItem, "an item is an object"));
        }
        let id = match whole.get("id").map(View::node) {
            Some(Node::String(id)) => id.to_owned(),
            Some(_) => return Err(bad_id("the id of an item is a string")),
            None => return Err(bad_id("an item needs an id")),
        };
        check_id(&id)?;
        let ttl_s = match whole.get("ttl").map(View::node) {
            None | Some(Node::Null) => None,
            Some(Node::Int64(ttl @ (-1 | 1..=0x7fff_ffff))) => Some(ttl),
            Some(_) => {
                let message = "the ttl of an item is -1 or a positive number of seconds";
                return Err(Error::invalid(DocumentReason::BadItem, message));
            }
        };
        let encoded = match without_system_names(whole) {
            Some(encoded) => encoded.into(),
            None => Bytes::copy_from_slice(encoded),
        };
        Ok(Self { encoded, id, ttl_s, directive: IndexDirective::Policy })
    }

    /// The same, in the index or not.
    #[must_use]
    pub fn indexed(self, directive: IndexDirective) -> Self {
        Self { directive, ..self }
    }

    pub fn directive(&self) -> IndexDirective {
        self.directive
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn value(&self) -> Value {
        self.view().to_value()
    }

    pub(super) fn ttl_s(&self) -> Option<i64> {
        self.ttl_s
    }

    pub fn view(&self) -> View<'_> {
        View::trusted(&self.encoded)
    }

    /// What is stored.
    pub(super) fn payload(&self, created: Lsn) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + self.encoded.len());
        bytes.put_u8(self.directive.format());
        bytes.put_u64(created.0);
        bytes.put_slice(&self.encoded);
        bytes.freeze()
    }
}

/// Refuses an id that cannot stand in an address.
pub fn check_id(id: &str) -> Result<()> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(bad_id("an id has 1 to 1,023 bytes"));
    }
    if id.contains(['/', '\\', '?', '#']) {
        return Err(bad_id("an id has none of / \\ ? #"));
    }
    Ok(())
}

fn bad_id(message: &str) -> Error {
    Error::invalid(DocumentReason::BadId, message)
}

fn too_large() -> Error {
    let message = format!("an item has at most {ITEM_BYTES_MAX} bytes");
    Error::too_large(DocumentReason::ItemTooLarge, message)
}

/// The object without the names of the service, if it has any.
fn without_system_names(whole: View<'_>) -> Option<Vec<u8>> {
    let is_system = |name: &str| SYSTEM_NAMES.contains(&name);
    whole.properties().find(|(name, _)| is_system(name))?;
    let mut encoder = Encoder::new();
    encoder.begin_object();
    for (name, value) in whole.properties().filter(|(name, _)| !is_system(name)) {
        encoder.name(name);
        encoder.value(value.into());
    }
    encoder.end_object();
    Some(encoder.finish())
}

/// An item as it is stored.
#[derive(Clone, Debug)]
pub struct Document {
    pub key: PartitionKey,
    pub id: String,
    /// The number of its last write: its etag.
    pub version: Lsn,
    /// When that was.
    pub written_ms: u64,
    /// The number of the write that made it.
    pub created: Lsn,
    pub rid: Rid,
    pub directive: IndexDirective,
    encoded: Bytes,
    /// Whether the bytes were made in this process, and not read from a store.
    is_new: bool,
}

impl PartialEq for Document {
    /// Where the bytes came from makes no difference.
    fn eq(&self, other: &Self) -> bool {
        fn parts(it: &Document) -> impl PartialEq + '_ {
            let Document { key, id, version, written_ms, created, rid, directive, encoded, .. } =
                it;
            (key, id, version, written_ms, created, rid, directive, encoded)
        }
        parts(self) == parts(other)
    }
}

impl Document {
    /// The item under this key in the container with this id.
    pub(super) fn new(
        collection: &Rid,
        key: PartitionKey,
        place: &Place<'_>,
        item: &Item,
    ) -> Result<Self> {
        let (created, encoded) = stored(&item.payload)?;
        let number = place.number(created);
        let id = std::str::from_utf8(place.row).map_err(|_| damaged())?.to_owned();
        Ok(Self {
            key,
            id,
            version: item.version,
            written_ms: item.time().millis(),
            created,
            rid: collection.document(number),
            directive: IndexDirective::of(&item.payload)?,
            encoded,
            is_new: false,
        })
    }

    /// The same of an item that was encoded just now, whose bytes need no check.
    pub(super) fn made_here(self) -> Self {
        Self { is_new: true, ..self }
    }

    /// What the client wrote.
    pub fn body(&self) -> Result<View<'_>> {
        match self.is_new {
            true => Ok(View::trusted(&self.encoded)),
            false => View::parse(&self.encoded).map_err(|_| damaged()),
        }
    }

    /// Bytes of what the client wrote, as it is stored.
    pub fn bytes(&self) -> usize {
        self.encoded.len()
    }

    /// The whole item as clients see it, encoded: what was written and the names of the service.
    pub fn encoded(&self) -> Result<Vec<u8>> {
        let body = self.body()?;
        Ok(with_system_names(body, self.encoded.len(), &self.rid, self.version, self.written_ms))
    }

    pub fn json(&self) -> Result<String> {
        let mut out = String::with_capacity(self.encoded.len() * 5 / 4 + SYSTEM_BYTES);
        self.write_json(&mut out)?;
        Ok(out)
    }

    /// Appends the JSON text of the whole item: that of what was written, whose last brace gives way to the names of the service.
    pub fn write_json(&self, out: &mut String) -> Result<()> {
        json::write(self.body()?.into(), out);
        // An item has an id, so another name may follow.
        out.pop();
        out.push_str(",\"_rid\":\"");
        self.rid.write(out);
        out.push_str("\",\"_self\":\"");
        self.rid.write_link(out);
        out.push_str("\",\"_etag\":\"\\\"");
        out.push_str(etag(self.version).trim_matches('"'));
        out.push_str("\\\"\",\"_attachments\":\"attachments/\",\"_ts\":");
        out.push_str(&(self.written_ms / 1_000).to_string());
        out.push('}');
        Ok(())
    }

    pub fn value(&self) -> Result<Value> {
        Ok(View::trusted(&self.encoded()?).to_value())
    }

    /// Its address by ids.
    pub fn link(&self) -> String {
        let mut link = String::new();
        self.rid.write_link(&mut link);
        link
    }
}

/// A stored item as clients see it, encoded. Queries read many of them, and need nothing else of a document.
pub(super) fn shown(collection: &Rid, place: &Place<'_>, item: &Item) -> Result<Vec<u8>> {
    let (created, encoded) = stored(&item.payload)?;
    let body = View::parse(&encoded).map_err(|_| damaged())?;
    let rid = collection.document(place.number(created));
    Ok(with_system_names(body, encoded.len(), &rid, item.version, item.time().millis()))
}

/// Room for the names and values of the service.
const SYSTEM_BYTES: usize = 256;

/// What a client wrote, which has none of the names of the service, and these.
fn with_system_names(
    body: View<'_>,
    bytes: usize,
    rid: &Rid,
    version: Lsn,
    written_ms: u64,
) -> Vec<u8> {
    let mut encoder = Encoder::with_capacity(bytes + SYSTEM_BYTES);
    let mut text = String::with_capacity(SYSTEM_BYTES);
    encoder.begin_object();
    encoder.properties(body);
    rid.write(&mut text);
    encoder.name("_rid");
    encoder.string(&text);
    text.clear();
    rid.write_link(&mut text);
    encoder.name("_self");
    encoder.string(&text);
    encoder.name("_etag");
    encoder.string(&etag(version));
    encoder.name("_attachments");
    encoder.string("attachments/");
    encoder.name("_ts");
    encoder.int64((written_ms / 1_000) as i64);
    encoder.end_object();
    encoder.finish()
}

/// Where an item is: `route | row key`.
pub(super) struct Place<'a> {
    pub(super) route: &'a [u8],
    pub(super) row: &'a [u8],
}

impl Place<'_> {
    /// The number of the item in its container, which no item that comes after it under the same key has.
    pub(super) fn number(&self, created: Lsn) -> u64 {
        let mut bytes = Vec::with_capacity(self.route.len() + self.row.len() + 8);
        bytes.extend_from_slice(self.route);
        bytes.extend_from_slice(self.row);
        bytes.extend_from_slice(&created.0.to_be_bytes());
        xxhash_rust::xxh3::xxh3_64(&bytes) >> 4
    }
}

/// The LSN of the creation and the encoded object of a stored item.
pub(super) fn stored(payload: &Bytes) -> Result<(Lsn, Bytes)> {
    let mut rest = payload.clone();
    IndexDirective::of(payload)?;
    if rest.len() < HEAD_BYTES {
        return Err(damaged());
    }
    rest.advance(1);
    let created = Lsn(rest.get_u64());
    Ok((created, rest))
}

pub(super) fn damaged() -> Error {
    Error::corrupt("bad-document", "an item of documents does not decode")
}

/// The etag of a version, as a quoted GUID.
pub fn etag(version: Lsn) -> String {
    let bits = version.0;
    format!("\"{:08x}-0000-0000-{:04x}-{:08x}0000\"", bits >> 48, bits >> 32 & 0xffff, bits as u32)
}

/// The version of an etag, with or without its quotes. None for what is not one of ours.
pub fn etag_version(text: &str) -> Option<Lsn> {
    let inner = text.trim_matches('"');
    let digits: String = inner.chars().filter(|one| *one != '-').collect();
    let bits = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    let (high, middle, low) = ((bits >> 96) as u64, (bits >> 48 & 0xffff) as u64, bits >> 16);
    let version = Lsn(high << 48 | middle << 32 | u64::from(low as u32));
    (etag(version).trim_matches('"') == inner).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_reads_back_and_nothing_else_does() {
        for version in [0, 1, 0xffff_ffff, 0x1234_5678_9abc, (1 << 53) - 1, u64::MAX] {
            let text = etag(Lsn(version));
            assert_eq!(text.len(), 38);
            assert_eq!(etag_version(&text), Some(Lsn(version)));
            assert_eq!(etag_version(text.trim_matches('"')), Some(Lsn(version)));
        }
        for text in ["", "\"\"", "*", "1", "\"00000000-0000-0000-0000-000000000001\"", "ä"] {
            assert_eq!(etag_version(text), None, "{text}");
        }
    }

    #[test]
    fn the_text_of_an_item_is_that_of_its_value() {
        let body =
            Body::from_json(br#"{"id":"\u00e4 \"x\"","a":{"b":[1,2.5,null]},"t":"\n"}"#).unwrap();
        let database = Rid::new(super::super::rid::ResourceKind::Database, None, 1);
        let collection = Rid::new(super::super::rid::ResourceKind::Collection, Some(&database), 2);
        let version = Lsn::at_ms(1_800_000_000_123);
        let payload = body.payload(Lsn(7));
        let item = Item { version, expires_ms: None, written_ms: None, payload };
        let place = Place { route: b"route", row: body.id().as_bytes() };
        let document = Document::new(&collection, PartitionKey(Vec::new()), &place, &item).unwrap();
        let text = View::trusted(&document.encoded().unwrap()).to_json();
        assert_eq!(document.json().unwrap(), text);
        assert_eq!(document.made_here().json().unwrap(), text);
    }

    #[test]
    fn an_item_keeps_what_was_written_but_the_names_of_the_service() {
        let body = Body::from_json(br#"{"id":"1","_ts":5,"a":[1,2.5],"_etag":"x","ttl":60}"#);
        let body = body.unwrap();
        assert_eq!(body.value().to_json(), r#"{"id":"1","a":[1,2.5],"ttl":60}"#);
        assert_eq!((body.id(), body.ttl_s()), ("1", Some(60)));
        for (text, code) in [
            ("{", "document-item"),
            ("[]", "document-item"),
            ("{}", "document-id"),
            (r#"{"id":1}"#, "document-id"),
            (r#"{"id":"a/b"}"#, "document-id"),
            (r#"{"id":""}"#, "document-id"),
            (r#"{"id":"a","ttl":0}"#, "document-item"),
        ] {
            assert_eq!(Body::from_json(text.as_bytes()).unwrap_err().code(), code, "{text}");
        }
    }
}
