//! Entities between file and service. Both have them as JSON with notes on types, so nothing is lost on the way.

use std::borrow::Cow;

use lazuli_azure::odata::{
    EdmType, JsonError, Metadata, Value, read_entity, write_property, write_text_property,
};
use lazuli_http::uri::percent_encode;

pub(super) const PARTITION_KEY: &str = "PartitionKey";
pub(super) const ROW_KEY: &str = "RowKey";
pub(super) const TIMESTAMP: &str = "Timestamp";

pub(super) type Properties<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// An entity to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entity {
    pub(super) partition: String,
    pub(super) row: String,
    /// All properties, the keys among them, as one JSON object.
    pub(super) body: Vec<u8>,
}

impl Entity {
    /// From a JSON object. The timestamp is left out: services make their own. The error is a sentence.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let mut properties = properties(text)?;
        properties.retain(|(name, _)| name != TIMESTAMP);
        let key = |wanted: &str| {
            let found = properties.iter().find(|(name, _)| name == wanted);
            match found {
                Some((_, Value::String(key))) => Ok(key.to_string()),
                Some(_) => Err(format!("{wanted} must be text")),
                None => Err(format!("there is no {wanted}")),
            }
        };
        let (partition, row) = (key(PARTITION_KEY)?, key(ROW_KEY)?);
        Ok(Self { partition, row, body: object(&properties) })
    }

    /// The path of this entity in its table, escaped.
    pub(super) fn path(&self, table: &str) -> String {
        let quote = |key: &str| percent_encode(&key.replace('\'', "''"));
        let (partition, row) = (quote(&self.partition), quote(&self.row));
        format!("/{table}({PARTITION_KEY}='{partition}',{ROW_KEY}='{row}')")
    }

    /// Whether this JSON object has the same properties, in any order.
    pub(super) fn is_same(&self, text: &[u8]) -> bool {
        let sorted = |body: &[u8]| {
            properties(body).map(|mut all| {
                all.sort_by(|one, other| one.0.cmp(&other.0));
                object(&all)
            })
        };
        let other = Self::read(text).map(|other| other.body);
        other.is_ok_and(|other| sorted(&other) == sorted(&self.body))
    }
}

/// The properties of an entity as a file or a service has it, in order.
pub(super) fn properties(text: &[u8]) -> Result<Properties<'_>, String> {
    read_entity(text).map_err(|error| match error {
        JsonError::Syntax => "not one flat JSON object".to_owned(),
        JsonError::TooManyMembers => "too many properties".to_owned(),
        JsonError::Duplicate(name) => format!("{name} stands there twice"),
        JsonError::UnknownType(name) => format!("{name} is no type"),
        JsonError::WrongValue(name) => format!("the value of {name} is not of its type"),
        JsonError::OutOfRange(name) => format!("the date of {name} is before the first one"),
    })
}

/// Properties as one JSON object on one line. A whole number that is a Double is noted as one: `1.0` says so to the
/// service, but many programs that a file passes through, and the emulator, write it as `1`.
pub(super) fn object(properties: &[(Cow<'_, str>, Value<'_>)]) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for (at, (name, value)) in properties.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        if matches!(value, Value::Double(number) if number.is_finite() && number.fract() == 0.0) {
            write_text_property(&mut out, &format!("{name}@odata.type"), EdmType::Double.name());
            out.push(b',');
        }
        write_property(&mut out, name, value, Metadata::Minimal);
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_keeps_its_types_and_loses_its_timestamp() {
        let text = br#"{"odata.etag":"x","PartitionKey":"p","RowKey":"r","Timestamp":"2024-01-01T00:00:00Z",
            "L@odata.type":"Edm.Int64","L":"1","D":1.0,"N":null}"#;
        let entity = Entity::read(text).unwrap();
        let expected = r#"{"PartitionKey":"p","RowKey":"r","L@odata.type":"Edm.Int64","L":"1","D@odata.type":"Edm.Double","D":1.0}"#;
        assert_eq!(String::from_utf8(entity.body.clone()).unwrap(), expected);
        assert!(entity.is_same(text));
        let other = br#"{"RowKey":"r","PartitionKey":"p","D":1.0,"L":1}"#;
        assert!(!entity.is_same(other), "another type is another entity");
    }

    #[test]
    fn what_is_no_entity_is_refused_with_a_sentence() {
        let refused = |text: &str| Entity::read(text.as_bytes()).unwrap_err();
        assert_eq!(refused("[]"), "not one flat JSON object");
        assert_eq!(refused(r#"{"RowKey":"r"}"#), "there is no PartitionKey");
        assert_eq!(refused(r#"{"PartitionKey":1,"RowKey":"r"}"#), "PartitionKey must be text");
    }

    #[test]
    fn keys_are_quoted_and_escaped_in_paths() {
        let text = r#"{"PartitionKey":"o'b ä","RowKey":""}"#;
        let path = Entity::read(text.as_bytes()).unwrap().path("t");
        assert_eq!(path, "/t(PartitionKey='o%27%27b%20%C3%A4',RowKey='')");
    }
}
