//! Resources of the directory, and the rows that they are kept in.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Error, Item, Lsn, Result};
use lazuli_value::{Value, View};

use super::reason::DocumentReason;
use super::rid::{ResourceKind, Rid};

const FORMAT: u8 = 1;

/// One entry of the directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub kind: ResourceKind,
    pub rid: Rid,
    pub id: String,
    /// What the front keeps about it.
    pub body: Value,
    /// The number of its last write: its etag.
    pub version: Lsn,
    pub written_ms: u64,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourcePage {
    pub resources: Vec<Resource>,
    /// The name behind which the next page begins; none at the end.
    pub next: Option<String>,
}

/// `format (1) | kind (1) | length of the name (2) | name | encoded body`.
pub(super) fn encode(kind: ResourceKind, id: &str, body: &Value) -> Bytes {
    let body = body.encode();
    let mut bytes = BytesMut::with_capacity(4 + id.len() + body.len());
    bytes.put_u8(FORMAT);
    bytes.put_u8(kind.number());
    bytes.put_u16(u16::try_from(id.len()).unwrap_or(u16::MAX));
    bytes.put_slice(id.as_bytes());
    bytes.put_slice(&body);
    bytes.freeze()
}

pub(super) fn decode(rid: Rid, item: Item) -> Result<Resource> {
    let mut rest = item.payload.clone();
    if rest.len() < 4 || rest.get_u8() != FORMAT {
        return Err(damaged());
    }
    let kind = ResourceKind::numbered(rest.get_u8()).ok_or_else(damaged)?;
    let length = usize::from(rest.get_u16());
    if rest.len() < length {
        return Err(damaged());
    }
    let id = String::from_utf8(rest.split_to(length).into()).map_err(|_| damaged())?;
    let body = View::parse(&rest).map_err(|_| damaged())?.to_value();
    let written_ms = item.time().millis();
    Ok(Resource { kind, rid, id, body, version: item.version, written_ms })
}

pub(super) fn damaged() -> Error {
    Error::corrupt("bad-resource", "an entry of the directory does not decode")
}

pub(super) fn missing(id: &str) -> Error {
    let message = format!("there is no resource {id:?}");
    Error::not_found(DocumentReason::ResourceMissing, message)
}
