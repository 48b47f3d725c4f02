//! Partial updates: a list of operations on paths of an item, all of them or none.

use lazuli_value::Value;

use crate::error::{Fault, Result};
use crate::limits::PATCH_OPERATIONS_MAX;

/// What clients send: operations, and a condition that the item must meet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Patch {
    pub(crate) operations: Vec<Change>,
    /// As in `from c where c.n = 1`.
    pub(crate) condition: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    act: Act,
    path: Path,
}

#[derive(Clone, Debug, PartialEq)]
enum Act {
    Add(Value),
    Set(Value),
    Replace(Value),
    Remove,
    Increment(Value),
    Move { from: Path },
}

type Path = Vec<String>;

/// The deepest path.
const PATH_DEPTH_MAX: usize = 128;
/// What the service itself writes into items.
const SYSTEM: [&str; 5] = ["_rid", "_self", "_etag", "_ts", "_attachments"];

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
        if operations.is_empty() {
            return Err(bad("there must be at least one operation"));
        }
        if operations.len() > PATCH_OPERATIONS_MAX {
            return Err(bad(&format!(
                "there may be at most {PATCH_OPERATIONS_MAX} operations, and there are {}",
                operations.len()
            )));
        }
        let operations = operations.into_iter().map(change).collect::<Result<_>>()?;
        Ok(Self { operations, condition })
    }

    /// Applies all operations in order. The paths of the partition key cannot be changed, nor what the service writes.
    pub(crate) fn apply(&self, item: &mut Value, key_paths: &[Vec<String>]) -> Result<()> {
        for change in &self.operations {
            change.check(key_paths)?;
            change.apply(item)?;
        }
        Ok(())
    }
}

fn bad(what: &str) -> Fault {
    Fault::bad_request(format!("The patch request is invalid: {what}."))
}

fn change(value: Value) -> Result<Change> {
    let Value::Object(mut operation) = value else {
        return Err(bad("an operation must be an object"));
    };
    let Some(Value::String(name)) = operation.remove("op") else {
        return Err(bad("an operation must have a text 'op'"));
    };
    let path = path(operation.remove("path"), "path")?;
    let value = operation.remove("value");
    let need = |value: Option<Value>| value.ok_or_else(|| bad("the operation needs a 'value'"));
    let act = match name.as_str() {
        _ if name.eq_ignore_ascii_case("add") => Act::Add(need(value)?),
        _ if name.eq_ignore_ascii_case("set") => Act::Set(need(value)?),
        _ if name.eq_ignore_ascii_case("replace") => Act::Replace(need(value)?),
        _ if name.eq_ignore_ascii_case("remove") => Act::Remove,
        _ if name.eq_ignore_ascii_case("incr") || name.eq_ignore_ascii_case("increment") => {
            match need(value)? {
                number @ (Value::Int64(_) | Value::Double(_)) => Act::Increment(number),
                _ => return Err(bad("an increment must be a number")),
            }
        }
        _ if name.eq_ignore_ascii_case("move") => {
            Act::Move { from: self::path(operation.remove("from"), "from")? }
        }
        _ => return Err(bad("the 'op' is none of add, set, replace, remove, incr, move")),
    };
    if let Act::Move { from } = &act
        && path.starts_with(from)
        && path.len() > from.len()
    {
        return Err(bad("a value cannot be moved into itself"));
    }
    Ok(Change { act, path })
}

fn path(value: Option<Value>, name: &str) -> Result<Path> {
    let Some(Value::String(text)) = value else {
        return Err(bad(&format!("an operation must have a text '{name}'")));
    };
    let Some(rest) = text.strip_prefix('/') else {
        return Err(bad(&format!("the path '{text}' does not begin with a slash")));
    };
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let path: Path = rest.split('/').map(unescaped).collect();
    if path.len() > PATH_DEPTH_MAX || path.iter().any(String::is_empty) {
        return Err(bad(&format!("the path '{text}' names nothing")));
    }
    Ok(path)
}

impl Change {
    fn check(&self, key_paths: &[Vec<String>]) -> Result<()> {
        let from = match &self.act {
            Act::Move { from } => Some(from),
            _ => None,
        };
        for path in std::iter::once(&self.path).chain(from) {
            let is_top = |name: &str| path.len() == 1 && path[0] == name;
            // A partition key is changed by a change of itself, or of what it is in.
            let is_key = key_paths.iter().any(|key| key.starts_with(path) || path.starts_with(key));
            if is_top("id") || SYSTEM.iter().any(|name| is_top(name)) || is_key {
                return Err(bad(&format!("the property '/{}' cannot be changed", path.join("/"))));
            }
        }
        Ok(())
    }

