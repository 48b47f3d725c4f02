//! Keys, as programs have them.

use lazuli_sharded_sql::ColumnType;
use lazuli_shardmap::KeyPart;

use crate::error::{Error, Result};

/// A key of a map: one value, or one for each column of a composite key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Value(KeyPart),
    /// As PostgreSQL writes a value of the column's type.
    Text(String),
}

impl Key {
    /// A composite key, of keys of one column each.
    pub fn of(parts: impl IntoIterator<Item = Key>) -> Self {
        Self(parts.into_iter().flat_map(|key| key.0).collect())
    }

    /// The parts by the types of a map's key. A text is read as PostgreSQL would read it for that column, so dates, times and
    /// UUIDs can be given as texts.
    pub(crate) fn parts(&self, types: &[ColumnType]) -> Result<Vec<KeyPart>> {
        if self.0.len() != types.len() {
            let (have, want) = (self.0.len(), types.len());
            return Err(Error::Invalid(format!("the key has {have} parts, and the map's {want}")));
        }
        let part = |(part, column): (&Part, &ColumnType)| {
            let wrong =
                || Err(Error::Invalid(format!("a part of the key is no {}", column.name())));
            match part {
                Part::Text(text) => {
                    column.parse(text).map_err(|error| Error::Invalid(error.to_string()))
                }
                Part::Value(value) if value.key_type() == column.key_type() => Ok(value.clone()),
                Part::Value(_) => wrong(),
            }
        };
        self.0.iter().zip(types).map(part).collect()
    }
}

impl From<KeyPart> for Key {
    fn from(part: KeyPart) -> Self {
        Self(vec![Part::Value(part)])
    }
}

impl From<i64> for Key {
    fn from(value: i64) -> Self {
        KeyPart::Int64(value).into()
    }
}

impl From<i32> for Key {
    fn from(value: i32) -> Self {
        KeyPart::Int64(value.into()).into()
    }
}

impl From<bool> for Key {
    fn from(value: bool) -> Self {
        KeyPart::Bool(value).into()
    }
}

/// The bytes of a UUID.
impl From<[u8; 16]> for Key {
    fn from(value: [u8; 16]) -> Self {
        KeyPart::Uuid(value).into()
    }
}

impl From<&str> for Key {
    fn from(value: &str) -> Self {
        Self(vec![Part::Text(value.to_owned())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_take_the_types_of_their_map() {
        let int = [ColumnType::Int4];
        assert_eq!(Key::from(7).parts(&int).unwrap(), [KeyPart::Int64(7)]);
        assert_eq!(Key::from("7").parts(&int).unwrap(), [KeyPart::Int64(7)]);
        assert!(Key::from("x").parts(&int).is_err() && Key::from(true).parts(&int).is_err());
        let pair = [ColumnType::Text, ColumnType::Date];
        let key = Key::of([Key::from("acme"), Key::from("2000-01-02")]).parts(&pair).unwrap();
        assert_eq!(key[0], KeyPart::Text("acme".into()));
        assert!(Key::from("acme").parts(&pair).is_err());
    }
}
