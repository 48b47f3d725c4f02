//! The bytes of the rows that catalog and local maps keep: `docs/formats/catalog.md` draws them.
//!
//! A row is a format byte and then its fields in order: integers big-endian, text and bytes behind a length of four
//! bytes, lists behind a count, options behind a flag. No field is named and none is skipped: a new field is a new format.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_env::Id;
use lazuli_store::{Error, KeyRange, Result};

use crate::key::{KeySchema, KeyType};
use crate::placement::Rule;
use crate::{
    Container, ContainerId, Epoch, MapKind, Partition, PartitionId, PartitionState, Policies,
    Shard, ShardId,
};

/// The format of every row that this version writes.
pub const ROW_FORMAT: u8 = 1;

/// Something that stands in a row, as a field or as the whole of it.
pub trait Record: Sized {
    fn write(&self, out: &mut BytesMut);
    fn read(input: &mut Bytes) -> Result<Self>;
}

/// A whole row.
pub fn encode(value: &impl Record) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(ROW_FORMAT);
    value.write(&mut out);
    out.freeze()
}

/// Reads a whole row, to its last byte.
pub fn decode<T: Record>(row: Bytes) -> Result<T> {
    let mut input = row;
    let format = u8::read(&mut input)?;
    if format != ROW_FORMAT {
        return Err(Error::invalid(
            "format-unknown",
            format!("a row of format {format}, and this version knows {ROW_FORMAT}"),
        ));
    }
    let value = T::read(&mut input)?;
    if input.is_empty() { Ok(value) } else { Err(corrupt("bytes behind the last field")) }
}

fn corrupt(what: &str) -> Error {
    Error::corrupt("row-corrupt", format!("a row of a map cannot be read: {what}"))
}

fn take(input: &mut Bytes, length: usize) -> Result<Bytes> {
    if input.len() < length {
        return Err(corrupt("it ends too early"));
    }
    Ok(input.split_to(length))
}

macro_rules! record_integer {
    ($($type:ty: $put:ident, $get:ident;)*) => {$(
        impl Record for $type {
            fn write(&self, out: &mut BytesMut) {
                out.$put(*self);
            }
            fn read(input: &mut Bytes) -> Result<Self> {
                Ok(take(input, size_of::<$type>())?.$get())
            }
        }
    )*};
}

record_integer! {
    u8: put_u8, get_u8;
    u32: put_u32, get_u32;
    u64: put_u64, get_u64;
}

macro_rules! record_number {
    ($($name:ident($inner:ty)),*) => {$(
        impl Record for $name {
            fn write(&self, out: &mut BytesMut) {
                self.0.write(out);
            }
            fn read(input: &mut Bytes) -> Result<Self> {
                <$inner>::read(input).map(Self)
            }
        }
    )*};
}

record_number!(ShardId(u32), ContainerId(u32), PartitionId(u64), Epoch(u64));

/// A struct whose row is its fields one after another.
macro_rules! record_fields {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::record::Record for $name {
            fn write(&self, out: &mut bytes::BytesMut) {
                $($crate::record::Record::write(&self.$field, out);)*
            }
            fn read(input: &mut bytes::Bytes) -> lazuli_store::Result<Self> {
                Ok(Self { $($field: $crate::record::Record::read(input)?),* })
            }
        }
    };
}

/// An enum without fields whose row is one byte.
macro_rules! record_choice {
    ($name:ident { $($variant:ident = $byte:literal),* $(,)? }) => {
        impl $crate::record::Record for $name {
            fn write(&self, out: &mut bytes::BytesMut) {
                let byte: u8 = match self { $(Self::$variant => $byte),* };
                $crate::record::Record::write(&byte, out);
            }
            fn read(input: &mut bytes::Bytes) -> lazuli_store::Result<Self> {
                match <u8 as $crate::record::Record>::read(input)? {
                    $($byte => Ok(Self::$variant),)*
                    other => Err($crate::record::unknown_choice(stringify!($name), other)),
                }
            }
        }
    };
}

pub(crate) use {record_choice, record_fields};

pub(crate) fn unknown_choice(name: &str, byte: u8) -> Error {
    corrupt(&format!("{byte} is no {name}"))
}

impl Record for bool {
    fn write(&self, out: &mut BytesMut) {
        out.put_u8(u8::from(*self));
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        match u8::read(input)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(unknown_choice("flag", other)),
        }
    }
}

impl Record for Bytes {
    fn write(&self, out: &mut BytesMut) {
        let length = u32::try_from(self.len()).expect("the store's limits are far below 4 GiB");
        out.put_u32(length);
        out.put_slice(self);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let length = u32::read(input)?;
        take(input, length as usize)
    }
}

impl Record for String {
    fn write(&self, out: &mut BytesMut) {
        Bytes::copy_from_slice(self.as_bytes()).write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let bytes = Bytes::read(input)?;
        Self::from_utf8(bytes.into()).map_err(|_| corrupt("text is not UTF-8"))
    }
}