    fn apply(&self, item: &mut Value) -> Result<()> {
        match &self.act {
            Act::Add(value) => put(item, &self.path, value.clone(), true),
            Act::Set(value) => put(item, &self.path, value.clone(), false),
            Act::Replace(value) => {
                *find(item, &self.path).ok_or_else(|| missing(&self.path))? = value.clone();
                Ok(())
            }
            Act::Remove => remove(item, &self.path).map(drop),
            Act::Increment(by) => increment(item, &self.path, by),
            Act::Move { from } => {
                let value = remove(item, from)?;
                put(item, &self.path, value, true)
            }
        }
    }
}

fn missing(path: &[String]) -> Fault {
    bad(&format!("the path '/{}' does not exist", path.join("/")))
}

/// The element of an array that a segment names.
fn index(segment: &str, length: usize) -> Option<usize> {
    let is_plain = segment == "0" || !segment.starts_with('0');
    segment.parse().ok().filter(|index| is_plain && *index < length)
}

fn find<'v>(value: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, segment| match value {
        Value::Object(object) => object.get_mut(segment),
        Value::Array(array) => {
            let index = index(segment, array.len())?;
            array.get_mut(index)
        }
        _ => None,
    })
}

/// What holds the last segment of a path. Only the last one may be absent.
fn parent<'v, 'p>(item: &'v mut Value, path: &'p [String]) -> Result<(&'v mut Value, &'p String)> {
    let (last, before) = path.split_last().ok_or_else(|| missing(path))?;
    let parent = find(item, before).ok_or_else(|| missing(before))?;
    Ok((parent, last))
}

/// Writes a value. In an array `-` is its end; else a value is inserted or overwrites the one that is there.
fn put(item: &mut Value, path: &[String], value: Value, inserts: bool) -> Result<()> {
    match parent(item, path)? {
        (Value::Object(object), name) => {
            object.insert(name.clone(), value);
            Ok(())
        }
        (Value::Array(array), segment) => {
            let at = match segment.as_str() {
                "-" => array.len(),
                segment => index(segment, array.len() + 1).ok_or_else(|| missing(path))?,
            };
            match array.get_mut(at) {
                Some(there) if !inserts => *there = value,
                _ => array.insert(at, value),
            }
            Ok(())
        }
        _ => Err(missing(path)),
    }
}

fn remove(item: &mut Value, path: &[String]) -> Result<Value> {
    match parent(item, path)? {
        (Value::Object(object), name) => object.remove(name).ok_or_else(|| missing(path)),
        (Value::Array(array), segment) => {
            let index = index(segment, array.len()).ok_or_else(|| missing(path))?;
            Ok(array.remove(index))
        }
        _ => Err(missing(path)),
    }
}

