//! Partition keys: typed parts, and bytes that sort as the parts do.

/// The type of one part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    Int32,
    Int64,
    Uuid,
    Bytes,
    Text,
    DateTime,
    Bool,
}

/// The types of a key's parts, in order; more than one makes a composite key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySchema(pub Vec<KeyType>);
