//! AND and OR over several conditions of which some may be undefined.

use lazuli_value::Value;

/// False if one is false, else undefined if one is undefined, else true.
pub(super) fn all(conditions: impl Iterator<Item = Option<bool>>) -> Option<Value> {
    combine(conditions, false)
}

/// True if one is true, else undefined if one is undefined, else false.
pub(super) fn any(conditions: impl Iterator<Item = Option<bool>>) -> Option<Value> {
    combine(conditions, true)
}

fn combine(conditions: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<Value> {
    let mut is_undefined = false;
    for condition in conditions {
        match condition {
            Some(value) if value == decisive => return Some(decisive.into()),
            Some(_) => {}
            None => is_undefined = true,
        }
    }
    (!is_undefined).then_some((!decisive).into())
}
