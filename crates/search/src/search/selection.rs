//! `$select`: which fields of a document a client gets. Fields that are not retrievable are never among them.

use crate::definition::{Field, IndexDefinition};
use crate::error::{Result, SearchError};
use serde_json::{Map, Value};

/// The fields to be returned.
#[derive(Clone, Debug)]
pub struct Selection {
    fields: Vec<Selected>,
}

/// A field, and which of its subfields.
#[derive(Clone, Debug)]
struct Selected {
    name: String,
    fields: Vec<Selected>,
}

impl Selection {
    /// Reads a list of paths; nothing and `*` select all fields.
    pub fn parse(definition: &IndexDefinition, select: Option<&str>) -> Result<Selection> {
        let paths: Vec<&str> =
            select.unwrap_or("*").split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        if paths.is_empty() || paths.contains(&"*") {
            return Ok(Selection { fields: everything(&definition.fields) });
        }
        let mut fields = Vec::new();
        for path in paths {
            let names: Vec<&str> = path.split('/').collect();
            add(&mut fields, &definition.fields, &names).ok_or_else(|| {
                SearchError::invalid(format!(
                    "Invalid expression: Could not find a property named '{path}' on type 'search.document'."
                ))
            })?;
        }
        Ok(Selection { fields })
    }

    /// The selected part of a document. Fields that it lacks are null, as the service returns them.
    pub fn apply(&self, document: &Value) -> Map<String, Value> {
        project(&self.fields, document)
    }
}

fn everything(fields: &[Field]) -> Vec<Selected> {
    let visible = fields.iter().filter(|it| it.retrievable && it.stored);
    visible.map(|it| Selected { name: it.name.clone(), fields: everything(&it.fields) }).collect()
}

fn add(selected: &mut Vec<Selected>, fields: &[Field], names: &[&str]) -> Option<()> {
    let (name, rest) = names.split_first()?;
    let field = fields.iter().find(|it| it.name == *name && it.retrievable)?;
    let at = match selected.iter().position(|it| it.name == *name) {
        Some(at) => at,
        None => {
            selected.push(Selected { name: field.name.clone(), fields: Vec::new() });
            selected.len() - 1
        }
    };
    if rest.is_empty() {
        selected[at].fields = everything(&field.fields);
        return Some(());
    }
    add(&mut selected[at].fields, &field.fields, rest)
}

fn project(selected: &[Selected], value: &Value) -> Map<String, Value> {
    let mut projected = Map::new();
    for field in selected {
        let found = value.get(&field.name).unwrap_or(&Value::Null);
        let made = match found {
            _ if field.fields.is_empty() => found.clone(),
            Value::Object(_) => Value::Object(project(&field.fields, found)),
            Value::Array(items) => {
                let part = |item: &Value| Value::Object(project(&field.fields, item));
                Value::Array(items.iter().map(part).collect())
            }
            _ => Value::Null,
        };
        projected.insert(field.name.clone(), made);
    }
    projected
}