fn increment(item: &mut Value, path: &[String], by: &Value) -> Result<()> {
    let Some(there) = find(item, path) else { return put(item, path, by.clone(), false) };
    let sum = match (&*there, by) {
        (Value::Int64(one), Value::Int64(other)) => one.checked_add(*other).map(Value::Int64),
        _ => None,
    };
    let float = |value: &Value| match value {
        Value::Int64(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        _ => None,
    };
    let sum = match sum {
        Some(sum) => sum,
        None => match (float(there), float(by)) {
            (Some(one), Some(other)) if (one + other).is_finite() => Value::Double(one + other),
            (Some(_), Some(_)) => return Err(bad("the sum is too large")),
            _ => return Err(bad("only a number can be incremented")),
        },
    };
    *there = sum;
    Ok(())
}

/// The paths of a container's partition key as lists of property names.
pub(crate) fn key_path(text: &str) -> Vec<String> {
    text.split('/').filter(|part| !part.is_empty()).map(|part| part.trim_matches('"').to_owned()).collect()
}


#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::from_json(text.as_bytes()).unwrap()
    }

    fn patched(item: &str, patch: &str) -> Result<String> {
        let mut item = json(item);
        Patch::parse(json(patch))?.apply(&mut item, &[key_path("/pk")])?;
        Ok(item.to_json())
    }

    #[track_caller]
    fn check(item: &str, operation: &str, expected: &str) {
        assert_eq!(patched(item, &format!("[{operation}]")).as_deref(), Ok(expected), "{operation}");
    }

    #[test]
    fn add_and_set_differ_in_arrays_alone() {
        check("{}", r#"{"op":"add","path":"/a","value":1}"#, r#"{"a":1}"#);
        check(r#"{"a":1}"#, r#"{"op":"add","path":"/a","value":2}"#, r#"{"a":2}"#);
        check(r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/1","value":9}"#, r#"{"a":[1,9,2]}"#);
        check(r#"{"a":[1,2]}"#, r#"{"op":"set","path":"/a/1","value":9}"#, r#"{"a":[1,9]}"#);
        check(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/-","value":9}"#, r#"{"a":[1,9]}"#);
        check(r#"{"a":[1]}"#, r#"{"op":"set","path":"/a/1","value":9}"#, r#"{"a":[1,9]}"#);
    }

    #[test]
    fn replace_and_remove_need_what_they_change() {
        check(r#"{"a":{"b":1}}"#, r#"{"op":"replace","path":"/a/b","value":2}"#, r#"{"a":{"b":2}}"#);
        check(r#"{"a":1,"b":2}"#, r#"{"op":"remove","path":"/a"}"#, r#"{"b":2}"#);
        check(r#"{"a":[1,2,3]}"#, r#"{"op":"remove","path":"/a/1"}"#, r#"{"a":[1,3]}"#);
        for operation in [
            r#"[{"op":"replace","path":"/x","value":2}]"#,
            r#"[{"op":"remove","path":"/x"}]"#,
            r#"[{"op":"remove","path":"/a/7"}]"#,
            r#"[{"op":"add","path":"/x/y","value":2}]"#,
            r#"[{"op":"set","path":"/a/7","value":2}]"#,
            r#"[{"op":"set","path":"/a/01","value":2}]"#,
        ] {
            assert!(patched(r#"{"a":[1]}"#, operation).is_err(), "{operation}");
        }
    }

    #[test]
    fn numbers_are_incremented_and_made() {
        check(r#"{"a":1}"#, r#"{"op":"incr","path":"/a","value":-3}"#, r#"{"a":-2}"#);
        check(r#"{"a":1}"#, r#"{"op":"incr","path":"/a","value":0.5}"#, r#"{"a":1.5}"#);
        check("{}", r#"{"op":"incr","path":"/a","value":5}"#, r#"{"a":5}"#);
        assert!(patched(r#"{"a":"x"}"#, r#"[{"op":"incr","path":"/a","value":5}]"#).is_err());
        assert!(patched("{}", r#"[{"op":"incr","path":"/a","value":"5"}]"#).is_err());
    }

    #[test]
    fn a_move_takes_the_value_away_and_puts_it_down() {
        let moved = r#"{"op":"move","from":"/a","path":"/b"}"#;
        check(r#"{"a":1}"#, moved, r#"{"b":1}"#);
        assert!(patched(r#"{"a":{}}"#, r#"[{"op":"move","from":"/a","path":"/a/b"}]"#).is_err());
        assert!(patched("{}", &format!("[{moved}]")).is_err());
    }

    #[test]
    fn id_key_and_system_properties_stay() {
        let item = r#"{"id":"1","pk":"a","_ts":1}"#;
        for path in ["/id", "/pk", "/pk/x", "/_ts", "/_etag"] {
            let patch = format!(r#"[{{"op":"set","path":"{path}","value":1}}]"#);
            assert!(patched(item, &patch).is_err(), "{path}");
        }
        assert!(patched(item, r#"[{"op":"move","from":"/pk","path":"/x"}]"#).is_err());
        assert!(patched(item, r#"[{"op":"set","path":"/pkx","value":1}]"#).is_ok());
    }

    #[test]
    fn both_forms_of_the_body_are_read() {
        let body = r#"{"operations":[{"op":"add","path":"/a~1b","value":1}],"condition":"from c"}"#;
        let patch = Patch::parse(json(body)).unwrap();
        assert_eq!(patch.condition.as_deref(), Some("from c"));
        assert_eq!(patched("{}", body).as_deref(), Ok(r#"{"a/b":1}"#));
        let eleven = vec![r#"{"op":"remove","path":"/a"}"#; 11].join(",");
        for bad in ["1", "[]", "{}", "[1]", r#"[{"op":"x","path":"/a"}]"#, &format!("[{eleven}]")] {
            assert!(Patch::parse(json(bad)).is_err(), "{bad}");
        }
        for path in ["a", "", "/", "//a"] {
            let bad = format!(r#"[{{"op":"remove","path":"{path}"}}]"#);
            assert!(Patch::parse(json(&bad)).is_err(), "{path}");
        }
    }
}
