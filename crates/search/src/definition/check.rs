//! Checks of documents against a definition, and of a definition against the one it replaces.

use super::{EdmType, Field, IndexDefinition};
use crate::error::{Result, SearchError};
use crate::filter::number_of;
use crate::limits;
use crate::value::{Point, parse_date_ms};
use serde_json::{Map, Value};

impl IndexDefinition {
    /// Checks a whole document: its key, its types, and that it has no property that is not a field.
    pub fn check_document(&self, document: &Value) -> Result<()> {
        let Value::Object(object) = document else {
            return Err(SearchError::invalid("a document must be an object"));
        };
        match object.get(self.key()) {
            Some(Value::String(key)) => check_key(key)?,
            _ => {
                return Err(SearchError::invalid(format!(
                    "The document key '{}' is missing or is not a string.",
                    self.key()
                )));
            }
        }
        let mut elements = 0;
        check_object(object, &self.fields, "", &mut elements)
    }

    /// Checks whether a definition may replace this one while the index keeps its documents: fields may be added, and
    /// of those that stay only what has no influence on what is indexed may change.
    pub fn check_change(&self, new: &IndexDefinition) -> Result<()> {
        check_fields(&self.fields, &new.fields, "")
    }
}

fn check_fields(old: &[Field], new: &[Field], prefix: &str) -> Result<()> {
    for field in old {
        let path = format!("{prefix}{}", field.name);
        let Some(other) = new.iter().find(|it| it.name == field.name) else {
            return Err(SearchError::invalid(format!(
                "Existing field '{path}' cannot be deleted."
            )));
        };
        let same = field.kind == other.kind
            && field.collection == other.collection
            && field.key == other.key
            && field.searchable == other.searchable
            && field.filterable == other.filterable
            && field.sortable == other.sortable
            && field.facetable == other.facetable
            && field.index_analyzer == other.index_analyzer
            && field.normalizer == other.normalizer
            && field.dimensions == other.dimensions;
        if !same {
            return Err(SearchError::invalid(format!(
                "Existing field '{path}' cannot be changed."
            )));
        }
        check_fields(&field.fields, &other.fields, &format!("{path}/"))?;
    }
    Ok(())
}

/// Checks a document's key: letters, digits, dash, underscore and equal sign.
fn check_key(key: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || "_-=".contains(c);
    if key.is_empty() || key.len() > limits::KEY_BYTES_MAX || !key.chars().all(good) {
        return Err(SearchError::invalid(format!(
            "Invalid document key: '{key}'. Keys can only contain letters, digits, underscore (_), dash (-), or equal \
             sign (=)."
        )));
    }
    if key.starts_with('_') {
        return Err(SearchError::invalid(format!(
            "Invalid document key: '{key}'. Keys cannot begin with an underscore."
        )));
    }
    Ok(())
}

fn check_object(
    object: &Map<String, Value>,
    fields: &[Field],
    prefix: &str,
    elements: &mut usize,
) -> Result<()> {
    for (name, value) in object {
        let Some(field) = fields.iter().find(|it| it.name == *name) else {
            return Err(SearchError::invalid(format!(
                "The property '{prefix}{name}' does not exist on type 'search.documentFields'. Make sure to only use \
                 property names that are defined by the type."
            )));
        };
        check_value(value, field, &format!("{prefix}{name}"), elements)?;
    }
    Ok(())
}

fn check_value(value: &Value, field: &Field, path: &str, elements: &mut usize) -> Result<()> {
    if let Some(dimensions) = field.dimensions {
        return check_vector(value, dimensions, path);
    }
    if !field.collection {
        return check_single(value, field, path, elements);
    }
    let Value::Array(items) = value else {
        if value.is_null() {
            return Ok(());
        }
        return Err(wrong(path, field, "a collection"));
    };
    for item in items {
        if field.kind == EdmType::Complex {
            *elements += 1;
            if *elements > limits::COLLECTION_ELEMENTS_MAX {
                return Err(SearchError::invalid(format!(
                    "The document has more than {} elements in its complex collections.",
                    limits::COLLECTION_ELEMENTS_MAX
                )));
            }
        }
        if item.is_null() {
            return Err(wrong(path, field, "a collection without null"));
        }
        check_single(item, field, path, elements)?;
    }
    Ok(())
}

fn check_single(value: &Value, field: &Field, path: &str, elements: &mut usize) -> Result<()> {
    if value.is_null() {
        return Ok(());
    }
    let good = match field.kind {
        EdmType::String => value.is_string(),
        EdmType::Boolean => value.is_boolean(),
        EdmType::Int32 => value.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
        EdmType::Int64 => value.as_i64().is_some(),
        EdmType::Double => number_of(value).is_some(),
        EdmType::DateTimeOffset => value.as_str().and_then(parse_date_ms).is_some(),
        EdmType::GeographyPoint => Point::from_json(value).is_some(),
        EdmType::Complex => {
            let Value::Object(object) = value else {
                return Err(wrong(path, field, "an object"));
            };
            return check_object(object, &field.fields, &format!("{path}/"), elements);
        }
        _ => value.is_number(),
    };
    if good { Ok(()) } else { Err(wrong(path, field, field.kind.name())) }
}

fn check_vector(value: &Value, dimensions: usize, path: &str) -> Result<()> {
    if value.is_null() {
        return Ok(());
    }
    let numbers = value.as_array().filter(|items| items.iter().all(Value::is_number));
    match numbers {
        Some(items) if items.len() == dimensions => Ok(()),
        Some(items) => Err(SearchError::invalid(format!(
            "The vector field '{path}' has {dimensions} dimensions, the given value has {}.",
            items.len()
        ))),
        None => Err(SearchError::invalid(format!("The vector field '{path}' needs numbers."))),
    }
}

fn wrong(path: &str, field: &Field, expected: &str) -> SearchError {
    SearchError::invalid(format!(
        "The value of the field '{path}' of type '{}' is not {expected}.",
        field.kind.name()
    ))
}
