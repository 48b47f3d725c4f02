//! Functions on numbers.

use lazuli_value::Value;

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[Function::new("ABS", 1, 1, abs)];

fn abs(call: &Call<'_>) -> Option<Value> {
    Value::number(call.number(0)?.abs())
}
