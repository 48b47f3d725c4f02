//! Partition keys of documents: one component for each path of the container, or none at all.

use bytes::Bytes;
use lazuli_engine::{Component, Error, KeyPart, KeySchema, KeyType, MapKind, Result};
use lazuli_value::{Node, Value, ValueRef};

use super::limits::KEY_BYTES_MAX;
use super::path::Path;
use super::reason::DocumentReason;

/// How effective partition keys are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// `Hash`, version 1.
    V1,
    /// `Hash`, version 2.
    V2,
    /// `MultiHash`: one hash for each level.
    Multi,
}

impl KeyKind {
    pub fn map(self) -> MapKind {
        match self {
            Self::V1 => MapKind::EpkV1,
            Self::V2 => MapKind::EpkV2,
            Self::Multi => MapKind::EpkMulti,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Multi => "multi",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::V1, Self::V2, Self::Multi].into_iter().find(|kind| kind.name() == name)
    }
}

/// The partition key of an item. Without components it is that of items which were written before there were any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionKey(pub Vec<Component>);

impl PartitionKey {
    /// The key that an item says. Fails with `BadKey` where a value cannot be a component.
    pub fn of(paths: &[Path], item: ValueRef<'_>) -> Result<Self> {
        let components = paths.iter().map(|path| component(path.find(item)));
        components.collect::<Result<_>>().map(Self)
    }

    /// A key of values as a request names them; an empty object stands for what is undefined.
    pub fn from_values(values: &[Value]) -> Result<Self> {
        let components = values.iter().map(|value| match value {
            Value::Object(object) if object.is_empty() => Ok(Component::Undefined),
            value => component(Some(value.into())),
        });
        components.collect::<Result<_>>().map(Self)
    }

    /// The values of the components; an undefined one is an empty object.
    pub fn values(&self) -> Vec<Value> {
        let value = |component: &Component| match component {
            Component::Undefined => Value::Object(Default::default()),
            Component::Null => Value::Null,
            Component::Bool(is) => Value::Bool(*is),
            Component::Number(number) => Value::number(*number).unwrap_or(Value::Double(*number)),
            Component::Text(text) => Value::String(text.clone()),
        };
        self.0.iter().map(value).collect()
    }

    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The parts of the key in the map. A key of fewer levels than the container has stands for a range, and is refused.
    pub(super) fn parts(&self, levels: usize) -> Result<Vec<KeyPart>> {
        let parts: Vec<KeyPart> = match self.0.is_empty() {
            true => vec![KeyPart::Bytes(Bytes::new()); levels],
            false => self.0.iter().map(Component::part).collect(),
        };
        if parts.len() != levels {
            let message = format!("a partition key of {levels} values, not {}", parts.len());
            return Err(Error::invalid(DocumentReason::BadKey, message));
        }
        check_sizes(&parts)?;
        Ok(parts)
    }

    /// The parts of a key that may have fewer levels than the container.
    pub(super) fn first_parts(&self, levels: usize) -> Result<Vec<KeyPart>> {
        if self.0.len() > levels || self.0.is_empty() {
            let message = format!("a partition key of up to {levels} values");
            return Err(Error::invalid(DocumentReason::BadKey, message));
        }
        let parts: Vec<KeyPart> = self.0.iter().map(Component::part).collect();
        check_sizes(&parts)?;
        Ok(parts)
    }

    /// The key again from its parts.
    pub(super) fn from_parts(parts: &[KeyPart]) -> Option<Self> {
        if parts.iter().all(|part| matches!(part, KeyPart::Bytes(bytes) if bytes.is_empty())) {
            return Some(Self::default());
        }
        parts.iter().map(Component::of).collect::<Option<_>>().map(Self)
    }
}

fn check_sizes(parts: &[KeyPart]) -> Result<()> {
    let bytes = |part: &KeyPart| match part {
        KeyPart::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    // Tag and end are not the caller's.
    if parts.iter().any(|part| bytes(part) > KEY_BYTES_MAX + 2) {
        let message = format!("a partition key value has at most {KEY_BYTES_MAX} bytes");
        return Err(Error::invalid(DocumentReason::KeyTooLarge, message));
    }
    Ok(())
}

fn component(value: Option<ValueRef<'_>>) -> Result<Component> {
    let Some(value) = value else { return Ok(Component::Undefined) };
    if let Some(number) = value.as_f64() {
        return Ok(Component::Number(number));
    }
    match value.node() {
        Node::Null => Ok(Component::Null),
        Node::Bool(is) => Ok(Component::Bool(is)),
        Node::String(text) => Ok(Component::Text(text.to_owned())),
        _ => {
            let message = "a partition key is a string, a number, a boolean or null";
            Err(Error::invalid(DocumentReason::BadKey, message))
        }
    }
}

/// The key schema of a container with so many levels.
pub(super) fn schema(levels: usize) -> Result<KeySchema> {
    KeySchema::new(vec![KeyType::Bytes; levels])
}
