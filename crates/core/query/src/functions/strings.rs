//! Functions on strings.

use lazuli_value::Value;

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[Function::new("LOWER", 1, 1, lower)];

fn lower(call: &Call<'_>) -> Option<Value> {
    Some(call.string(0)?.to_lowercase().into())
}
