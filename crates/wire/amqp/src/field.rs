//! Fields of performatives and sections: how each type is read and written, and a macro that makes a struct of them.
//!
//! Every field is written, those without a value as null: some clients index fields without looking how many there are.

use bytes::{BufMut, Bytes, BytesMut};

use crate::decode::{DecodeError, Decoder, Result};
use crate::encode;
use crate::value::{Map, Symbol, Value};

/// A type that a field can have.
pub(crate) trait Field: Sized {
    /// Reads a value that is not null.
    fn read(decoder: &mut Decoder<'_>) -> Result<Self>;

    /// What a null or a missing field is; none if the field is mandatory.
    fn absent() -> Option<Self> {
        None
    }

    fn write(&self, out: &mut BytesMut);
}

/// The fields of a list that is being read. Fields that we don't know, behind the last one, are passed over.
pub(crate) struct Fields<'a> {
    inside: Decoder<'a>,
    left: u32,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(decoder: &mut Decoder<'a>) -> Result<Self> {
        let (inside, left) = decoder.list()?;
        Ok(Self { inside, left })
    }

    pub(crate) fn next<T: Field>(&mut self, name: &'static str) -> Result<T> {
        let absent = || T::absent().ok_or(DecodeError::Missing(name));
        if self.left == 0 {
            return absent();
        }
        self.left -= 1;
        if self.inside.peek()? == 0x40 {
            self.inside.byte()?;
            return absent();
        }
        T::read(&mut self.inside)
    }
}

impl<T: Field> Field for Option<T> {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
        T::read(decoder).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn write(&self, out: &mut BytesMut) {
        match self {
            Some(value) => value.write(out),
            None => out.put_u8(0x40),
        }
    }
}

/// A field whose type has a method of the decoder and a function of the encoder.
macro_rules! field {
    ($kind:ty, $read:expr, $write:expr) => {
        impl Field for $kind {
            fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
                let read: fn(&mut Decoder<'_>) -> Result<Self> = $read;
                read(decoder)
            }

            fn write(&self, out: &mut BytesMut) {
                let write: fn(&mut BytesMut, &Self) = $write;
                write(out, self);
            }
        }
    };
}

field!(bool, |decoder| decoder.bool(), |out, is| encode::bool(out, *is));
field!(u8, |decoder| decoder.ubyte(), |out, number| out.put_slice(&[0x50, *number]));
field!(u16, |decoder| decoder.ushort(), |out, number| {
    out.put_u8(0x60);
    out.put_u16(*number);
});
field!(u32, |decoder| decoder.uint(), |out, number| encode::uint(out, *number));
field!(u64, |decoder| decoder.ulong(), |out, number| encode::ulong(out, *number));
field!(Bytes, |decoder| decoder.binary().map(Self::copy_from_slice), |out, bytes| encode::binary(
    out, bytes
));
field!(String, |decoder| decoder.string().map(str::to_owned), |out, text| encode::string(
    out, text
));
field!(Symbol, |decoder| decoder.symbol().map(Self::from), |out, word| encode::symbol(
    out, &word.0
));

/// A moment in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp(pub i64);

field!(Timestamp, |decoder| decoder.timestamp().map(Self), |out, moment| {
    out.put_u8(0x83);
    out.put_i64(moment.0);
});

impl Field for Value {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
        decoder.value()
    }

    fn absent() -> Option<Self> {
        Some(Self::Null)
    }

    fn write(&self, out: &mut BytesMut) {
        encode::value(out, self);
    }
}

impl Field for Map {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
        match decoder.value()? {
            Value::Map(map) => Ok(map),
            _ => Err(DecodeError::Expected("a map")),
        }
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }

    fn write(&self, out: &mut BytesMut) {
        match self.is_empty() {
            true => out.put_u8(0x40),
            false => encode::map(out, self),
        }
    }
}

/// Several symbols: an array of them, or one alone.
impl Field for Vec<Symbol> {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
        let symbol = |value| match value {
            Value::Symbol(word) => Ok(word),
            _ => Err(DecodeError::Expected("a symbol")),
        };
        match decoder.value()? {
            Value::Array(elements) => elements.into_iter().map(symbol).collect(),
            one => Ok(vec![symbol(one)?]),
        }
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }

    fn write(&self, out: &mut BytesMut) {
        if self.is_empty() {
            out.put_u8(0x40);
            return;
        }
        let elements = self.iter().cloned().map(Value::Symbol).collect();
        encode::value(out, &Value::Array(elements));
    }
}

/// A described list as a struct. `write` writes descriptor and list, `read_fields` reads the list behind its descriptor.
macro_rules! composite {
    ($(#[$about:meta])* $name:ident = $code:literal {
        $($(#[$about_field:meta])* $field:ident: $kind:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$about_field])* pub $field: $kind,)*
        }

        impl $name {
            /// The descriptor.
            pub const CODE: u64 = $code;
            const COUNT: u32 = [$(stringify!($field)),*].len() as u32;

            pub(crate) fn read_fields(decoder: &mut $crate::decode::Decoder<'_>) -> $crate::decode::Result<Self> {
                let mut fields = $crate::field::Fields::of(decoder)?;
                Ok(Self { $($field: fields.next(stringify!($field))?,)* })
            }

            pub fn write(&self, out: &mut bytes::BytesMut) {
                $crate::encode::descriptor(out, Self::CODE);
                let list = $crate::encode::begin(out, 0xd0, Self::COUNT);
                $($crate::field::Field::write(&self.$field, out);)*
                $crate::encode::end(out, &list);
            }
        }

        impl $crate::field::Field for $name {
            fn read(decoder: &mut $crate::decode::Decoder<'_>) -> $crate::decode::Result<Self> {
                match decoder.descriptor()? {
                    $code => Self::read_fields(decoder),
                    _ => Err($crate::decode::DecodeError::Expected(stringify!($name))),
                }
            }

            fn write(&self, out: &mut bytes::BytesMut) {
                self.write(out);
            }
        }
    };
}

pub(crate) use composite;
