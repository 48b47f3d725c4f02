//! Patches: parts of an item changed in place, one operation after another, all or none.

use std::sync::Arc;

use lazuli_engine::{Error, Result};
use lazuli_value::{Number, Value, ValueRef};

use super::definition::Definition;
use super::item::{Body, Document, SYSTEM_NAMES};
use super::limits::PATCH_OPERATIONS_MAX;
use super::operation::Update;
use super::path::Step;
use super::reason::DocumentReason;

/// Steps to the place of an operation: names of properties, places in arrays, `-` for the end of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchPath(Vec<String>);

#[derive(Clone, Debug, PartialEq)]
pub enum PatchOperation {
    /// Into an array before the element there, or as a property, new or not.
    Add {
        path: PatchPath,
        value: Value,
    },
    /// In the place of the element there, or as a property, new or not.
    Set {
        path: PatchPath,
        value: Value,
    },
    /// In the place of what must be there.
    Replace {
        path: PatchPath,
        value: Value,
    },
    Remove {
        path: PatchPath,
    },
    /// Adds to a number; what is not there becomes the number.
    Increment {
        path: PatchPath,
        by: Value,
    },
    Move {
        from: PatchPath,
        path: PatchPath,
    },
}

/// Whether a patch is made of an item at all. Runs in the lane, perhaps more than once.
pub type PatchCondition = Arc<dyn Fn(&Document) -> Result<bool> + Send + Sync>;

impl PatchPath {
    /// `/a/b/0` or `/a/-`; `~1` stands for a slash in a name, `~0` for a tilde.
    pub fn parse(text: &str) -> Result<Self> {
        let steps = text.strip_prefix('/').filter(|steps| !steps.is_empty());
        let steps = steps.ok_or_else(|| refused(format!("{text:?} is no path of a patch")))?;
        let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
        Ok(Self(steps.split('/').map(unescaped).collect()))
    }

    fn is_above(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

/// The update that makes these operations.
pub fn patch(
    operations: Vec<PatchOperation>,
    condition: Option<PatchCondition>,
    definition: &Definition,
) -> Result<Update> {
    if operations.is_empty() || operations.len() > PATCH_OPERATIONS_MAX {
        let message = format!("a patch has 1 to {PATCH_OPERATIONS_MAX} operations");
        return Err(refused(message));
    }
    for operation in &operations {
        check_paths(operation, definition)?;
    }
    Ok(Arc::new(move |document: &Document| {
        if let Some(condition) = &condition
            && !condition(document)?
        {
            let message = "the condition of the patch does not hold";
            return Err(Error::precondition(DocumentReason::PatchCondition, message));
        }
        let mut value = document.body()?.to_value();
        for operation in &operations {
            apply(&mut value, operation)?;
        }
        Body::from_value(&value)
    }))
}

fn refused(message: impl std::fmt::Display) -> Error {
    Error::invalid(DocumentReason::PatchRefused, message)
}

/// Refuses to touch what no patch may change: the id, the partition key and the names of the service.
fn check_paths(operation: &PatchOperation, definition: &Definition) -> Result<()> {
    use PatchOperation::{Add, Increment, Move, Remove, Replace, Set};
    let paths = match operation {
        Add { path, .. }
        | Set { path, .. }
        | Replace { path, .. }
        | Remove { path }
        | Increment { path, .. } => vec![path],
        Move { from, path } => {
            if from.is_above(path) {
                return Err(refused("nothing can be moved into itself"));
            }
            vec![from, path]
        }
    };
    let name = |step: &Step| match step {
        Step::Name(name) => name.clone(),
        Step::Element => "[]".to_owned(),
    };
    let keys = definition.key_paths.iter();
    let keys = keys.map(|path| PatchPath(path.steps().iter().map(name).collect()));
    let fixed: Vec<PatchPath> = keys.chain([PatchPath(vec!["id".into()])]).collect();
    for path in paths {
        let is_system = path.0.first().is_some_and(|name| SYSTEM_NAMES.contains(&name.as_str()));
        if is_system || fixed.iter().any(|one| path.is_above(one) || one.is_above(path)) {
            return Err(refused(format!("/{} cannot be changed", path.0.join("/"))));
        }
    }
    Ok(())
}

fn apply(whole: &mut Value, operation: &PatchOperation) -> Result<()> {
    match operation {
        PatchOperation::Add { path, value } => put(whole, path, value.clone(), true),
        PatchOperation::Set { path, value } => put(whole, path, value.clone(), false),
        PatchOperation::Replace { path, value } => {
            *find(whole, &path.0).ok_or_else(|| nothing(path))? = value.clone();
            Ok(())
        }
        PatchOperation::Remove { path } => take(whole, path).map(drop),
        PatchOperation::Increment { path, by } => match find(whole, &path.0) {
            Some(there) => {
                *there = sum(there, by)?;
                Ok(())
            }
            None => {
                sum(by, &Value::Int64(0))?;
                put(whole, path, by.clone(), false)
            }
        },
        PatchOperation::Move { from, path } => {
            let value = take(whole, from)?;
            put(whole, path, value, true)
        }
    }
}

fn nothing(path: &PatchPath) -> Error {
    refused(format!("there is nothing at /{}", path.0.join("/")))
}

fn find<'a>(value: &'a mut Value, steps: &[String]) -> Option<&'a mut Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    let inside = match value {
        Value::Object(object) => object.get_mut(step)?,
        Value::Array(elements) => elements.get_mut(index(step)?)?,
        _ => return None,
    };
    find(inside, rest)
}

