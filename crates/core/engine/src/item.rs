//! Items: their keys, and the envelope in which the store keeps them.
//!
//! Key: `container (4) | space (1) | route | row key`. Envelope: `format (1) | flags (1) | LSN of the last write (8) |
//! [expiry in ms (8)] | [time of the write in ms (8)] | payload`. The LSN is the item's version, on which conditions and
//! ETags rest. It tells the time of the write too, unless the clock was set back before it: then the time stands beside it.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::layout::{self, PREFIX_BYTES, Space};
use lazuli_store::{Error, KeyRange, Result};

use crate::lsn::Lsn;

const FORMAT: u8 = 1;
const FLAG_EXPIRES: u8 = 1;
const FLAG_WRITTEN: u8 = 2;
const FLAGS_KNOWN: u8 = FLAG_EXPIRES | FLAG_WRITTEN;

/// The whole key of an item, and where its route ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemKey {
    bytes: Bytes,
    route_end: usize,
}

impl ItemKey {
    pub fn new(container: ContainerId, space: Space, route: &[u8], row: &[u8]) -> Self {
        let mut key = layout::start(container, space, route.len() + row.len());
        key.put_slice(route);
        let route_end = key.len();
        key.put_slice(row);
        Self { bytes: key.freeze(), route_end }
    }

    /// The key again from its stored bytes, where the caller knows how long the route is.
    pub fn from_bytes(bytes: Bytes, route_bytes: usize) -> Result<Self> {
        let route_end = PREFIX_BYTES + route_bytes;
        if bytes.len() < route_end {
            return Err(Error::corrupt("short-key", "a key ends before its route does"));
        }
        Ok(Self { bytes, route_end })
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn container(&self) -> ContainerId {
        ContainerId((&self.bytes[..4]).get_u32())
    }

    pub fn space(&self) -> Space {
        Space(self.bytes[4])
    }

    pub fn route(&self) -> &[u8] {
        &self.bytes[PREFIX_BYTES..self.route_end]
    }

    pub fn row(&self) -> &[u8] {
        &self.bytes[self.route_end..]
    }
}

/// The keys of one space whose `route | row key` lies in a range.
pub(crate) fn keys_of(container: ContainerId, space: Space, range: &KeyRange) -> KeyRange {
    let start = layout::key(container, space, &range.start);
    let end = match &range.end {
        Some(end) => Some(layout::key(container, space, end)),
        None => lazuli_store::after_prefix(&layout::prefix(container, space)),
    };
    KeyRange::new(start, end)
}

/// What an item holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The LSN of the last write.
    pub version: Lsn,
    /// From this moment on the item is gone, in milliseconds since the Unix epoch.
    pub expires_ms: Option<u64>,
    /// When it was written, where its number does not tell: see [`Tx::set_back_ms`](crate::Tx::set_back_ms).
    pub written_ms: Option<u64>,
    pub payload: Bytes,
}

impl Item {
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.encoded_bytes());
        bytes.put_u8(FORMAT);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let expires = flag(self.expires_ms.is_some(), FLAG_EXPIRES);
        bytes.put_u8(expires | flag(self.written_ms.is_some(), FLAG_WRITTEN));
        bytes.put_u64(self.version.0);
        if let Some(expires_ms) = self.expires_ms {
            bytes.put_u64(expires_ms);
        }
        if let Some(written_ms) = self.written_ms {
            bytes.put_u64(written_ms);
        }
        bytes.put_slice(&self.payload);
        bytes.freeze()
    }

    /// How many bytes the envelope with its payload takes.
    pub(crate) fn encoded_bytes(&self) -> usize {
        let times = [self.expires_ms, self.written_ms];
        10 + 8 * times.iter().flatten().count() + self.payload.len()
    }

    /// When it was last written, as a number that says so. For people: it need not grow.
    pub fn time(&self) -> Lsn {
        let counter = u64::from(self.version.counter());
        self.written_ms.map_or(self.version, |ms| Lsn(Lsn::at_ms(ms).0 + counter))
    }

    #[inline]
    pub fn decode(mut bytes: Bytes) -> Result<Self> {
        let damaged = |what| Error::corrupt("bad-envelope", format!("an item {what}"));
        let Some([format, flags, version @ ..]) = bytes.first_chunk::<10>() else {
            return Err(damaged("is shorter than its envelope"));
        };
        if *format != FORMAT {
            return Err(damaged("has an unknown envelope format"));
        }
        let flags = *flags;
        if flags & !FLAGS_KNOWN != 0 {
            return Err(damaged("has unknown flags"));
        }
        let version = Lsn(u64::from_be_bytes(*version));
        bytes.advance(10);
        let mut time = |flag: u8| {
            if flags & flag == 0 {
                Ok(None)
            } else if bytes.len() < 8 {
                Err(damaged("ends before its times"))
            } else {
                Ok(Some(bytes.get_u64()))
            }
        };
        let (expires_ms, written_ms) = (time(FLAG_EXPIRES)?, time(FLAG_WRITTEN)?);
        Ok(Self { version, expires_ms, written_ms, payload: bytes })
    }

    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_survives_its_envelope() {
        for expires_ms in [None, Some(77)] {
            let item =
                Item { version: Lsn(9), expires_ms, written_ms: None, payload: "payload".into() };
            assert_eq!(item.encode().len(), item.encoded_bytes());
            assert_eq!(Item::decode(item.encode()).unwrap(), item);
        }
    }

    #[test]
    fn a_damaged_envelope_is_corrupt_and_never_a_panic() {
        let whole =
            Item { version: Lsn(9), expires_ms: Some(1), written_ms: None, payload: Bytes::new() }
                .encode();
        for length in 0..whole.len() {
            let error = Item::decode(whole.slice(..length)).unwrap_err();
            assert_eq!(error.kind(), lazuli_store::Kind::Corrupt);
        }
        for (at, byte) in [(0, 9), (1, 0x80)] {
            let mut bytes = whole.to_vec();
            bytes[at] = byte;
            assert!(Item::decode(bytes.into()).is_err());
        }
    }

    #[test]
    fn a_key_knows_its_parts() {
        let key = ItemKey::new(ContainerId(7), Space::ITEMS, b"route", b"row");
        assert_eq!((key.container(), key.space()), (ContainerId(7), Space::ITEMS));
        assert_eq!((key.route(), key.row()), (&b"route"[..], &b"row"[..]));
        assert_eq!(ItemKey::from_bytes(key.bytes().clone(), 5).unwrap(), key);
        assert!(ItemKey::from_bytes(key.bytes().clone(), 50).is_err());
    }
}
