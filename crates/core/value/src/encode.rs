//! Encoding: values, or JSON text as it is read, into the bytes that are stored.

use crate::error::ReadError;
use crate::json::{self, Sink};
use crate::node::{Node, ValueRef};
use crate::object::FEW_PROPERTIES_MAX;
use crate::view::{FORMAT, View, tag};
use crate::{Object, Value};

/// The stored bytes of a JSON text, without a [`Value`] in between.
pub fn encode_json(text: &[u8]) -> Result<Vec<u8>, ReadError> {
    let mut encoder = Encoder::with_capacity(text.len() + 16);
    json::parse(text, &mut encoder)?;
    Ok(encoder.finish())
}

/// Writes one value into its bytes, part by part.
///
/// Calls come in the order of the text: `begin_object`, then `name` and a value for each property, then `end_object`.
#[derive(Debug)]
pub struct Encoder {
    bytes: Vec<u8>,
    /// Where the arrays and objects begin that have not ended.
    open: Vec<Open>,
    /// Places of the names of all open objects, the innermost last.
    names: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Open {
    /// The place of the four bytes of its length.
    length_at: usize,
    /// How many names there were before it.
    names_before: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    pub fn new() -> Self {
        Self::with_capacity(64)
    }

    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.push(FORMAT);
        Self { bytes, open: Vec::new(), names: Vec::new() }
    }

    /// How many bytes were written so far.
    pub fn written(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the one value that was written.
    pub fn finish(self) -> Vec<u8> {
        debug_assert!(self.open.is_empty(), "every array and object was ended");
        self.bytes
    }

    /// Writes a value as it is. An encoded one is copied as a whole.
    pub fn value(&mut self, value: ValueRef<'_>) {
        let value = match value {
            ValueRef::Stored(view) => return self.bytes.extend_from_slice(view.bytes()),
            ValueRef::Built(value) => ValueRef::Built(value),
        };
        match value.node() {
            Node::Null => self.null(),
            Node::Bool(value) => self.bool(value),
            Node::Int64(number) => self.int64(number),
            Node::Double(number) => self.double(number),
            Node::String(text) => self.string(text),
            Node::Array(array) => {
                self.begin_array();
                array.iter().for_each(|element| self.value(element));
                self.end_array();
            }
            Node::Object(object) => {
                self.begin_object();
                for (name, value) in object.iter() {
                    self.name(name);
                    self.value(value);
                }
                self.end_object();
            }
            other => self.bson(other),
        }
    }

    /// Writes a value of a type that only BSON has.
    fn bson(&mut self, node: Node<'_>) {
        match node {
            Node::Int32(number) => self.fixed(tag::INT32, &number.to_le_bytes()),
            Node::Decimal128(bytes) => self.fixed(tag::DECIMAL128, bytes),
            Node::DateTime(time) => self.fixed(tag::DATE_TIME, &time.to_le_bytes()),
            Node::ObjectId(id) => self.fixed(tag::OBJECT_ID, id),
            Node::Timestamp(time) => self.fixed(tag::TIMESTAMP, &time.to_le_bytes()),
            Node::Binary { subtype, bytes } => {
                self.fixed(tag::BINARY, &[subtype]);
                self.block(bytes);
            }
            Node::Regex { pattern, options } => {
                self.bytes.push(tag::REGEX);
                self.block(pattern.as_bytes());
                self.block(options.as_bytes());
            }
            Node::JavaScript(text) => {
                self.bytes.push(tag::JAVASCRIPT);
                self.block(text.as_bytes());
            }
            Node::Symbol(text) => {
                self.bytes.push(tag::SYMBOL);
                self.block(text.as_bytes());
            }
            Node::MinKey => self.bytes.push(tag::MIN_KEY),
            Node::MaxKey => self.bytes.push(tag::MAX_KEY),
            _ => self.null(),
        }
    }

    /// Writes all properties of an encoded object into the one that was begun, as they are. None of the properties that
    /// are written beside them may have one of their names: that is not looked at.
    pub fn properties(&mut self, object: View<'_>) {
        self.bytes.extend_from_slice(object.property_bytes());
    }

    fn fixed(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(bytes);
    }

    fn block(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn begin(&mut self, tag: u8) {
        self.bytes.push(tag);
        self.open.push(Open { length_at: self.bytes.len(), names_before: self.names.len() });
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn end(&mut self) -> Option<Open> {
        let open = self.open.pop()?;
        let length = (self.bytes.len() - open.length_at - 4) as u32;
        self.bytes[open.length_at..open.length_at + 4].copy_from_slice(&length.to_le_bytes());
        Some(open)
    }

    /// Whether two of the innermost object's names are the same.
    fn has_duplicates(&self, names_before: usize) -> bool {
        let name = |(from, to): &(u32, u32)| &self.bytes[*from as usize..*to as usize];
        let mut rest = &self.names[names_before..];
        if rest.len() > FEW_PROPERTIES_MAX {
            let mut names: Vec<&[u8]> = rest.iter().map(name).collect();
            names.sort_unstable();
            return names.windows(2).any(|pair| pair[0] == pair[1]);
        }
        while let Some((first, others)) = rest.split_first() {
            if others.iter().any(|other| name(other) == name(first)) {
                return true;
            }
            rest = others;
        }
        false
    }

    /// Writes the object that has just ended once more, with the last value of each name.
    fn without_duplicates(&mut self, length_at: usize) {
        let start = length_at - 1;
        let mut whole = vec![FORMAT];
        whole.extend_from_slice(&self.bytes[start..]);
        // What an encoder writes is well formed; only names may repeat.
        let object: Object = match View::parse(&whole) {
            Ok(view) => view.properties().map(|(n, v)| (n.to_owned(), v.to_value())).collect(),
            Err(_) => return,
        };
        self.bytes.truncate(start);
        self.value(ValueRef::Built(&Value::Object(object)));
    }
}

impl Sink for Encoder {
    fn null(&mut self) {
        self.bytes.push(tag::NULL);
    }

    fn bool(&mut self, value: bool) {
        self.bytes.push(if value { tag::TRUE } else { tag::FALSE });
    }

    fn int64(&mut self, number: i64) {
        self.bytes.push(tag::INT64);
        self.varint(((number << 1) ^ (number >> 63)) as u64);
    }

    fn double(&mut self, number: f64) {
        self.fixed(tag::DOUBLE, &number.to_le_bytes());
    }

    fn string(&mut self, text: &str) {
        self.bytes.push(tag::STRING);
        self.block(text.as_bytes());
    }

    fn begin_array(&mut self) {
        self.begin(tag::ARRAY);
    }

    fn end_array(&mut self) {
        self.end();
    }

    fn begin_object(&mut self) {
        self.begin(tag::OBJECT);
    }

    fn name(&mut self, name: &str) {
        self.block(name.as_bytes());
        let end = self.bytes.len();
        self.names.push(((end - name.len()) as u32, end as u32));
    }

    fn end_object(&mut self) {
        let Some(open) = self.end() else { return };
        let duplicates = self.has_duplicates(open.names_before);
        self.names.truncate(open.names_before);
        if duplicates {
            self.without_duplicates(open.length_at);
        }
    }
}
