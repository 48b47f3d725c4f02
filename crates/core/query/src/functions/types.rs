//! Functions that ask for the type of a value.

use lazuli_value::Value;

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("IS_DEFINED", 1, 1, is_defined).with_undefined()];

fn is_defined(call: &Call<'_>) -> Option<Value> {
    Some(call.value(0).is_some().into())
}
