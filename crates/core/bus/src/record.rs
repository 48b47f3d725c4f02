//! How the fields of stored rows are written: the encoding of the catalog's rows, for this crate's types.

/// A struct as its fields, one behind the other.
macro_rules! fields {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl lazuli_shardmap::record::Record for $name {
            fn write(&self, out: &mut bytes::BytesMut) {
                $(lazuli_shardmap::record::Record::write(&self.$field, out);)*
            }
            fn read(input: &mut bytes::Bytes) -> lazuli_engine::Result<Self> {
                Ok(Self { $($field: lazuli_shardmap::record::Record::read(input)?),* })
            }
        }
    };
}

/// An enum of plain variants as one byte.
macro_rules! choice {
    ($name:ident { $($variant:ident = $byte:literal),* $(,)? }) => {
        impl lazuli_shardmap::record::Record for $name {
            fn write(&self, out: &mut bytes::BytesMut) {
                let byte: u8 = match self { $(Self::$variant => $byte),* };
                lazuli_shardmap::record::Record::write(&byte, out);
            }
            fn read(input: &mut bytes::Bytes) -> lazuli_engine::Result<Self> {
                match <u8 as lazuli_shardmap::record::Record>::read(input)? {
                    $($byte => Ok(Self::$variant),)*
                    _ => Err($crate::record::damaged(stringify!($name))),
                }
            }
        }
    };
}

pub(crate) use {choice, fields};

pub(crate) fn damaged(what: &str) -> lazuli_engine::Error {
    lazuli_engine::Error::corrupt("bad-bus-row", format!("{what} does not decode"))
}
