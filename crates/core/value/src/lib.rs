//! Typed values of documents: the types of JSON and BSON, and objects that keep the order of their properties.
//!
//! An absent value ("undefined" in the query language) is no [`Value`]: whatever may be absent is an `Option<Value>`.

/// A value of a document.
///
/// The first seven variants are JSON. The others are types that BSON has beyond it, so that a document of either protocol
/// comes back as it went in.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// A whole number without fraction or exponent in its text, if it fits.
    Int64(i64),
    Double(f64),
    String(String),
    Array(Vec<Value>),
    Object(Object),
    Int32(i32),
    /// IEEE 754 decimal128, little-endian.
    Decimal128([u8; 16]),
    /// Milliseconds since the Unix epoch.
    DateTime(i64),
    ObjectId([u8; 12]),
    Binary {
        subtype: u8,
        bytes: Vec<u8>,
    },
    /// Seconds since the Unix epoch in the upper half, a counter in the lower.
    Timestamp(u64),
    Regex {
        pattern: String,
        options: String,
    },
    JavaScript(String),
    Symbol(String),
    MinKey,
    MaxKey,
}

/// The properties of an object in the order in which they were written. Names are unique: a later property of the same
/// name replaces the value of the former, in its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets a property and answers the value that it had.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) -> Option<Value> {
        let name = name.into();
        if let Some(there) = self.get_mut(&name) {
            return Some(std::mem::replace(there, value));
        }
        self.0.push((name, value));
        None
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