impl Record for Id {
    fn write(&self, out: &mut BytesMut) {
        out.put_slice(&self.to_bytes());
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let bytes = take(input, 16)?;
        bytes[..].try_into().map(Self::from_bytes).map_err(|_| corrupt("an id is 16 bytes"))
    }
}

impl<T: Record> Record for Option<T> {
    fn write(&self, out: &mut BytesMut) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        if bool::read(input)? { T::read(input).map(Some) } else { Ok(None) }
    }
}

impl<T: Record> Record for Vec<T> {
    fn write(&self, out: &mut BytesMut) {
        out.put_u32(u32::try_from(self.len()).expect("lists are bounded far below 2^32"));
        for value in self {
            value.write(out);
        }
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let count = u32::read(input)?;
        // Every element takes a byte at least, so a count that lies ends with the input.
        (0..count).map(|_| T::read(input)).collect()
    }
}

impl<A: Record, B: Record> Record for (A, B) {
    fn write(&self, out: &mut BytesMut) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

impl Record for BTreeMap<String, String> {
    fn write(&self, out: &mut BytesMut) {
        let pairs: Vec<_> =
            self.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        pairs.write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        Ok(Vec::<(String, String)>::read(input)?.into_iter().collect())
    }
}

impl Record for KeySchema {
    fn write(&self, out: &mut BytesMut) {
        self.types().to_vec().write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        Self::new(Vec::read(input)?).map_err(|error| corrupt(error.message()))
    }
}

record_choice!(KeyType {
    Int32 = 1,
    Int64 = 2,
    Uuid = 3,
    Bytes = 4,
    Text = 5,
    DateTime = 6,
    Bool = 7,
});
record_choice!(MapKind {
    List = 1,
    Range = 2,
    Hash = 3,
    EpkV1 = 4,
    EpkV2 = 5,
    EpkMulti = 6,
});
record_choice!(PartitionState { Online = 1, ReadOnly = 2, Offline = 3, Sending = 4, Fenced = 5 });
record_fields!(KeyRange { start, end });
record_fields!(Rule { routes, region, labels });
record_fields!(Policies { changes, throughput, attributes });
record_fields!(Shard { id, name, location, region, labels, version });
record_fields!(Container { id, name, kind, key, schema, placement, policies, version });
record_fields!(Partition { id, container, routes, shard, epoch, state });

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Container {
        Container {
            id: ContainerId(7),
            name: "tables/shop/orders".into(),
            kind: MapKind::Range,
            key: KeySchema::new([KeyType::Text, KeyType::Int64]).unwrap(),
            schema: "orders-1".into(),
            placement: vec![Rule {
                routes: KeyRange::prefix("de"),
                region: Some("berlin".into()),
                labels: BTreeMap::from([("disk".into(), "fast".into())]),
            }],
            policies: Policies {
                changes: true,
                throughput: Some(400),
                attributes: [("title".into(), "T".into())].into(),
            },
            version: 12,
        }
    }

    fn partition() -> Partition {
        Partition {
            id: PartitionId(1),
            container: ContainerId(7),
            routes: KeyRange::new("a", None),
            shard: ShardId(3),
            epoch: Epoch(9),
            state: PartitionState::ReadOnly,
        }
    }

    #[test]
    fn rows_read_back_as_they_were_written() {
        assert_eq!(decode::<Container>(encode(&container())).unwrap(), container());
        assert_eq!(decode::<Partition>(encode(&partition())).unwrap(), partition());
    }

    #[test]
    fn the_bytes_of_a_row_are_those_of_the_format_page() {
        let expected: &[u8] = &[
            1, // format
            0, 0, 0, 0, 0, 0, 0, 1, // partition
            0, 0, 0, 7, // container
            0, 0, 0, 1, b'a', 0, // routes from "a" without end
            0, 0, 0, 3, // shard
            0, 0, 0, 0, 0, 0, 0, 9, // epoch
            2, // read-only
        ];
        assert_eq!(&encode(&partition())[..], expected);
    }

    #[test]
    fn every_cut_row_is_corrupt_and_none_panics() {
        let row = encode(&container());
        for length in 0..row.len() {
            let error = decode::<Container>(row.slice(..length)).unwrap_err();
            assert_eq!(error.code(), "row-corrupt", "cut at {length}");
        }
        let mut longer = row.to_vec();
        longer.push(0);
        assert_eq!(decode::<Container>(longer.into()).unwrap_err().code(), "row-corrupt");
    }

    #[test]
    fn a_flipped_byte_never_panics_and_a_lying_length_takes_no_memory() {
        let row = encode(&container());
        for at in 0..row.len() {
            for bit in 0..8 {
                let mut flipped = row.to_vec();
                flipped[at] ^= 1 << bit;
                let _ = decode::<Container>(flipped.into());
            }
        }
    }

    #[test]
    fn a_row_of_a_newer_format_is_refused() {
        let mut row = encode(&partition()).to_vec();
        row[0] = ROW_FORMAT + 1;
        assert_eq!(decode::<Partition>(row.into()).unwrap_err().code(), "format-unknown");
    }
}
