//! The types of AMQP 1.0 as one enum. Hot paths read performatives straight from bytes; this is for everything else:
//! annotations, filters, properties of links, bodies of requests.

use bytes::Bytes;

/// One value of any type.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Ubyte(u8),
    Ushort(u16),
    Uint(u32),
    Ulong(u64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Decimal32([u8; 4]),
    Decimal64([u8; 8]),
    Decimal128([u8; 16]),
    Char(char),
    /// Milliseconds since the Unix epoch.
    Timestamp(i64),
    Uuid([u8; 16]),
    Binary(Bytes),
    String(String),
    Symbol(Symbol),
    List(Vec<Self>),
    Map(Map),
    /// Elements of one type. An empty array has lost what type that was.
    Array(Vec<Self>),
    /// A descriptor and the value that it describes.
    Described(Box<(Self, Self)>),
}

/// A word of a protocol: ASCII on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol(pub String);

impl From<&str> for Symbol {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Pairs of keys and values in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(pub Vec<(Value, Value)>);

impl Map {
    /// The value under a key that is a symbol or a string.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(key, _)| key.as_text() == Some(name));
        found.map(|(_, value)| value)
    }

    /// The text under a key.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// The whole number under a key, of any width.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_integer()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a pair whose key is a symbol, as in annotations and properties of links.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((Value::Symbol(name.into()), value.into()));
        self
    }

    /// Adds a pair whose key is a string, as in application properties and bodies of requests.
    #[must_use]
    pub fn with_text(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((Value::from(name), value.into()));
        self
    }

    /// Puts a value under a symbol, in the place of the one that is there.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        match self.0.iter_mut().find(|(key, _)| key.as_text() == Some(name)) {
            Some(pair) => pair.1 = value.into(),
            None => self.0.push((Value::Symbol(name.into()), value.into())),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key.as_text() != Some(name));
    }
}

impl Value {
    pub fn symbol(text: &str) -> Self {
        Self::Symbol(text.into())
    }

    pub fn described(descriptor: impl Into<Self>, value: Self) -> Self {
        Self::Described(Box::new((descriptor.into(), value)))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text of a string or a symbol.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Symbol(symbol) => Some(&symbol.0),
            _ => None,
        }
    }

    /// A whole number of any width, if 64 bits with a sign hold it.
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::Ubyte(number) => Some(number.into()),
            Self::Ushort(number) => Some(number.into()),
            Self::Uint(number) => Some(number.into()),
            Self::Ulong(number) => i64::try_from(number).ok(),
            Self::Byte(number) => Some(number.into()),
            Self::Short(number) => Some(number.into()),
            Self::Int(number) => Some(number.into()),
            Self::Long(number) | Self::Timestamp(number) => Some(number),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(is) => Some(*is),
            _ => None,
        }
    }

    pub fn as_binary(&self) -> Option<&Bytes> {
        match self {
            Self::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub fn as_uuid(&self) -> Option<[u8; 16]> {
        match self {
            Self::Uuid(id) => Some(*id),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The elements of a list or of an array.
    pub fn as_elements(&self) -> Option<&[Self]> {
        match self {
            Self::List(elements) | Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The value without its descriptor.
    pub fn undescribed(&self) -> &Self {
        match self {
            Self::Described(pair) => pair.1.undescribed(),
            other => other,
        }
    }

    /// The numeric descriptor, and the value that it describes.
    pub fn as_described(&self) -> Option<(u64, &Self)> {
        match self {
            Self::Described(pair) => match pair.0 {
                Self::Ulong(code) => Some((code, &pair.1)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Conversions from the types of Rust that have one obvious type here.
macro_rules! from {
    ($($kind:ty => $variant:ident),* $(,)?) => {
        $(impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

from! {
    bool => Bool, u8 => Ubyte, u16 => Ushort, u32 => Uint, u64 => Ulong, i8 => Byte, i16 => Short, i32 => Int,
    i64 => Long, f32 => Float, f64 => Double, char => Char, Bytes => Binary, String => String, Symbol => Symbol,
    Map => Map,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
