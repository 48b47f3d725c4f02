//! One way to look at a value, in memory or in its bytes.

use crate::view::{View, ViewElements, ViewProperties};
use crate::{Number, Object, Value};

/// A value that is read and not owned: in memory, or encoded.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    Stored(View<'a>),
    Built(&'a Value),
}

/// What a value is, decoded one level deep.
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    Null,
    Bool(bool),
    Int64(i64),
    Double(f64),
    String(&'a str),
    Array(ArrayRef<'a>),
    Object(ObjectRef<'a>),
    Int32(i32),
    Decimal128(&'a [u8; 16]),
    DateTime(i64),
    ObjectId(&'a [u8; 12]),
    Binary { subtype: u8, bytes: &'a [u8] },
    Timestamp(u64),
    Regex { pattern: &'a str, options: &'a str },
    JavaScript(&'a str),
    Symbol(&'a str),
    MinKey,
    MaxKey,
}

/// Types as comparison tells them apart: all numbers are one, and so are strings and symbols.
/// They are declared in the order in which values of different kinds sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    MinKey,
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    Binary,
    ObjectId,
    DateTime,
    Timestamp,
    Regex,
    JavaScript,
    MaxKey,
}

/// The elements of an array.
#[derive(Clone, Copy, Debug)]
pub enum ArrayRef<'a> {
    Stored(View<'a>),
    Built(&'a [Value]),
}

/// The properties of an object.
#[derive(Clone, Copy, Debug)]
pub enum ObjectRef<'a> {
    Stored(View<'a>),
    Built(&'a Object),
}

impl<'a> From<View<'a>> for ValueRef<'a> {
    fn from(view: View<'a>) -> Self {
        Self::Stored(view)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Built(value)
    }
}

impl<'a> ValueRef<'a> {
    pub fn node(self) -> Node<'a> {
        match self {
            Self::Stored(view) => view.node(),
            Self::Built(value) => built(value),
        }
    }

    pub fn kind(self) -> Kind {
        self.node().kind()
    }

    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        match self {
            Self::Stored(view) => view.get(name).map(Self::Stored),
            Self::Built(Value::Object(object)) => object.get(name).map(Self::Built),
            Self::Built(_) => None,
        }
    }

    pub fn at(self, place: usize) -> Option<ValueRef<'a>> {
        match self {
            Self::Stored(view) => view.at(place).map(Self::Stored),
            Self::Built(Value::Array(elements)) => elements.get(place).map(Self::Built),
            Self::Built(_) => None,
        }
    }

    pub fn as_bool(self) -> Option<bool> {
        match self.node() {
            Node::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_str(self) -> Option<&'a str> {
        match self.node() {
            Node::String(text) | Node::Symbol(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_number(self) -> Option<Number<'a>> {
        self.node().as_number()
    }

    /// The number nearest to the value's, if it is a number of any type.
    pub fn as_f64(self) -> Option<f64> {
        self.as_number().map(Number::nearest)
    }

    pub fn as_array(self) -> Option<ArrayRef<'a>> {
        match self.node() {
            Node::Array(array) => Some(array),
            _ => None,
        }
    }

    pub fn as_object(self) -> Option<ObjectRef<'a>> {
        match self.node() {
            Node::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn is_null(self) -> bool {
        matches!(self.node(), Node::Null)
    }

    pub fn to_value(self) -> Value {
        match self {
            Self::Stored(view) => owned(view.node()),
            Self::Built(value) => value.clone(),
        }
    }

    pub fn to_json(self) -> String {
        let bytes = match self {
            // Quotes, colons and commas take more than the lengths that stand for them.
            Self::Stored(view) => view.bytes().len() + view.bytes().len() / 4,
            Self::Built(_) => 0,
        };
        let mut text = String::with_capacity(bytes);
        crate::json::write(self, &mut text);
        text
    }
}

impl<'a> Node<'a> {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int64(_) | Self::Double(_) | Self::Int32(_) | Self::Decimal128(_) => Kind::Number,
            Self::String(_) | Self::Symbol(_) => Kind::String,
            Self::Array(_) => Kind::Array,
            Self::Object(_) => Kind::Object,
            Self::DateTime(_) => Kind::DateTime,
            Self::ObjectId(_) => Kind::ObjectId,
            Self::Binary { .. } => Kind::Binary,
            Self::Timestamp(_) => Kind::Timestamp,
            Self::Regex { .. } => Kind::Regex,
            Self::JavaScript(_) => Kind::JavaScript,
            Self::MinKey => Kind::MinKey,
            Self::MaxKey => Kind::MaxKey,
        }
    }

    pub fn as_number(&self) -> Option<Number<'a>> {
        match self {
            Self::Int64(number) => Some(Number::Int(*number)),
            Self::Int32(number) => Some(Number::Int(i64::from(*number))),
            Self::Double(number) => Some(Number::Double(*number)),
            Self::Decimal128(bytes) => Some(Number::Decimal(bytes)),
            _ => None,
        }
    }
}

fn built(value: &Value) -> Node<'_> {
    match value {
        Value::Null => Node::Null,
        Value::Bool(value) => Node::Bool(*value),
        Value::Int64(number) => Node::Int64(*number),
        Value::Double(number) => Node::Double(*number),
        Value::String(text) => Node::String(text),
        Value::Array(elements) => Node::Array(ArrayRef::Built(elements)),
        Value::Object(object) => Node::Object(ObjectRef::Built(object)),
        Value::Int32(number) => Node::Int32(*number),
        Value::Decimal128(bytes) => Node::Decimal128(bytes),
        Value::DateTime(time) => Node::DateTime(*time),
        Value::ObjectId(id) => Node::ObjectId(id),
        Value::Binary { subtype, bytes } => Node::Binary { subtype: *subtype, bytes },
        Value::Timestamp(time) => Node::Timestamp(*time),
        Value::Regex { pattern, options } => Node::Regex { pattern, options },
        Value::JavaScript(text) => Node::JavaScript(text),
        Value::Symbol(text) => Node::Symbol(text),
        Value::MinKey => Node::MinKey,
        Value::MaxKey => Node::MaxKey,
    }
}

fn owned(node: Node<'_>) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => Value::Bool(value),
        Node::Int64(number) => Value::Int64(number),
        Node::Double(number) => Value::Double(number),
        Node::String(text) => Value::String(text.to_owned()),
        Node::Array(array) => Value::Array(array.iter().map(ValueRef::to_value).collect()),
        Node::Object(object) => Value::Object(object.to_object()),
        Node::Int32(number) => Value::Int32(number),
        Node::Decimal128(bytes) => Value::Decimal128(*bytes),
        Node::DateTime(time) => Value::DateTime(time),
        Node::ObjectId(id) => Value::ObjectId(*id),
        Node::Binary { subtype, bytes } => Value::Binary { subtype, bytes: bytes.to_vec() },
        Node::Timestamp(time) => Value::Timestamp(time),
        Node::Regex { pattern, options } => {
            Value::Regex { pattern: pattern.to_owned(), options: options.to_owned() }
        }
        Node::JavaScript(text) => Value::JavaScript(text.to_owned()),
        Node::Symbol(text) => Value::Symbol(text.to_owned()),
        Node::MinKey => Value::MinKey,
        Node::MaxKey => Value::MaxKey,
    }
}

impl<'a> ArrayRef<'a> {
    pub fn iter(self) -> Elements<'a> {
        match self {
            Self::Stored(view) => Elements::Stored(view.elements()),
            Self::Built(elements) => Elements::Built(elements.iter()),
        }
    }

    /// The number of elements. An encoded array is walked through for it.
    pub fn len(self) -> usize {
        match self {
            Self::Stored(view) => view.elements().count(),
            Self::Built(elements) => elements.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    pub fn get(self, place: usize) -> Option<ValueRef<'a>> {
        match self {
            Self::Stored(view) => view.at(place).map(ValueRef::Stored),
            Self::Built(elements) => elements.get(place).map(ValueRef::Built),
        }
    }
}

impl<'a> ObjectRef<'a> {
    pub fn iter(self) -> Properties<'a> {
        match self {
            Self::Stored(view) => Properties::Stored(view.properties()),
            Self::Built(object) => Properties::Built(object.iter()),
        }
    }

    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        match self {
            Self::Stored(view) => view.get(name).map(ValueRef::Stored),
            Self::Built(object) => object.get(name).map(ValueRef::Built),
        }
    }

    pub fn to_object(self) -> Object {
        match self {
            Self::Built(object) => object.clone(),
            Self::Stored(view) => {
                view.properties().map(|(name, value)| (name.to_owned(), value.to_value())).collect()
            }
        }
    }
}

/// Iterates over the elements of an array.
#[derive(Clone, Debug)]
pub enum Elements<'a> {
    Stored(ViewElements<'a>),
    Built(std::slice::Iter<'a, Value>),
}

impl<'a> Iterator for Elements<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        match self {
            Self::Stored(elements) => elements.next().map(ValueRef::Stored),
            Self::Built(elements) => elements.next().map(ValueRef::Built),
        }
    }
}

/// Iterates over the properties of an object, in their order.
#[derive(Clone, Debug)]
pub enum Properties<'a> {
    Stored(ViewProperties<'a>),
    Built(std::slice::Iter<'a, (String, Value)>),
}

impl<'a> Iterator for Properties<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Stored(properties) => {
                properties.next().map(|(name, value)| (name, ValueRef::Stored(value)))
            }
            Self::Built(properties) => {
                properties.next().map(|(name, value)| (name.as_str(), ValueRef::Built(value)))
            }
        }
    }
}
