//! Partial updates as clients write them: a list of operations on paths of an item, and a condition that it must meet.

use std::sync::Arc;

use lazuli_shapes::document::{
    Definition, Document, Operation, PatchCondition, PatchOperation, PatchPath, patch,
};
use lazuli_value::Value;

use crate::condition;
use crate::error::{Fault, Result};
use crate::limits::PATCH_OPERATIONS_MAX;

/// What clients send.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Patch {
    operations: Vec<PatchOperation>,
    /// As in `from c where c.n = 1`.
    condition: Option<String>,
}

impl Patch {
    /// Reads `[…]` or `{"operations": […], "condition": "…"}`.
    pub(crate) fn parse(body: Value) -> Result<Self> {
        let (operations, condition) = match body {
            Value::Array(operations) => (operations, None),
            Value::Object(mut body) => {
                let condition = match body.remove("condition") {
                    None | Some(Value::Null) => None,
                    Some(Value::String(text)) if text.is_empty() => None,
                    Some(Value::String(text)) => Some(text),
                    Some(_) => return Err(bad("the condition must be a text")),
                };
                match body.remove("operations") {
                    Some(Value::Array(operations)) => (operations, condition),
                    _ => return Err(bad("there must be an array 'operations'")),
                }
            }
            _ => return Err(bad("the body must be an array or an object")),
        };
        if operations.is_empty() || operations.len() > PATCH_OPERATIONS_MAX {
            return Err(bad(&format!(
                "there must be 1 to {PATCH_OPERATIONS_MAX} operations, and there are {}",
                operations.len()
            )));
        }
        let operations = operations.into_iter().map(operation).collect::<Result<_>>()?;
        Ok(Self { operations, condition })
    }

    /// As an operation on an item of a container.
    pub(crate) fn into_operation(self, id: &str, definition: &Definition) -> Result<Operation> {
        let condition = match self.condition.as_deref() {
            None => None,
            Some(text) => {
                let condition = condition::parse(text)?;
                let holds = move |document: &Document| Ok(condition.holds(&document.value()?));
                Some(Arc::new(holds) as PatchCondition)
            }
        };
        Ok(Operation::update(id, patch(self.operations, condition, definition)?))
    }
}

fn bad(what: &str) -> Fault {
    Fault::bad_request(format!("The patch request is invalid: {what}."))
}

fn operation(value: Value) -> Result<PatchOperation> {
    let Value::Object(mut operation) = value else {
        return Err(bad("an operation must be an object"));
    };
    let Some(Value::String(name)) = operation.remove("op") else {
        return Err(bad("an operation must have a text 'op'"));
    };
    let mut path_of = |name: &str| match operation.remove(name) {
        Some(Value::String(text)) => Ok(PatchPath::parse(&text)?),
        _ => Err(bad(&format!("an operation must have a text '{name}'"))),
    };
    let path = path_of("path")?;
    let from = if name.eq_ignore_ascii_case("move") { Some(path_of("from")?) } else { None };
    let value = operation.remove("value");
    let need = |value: Option<Value>| value.ok_or_else(|| bad("the operation needs a 'value'"));
    Ok(match (name.to_ascii_lowercase().as_str(), from) {
        ("add", _) => PatchOperation::Add { path, value: need(value)? },
        ("set", _) => PatchOperation::Set { path, value: need(value)? },
        ("replace", _) => PatchOperation::Replace { path, value: need(value)? },
        ("remove", _) => PatchOperation::Remove { path },
        ("incr" | "increment", _) => PatchOperation::Increment { path, by: need(value)? },
        ("move", Some(from)) => PatchOperation::Move { from, path },
        _ => return Err(bad("the 'op' is none of add, set, replace, remove, incr, move")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn both_forms_of_the_body_are_read() {
        let body = r#"{"operations":[{"op":"add","path":"/a","value":1}],"condition":"from c"}"#;
        let patch = Patch::parse(json(body)).unwrap();
        assert_eq!(patch.condition.as_deref(), Some("from c"));
        let path = PatchPath::parse("/a").unwrap();
        assert_eq!(patch.operations, [PatchOperation::Add { path, value: Value::Int64(1) }]);
        let moved = Patch::parse(json(r#"[{"op":"move","path":"/a","from":"/b"}]"#)).unwrap();
        assert!(matches!(moved.operations[0], PatchOperation::Move { .. }));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let eleven = [r#"{"op":"remove","path":"/a"}"#; 11].join(",");
        for bad in [
            "1",
            "[]",
            "{}",
            "[1]",
            r#"[{"op":"x","path":"/a"}]"#,
            r#"[{"op":"set","path":"/a"}]"#,
            r#"[{"op":"move","path":"/a"}]"#,
            r#"[{"op":"remove","path":"a"}]"#,
            r#"[{"op":"remove","path":1}]"#,
            r#"{"operations":[{"op":"remove","path":"/a"}],"condition":1}"#,
            &format!("[{eleven}]"),
        ] {
            assert!(Patch::parse(json(bad)).is_err(), "{bad}");
        }
    }
}
