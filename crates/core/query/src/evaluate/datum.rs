//! What an expression yields: a part of an item or of a constant, not copied, or a value that was computed.

use lazuli_value::{Value, ValueRef};

/// A defined value. What may be undefined is an `Option` of it.
#[derive(Clone, Debug)]
pub enum Datum<'a> {
    Ref(ValueRef<'a>),
    Owned(Value),
}

impl<'a> Datum<'a> {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Ref(value) => *value,
            Self::Owned(value) => ValueRef::Built(value),
        }
    }

    pub fn into_value(self) -> Value {
        match self {
            Self::Ref(value) => value.to_value(),
            Self::Owned(value) => value,
        }
    }

    /// The value of a property.
    pub fn get(self, name: &str) -> Option<Datum<'a>> {
        match self {
            Self::Ref(value) => value.get(name).map(Datum::Ref),
            Self::Owned(Value::Object(mut object)) => object.remove(name).map(Datum::Owned),
            Self::Owned(_) => None,
        }
    }

    /// An element of an array.
    pub fn at(self, place: usize) -> Option<Datum<'a>> {
        match self {
            Self::Ref(value) => value.at(place).map(Datum::Ref),
            Self::Owned(Value::Array(mut elements)) if place < elements.len() => {
                Some(Datum::Owned(elements.swap_remove(place)))
            }
            Self::Owned(_) => None,
        }
    }
}

impl From<Value> for Datum<'_> {
    fn from(value: Value) -> Self {
        Self::Owned(value)
    }
}

impl<'a> From<ValueRef<'a>> for Datum<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        Self::Ref(value)
    }
}
