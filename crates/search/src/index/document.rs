//! From JSON documents to entries of the inverted index.

use super::schema::{Physical, PhysicalLeaf};
use super::vectors;
use crate::analysis::Normalizer;
use crate::definition::{EdmType, IndexDefinition};
use crate::error::{Result, SearchError};
use crate::filter::Evaluator;
use crate::limits;
use crate::value::{Point, parse_date_ms};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tantivy::TantivyDocument;

/// One change of the documents of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentChange {
    /// The whole document as JSON; one with the same key is replaced.
    Upsert {
        document: Arc<str>,
    },
    Delete {
        key: String,
    },
}

/// Makes entries of documents.
pub(super) struct Entries {
    physical: Arc<Physical>,
    key: String,
    normalizers: BTreeMap<String, Arc<Normalizer>>,
}

impl Entries {
    pub(super) fn new(definition: &IndexDefinition, physical: Arc<Physical>) -> Entries {
        let normalizers = Evaluator::new(definition).into_normalizers();
        Entries { physical, key: definition.key().to_owned(), normalizers }
    }

    /// Key and entry of a document.
    pub(super) fn entry(&self, json: &str) -> Result<(String, TantivyDocument)> {
        let document: Value = serde_json::from_str(json)
            .map_err(|error| SearchError::invalid(format!("a document is not JSON: {error}")))?;
        let key = document.get(&self.key).and_then(Value::as_str);
        let key = key.ok_or_else(|| SearchError::invalid("a document has no key"))?.to_owned();
        let mut entry = TantivyDocument::new();
        entry.add_text(self.physical.key, &key);
        entry.add_text(self.physical.source, json);
        for (path, leaf) in &self.physical.leaves {
            let normalizer = self.normalizers.get(path).map(Arc::as_ref);
            let names: Vec<&str> = path.split('/').collect();
            if let Some(field) = leaf.vector {
                let mut vector = Vec::new();
                for_each_value(&document, &names, &mut |value| {
                    vector.extend(value.as_f64().map(|it| it as f32));
                });
                if !vector.is_empty() {
                    entry.add_custom(field, &vectors::to_bytes(&vector));
                }
                continue;
            }
            for_each_value(&document, &names, &mut |value| {
                add_value(&mut entry, leaf, normalizer, value);
            });
        }
        Ok((key, entry))
    }
}

/// Calls a function with every value that a path leads to, through all collections on the way.
pub(crate) fn for_each_value<'a>(
    value: &'a Value,
    names: &[&str],
    call: &mut impl FnMut(&'a Value),
) {
    match (value, names) {
        (Value::Null, _) => {}
        (Value::Array(items), _) => {
            for item in items {
                for_each_value(item, names, call);
            }
        }
        (_, []) => call(value),
        (Value::Object(object), [name, rest @ ..]) => {
            if let Some(inner) = object.get(*name) {
                for_each_value(inner, rest, call);
            }
        }
        _ => {}
    }
}

fn add_value(
    entry: &mut TantivyDocument,
    leaf: &PhysicalLeaf,
    normalizer: Option<&Normalizer>,
    value: &Value,
) {
    if let (Some(field), Some(text)) = (leaf.terms, value.as_str()) {
        entry.add_text(field, text);
    }
    if let (Some(x), Some(y)) = (leaf.longitude, leaf.latitude)
        && let Some(point) = Point::from_json(value)
    {
        entry.add_f64(x, point.longitude);
        entry.add_f64(y, point.latitude);
    }
    let Some(field) = leaf.values else { return };
    match leaf.leaf.kind {
        EdmType::String => {
            let Some(text) = value.as_str() else { return };
            let text = normalizer.map_or_else(|| text.to_owned(), |it| it.normalize(text));
            if text.len() <= limits::TERM_BYTES_MAX {
                entry.add_text(field, text);
            }
        }
        EdmType::Int32 | EdmType::Int64 => {
            if let Some(number) = value.as_i64() {
                entry.add_i64(field, number);
            }
        }
        EdmType::DateTimeOffset => {
            if let Some(ms) = value.as_str().and_then(parse_date_ms) {
                entry.add_i64(field, ms);
            }
        }
        EdmType::Double => {
            if let Some(number) = crate::filter::number_of(value) {
                entry.add_f64(field, number);
            }
        }
        EdmType::Boolean => {
            if let Some(truth) = value.as_bool() {
                entry.add_i64(field, i64::from(truth));
            }
        }
        _ => {}
    }
}