/// A place in an array, written as a number is.
fn index(step: &str) -> Option<usize> {
    step.parse().ok().filter(|index: &usize| index.to_string() == step)
}

/// The value that holds the last step, and that step.
fn parent<'a, 'p>(
    whole: &'a mut Value,
    path: &'p PatchPath,
) -> Result<(&'a mut Value, &'p String)> {
    let (last, above) = path.0.split_last().ok_or_else(|| nothing(path))?;
    Ok((find(whole, above).ok_or_else(|| nothing(path))?, last))
}

fn put(whole: &mut Value, path: &PatchPath, value: Value, inserts: bool) -> Result<()> {
    match parent(whole, path)? {
        (Value::Object(object), name) => {
            object.insert(name.clone(), value);
            Ok(())
        }
        (Value::Array(elements), step) => {
            let length = elements.len();
            let at = if step == "-" { Some(length) } else { index(step) };
            match at.filter(|at| *at <= length) {
                Some(at) if at == length || inserts => elements.insert(at, value),
                Some(at) => elements[at] = value,
                None => return Err(nothing(path)),
            }
            Ok(())
        }
        _ => Err(nothing(path)),
    }
}

fn take(whole: &mut Value, path: &PatchPath) -> Result<Value> {
    let taken = match parent(whole, path)? {
        (Value::Object(object), name) => object.remove(name),
        (Value::Array(elements), step) => {
            index(step).filter(|at| *at < elements.len()).map(|at| elements.remove(at))
        }
        _ => None,
    };
    taken.ok_or_else(|| nothing(path))
}

fn sum(one: &Value, two: &Value) -> Result<Value> {
    if let (Value::Int64(one), Value::Int64(two)) = (one, two)
        && let Some(sum) = one.checked_add(*two)
    {
        return Ok(Value::Int64(sum));
    }
    let number = |value| ValueRef::from(value).as_number().map(Number::nearest);
    match (number(one), number(two)) {
        (Some(one), Some(two)) if (one + two).is_finite() => Ok(Value::Double(one + two)),
        _ => Err(refused("only numbers can be added to numbers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PatchPath {
        PatchPath::parse(text).unwrap()
    }

    fn value(text: &str) -> Value {
        Value::from_json(text.as_bytes()).unwrap()
    }

    fn applied(json: &str, operation: PatchOperation) -> Option<String> {
        let mut whole = value(json);
        apply(&mut whole, &operation).ok().map(|()| whole.to_json())
    }

    #[test]
    fn operations_do_what_the_service_does() {
        use PatchOperation::{Add, Increment, Move, Remove, Replace, Set};
        let json = r#"{"a":{"b":1},"t":[1,2]}"#;
        let add = |at, one| Add { path: path(at), value: value(one) };
        let set = |at, one| Set { path: path(at), value: value(one) };
        let cases = [
            (add("/a/c", "2"), Some(r#"{"a":{"b":1,"c":2},"t":[1,2]}"#)),
            (add("/t/0", "0"), Some(r#"{"a":{"b":1},"t":[0,1,2]}"#)),
            (add("/t/-", "3"), Some(r#"{"a":{"b":1},"t":[1,2,3]}"#)),
            (add("/t/3", "3"), None),
            (add("/x/y", "3"), None),
            (set("/t/0", "0"), Some(r#"{"a":{"b":1},"t":[0,2]}"#)),
            (set("/t/2", "3"), Some(r#"{"a":{"b":1},"t":[1,2,3]}"#)),
            (Replace { path: path("/a/b"), value: value("9") }, Some(r#"{"a":{"b":9},"t":[1,2]}"#)),
            (Replace { path: path("/a/x"), value: value("9") }, None),
            (Remove { path: path("/a/b") }, Some(r#"{"a":{},"t":[1,2]}"#)),
            (Remove { path: path("/t/1") }, Some(r#"{"a":{"b":1},"t":[1]}"#)),
            (Remove { path: path("/t/01") }, None),
            (Increment { path: path("/a/b"), by: value("2") }, Some(r#"{"a":{"b":3},"t":[1,2]}"#)),
            (
                Increment { path: path("/a/b"), by: value("0.5") },
                Some(r#"{"a":{"b":1.5},"t":[1,2]}"#),
            ),
            (
                Increment { path: path("/n"), by: value("5") },
                Some(r#"{"a":{"b":1},"t":[1,2],"n":5}"#),
            ),
            (Increment { path: path("/t"), by: value("5") }, None),
            (Increment { path: path("/a/b"), by: value("\"x\"") }, None),
            (Move { from: path("/a/b"), path: path("/c") }, Some(r#"{"a":{},"t":[1,2],"c":1}"#)),
        ];
        for (operation, expected) in cases {
            let shown = format!("{operation:?}");
            assert_eq!(applied(json, operation).as_deref(), expected, "{shown}");
        }
        assert_eq!(path("/a~1b/~01"), PatchPath(vec!["a/b".into(), "~1".into()]));
        assert!(PatchPath::parse("").is_err() && PatchPath::parse("a").is_err());
    }
}
