//! Stored procedures, triggers and user-defined functions.

use lazuli_http::Response;
use lazuli_value::{Object, Value};

use crate::address::ContainerName;
use crate::error::{Fault, Result};
use crate::request::Kind;
use crate::{Call, Front};

/// Checks the body of a script.
pub(crate) fn checked(kind: Kind, body: Object) -> Result<Object> {
    if !matches!(body.get("body"), Some(Value::String(_))) {
        return Err(Fault::bad_input("a script needs a text 'body'"));
    }
    let is_one_of = |name: &str, words: &[&str]| match body.get(name) {
        Some(Value::String(text)) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        _ => false,
    };
    let is_good = kind != Kind::Trigger
        || (is_one_of("triggerType", &["Pre", "Post"])
            && is_one_of("triggerOperation", &["All", "Create", "Update", "Delete", "Replace"]));
    if is_good {
        return Ok(body);
    }
    Err(Fault::bad_input("a trigger needs a triggerType and a triggerOperation"))
}

pub(crate) async fn execute(
    _: &Front,
    _: &Call,
    _: &ContainerName,
    _: &str,
    _: &[u8],
) -> Result<Response> {
    Err(Fault::gap("A stored procedure"))
}
