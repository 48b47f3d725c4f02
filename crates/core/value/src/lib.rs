//! Typed values of documents: the types of JSON and BSON, their bytes on disk, and their order.
//!
//! - [`Value`] is a value in memory, [`View`] one in its bytes, and [`ValueRef`] either of them, read through [`Node`].
//! - `json/` reads and writes JSON text, `bson.rs` BSON; `encode.rs` and `view.rs` are the bytes on disk
//!   (`docs/formats/document.md`).
//! - `order.rs` compares values, `order_key.rs` makes bytes that sort as they do, for index entries and continuations.
//!
//! An absent value ("undefined" in the query language) is no [`Value`]: whatever may be absent is an `Option<Value>`.

pub mod bson;
mod decimal;
mod encode;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod json;
pub mod limits;
mod node;
mod number;
mod object;
mod order;
mod order_key;
mod view;

pub use encode::{Encoder, encode_json};
pub use error::ReadError;
pub use node::{ArrayRef, Kind, Node, ObjectRef, ValueRef};
pub use number::Number;
pub use object::Object;
pub use order::{compare, compare_in_kind, equal, equal_in_kind};
pub use order_key::{
    canonical, canonical_hash, key_is_cut, kind_bounds, order_key, order_key_length,
    string_prefix_key, undefined_key,
};
pub use view::View;

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

impl Value {
    /// A computed number: whole ones that a double holds exactly become integers, so that they are written as `10` and
    /// not as `10.0`. A result that is no finite number is no value.
    pub fn number(number: f64) -> Option<Self> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if !number.is_finite() {
            return None;
        }
        let whole = number.trunc() == number && number.abs() < EXACT;
        let negative_zero = number == 0.0 && number.is_sign_negative();
        if whole && !negative_zero {
            return Some(Self::Int64(number as i64));
        }
        Some(if negative_zero { Self::Int64(0) } else { Self::Double(number) })
    }

    /// The value of a JSON text.
    pub fn from_json(text: &[u8]) -> Result<Self, ReadError> {
        json::read(text)
    }

    pub fn to_json(&self) -> String {
        ValueRef::from(self).to_json()
    }

    /// The value as it is stored; [`View::parse`] reads it.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.value(self.into());
        encoder.finish()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int64(number)
    }
}
