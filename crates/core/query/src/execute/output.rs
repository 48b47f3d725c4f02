//! Rows as encoded values.

use lazuli_value::Encoder;
use lazuli_value::json::Sink as _;

use crate::error::QueryError;
use crate::evaluate::{Context, Frame, check_made, evaluate};
use crate::tree::Expression;

/// The encoded value of an output expression. An object is written as its properties are computed, so that parts of the
/// item are copied once.
pub(super) fn encoded(
    output: &Expression,
    frame: Option<&Frame<'_>>,
    context: &Context,
) -> Result<Option<Vec<u8>>, QueryError> {
    let mut encoder = Encoder::new();
    if let Expression::Object(properties) = output {
        encoder.begin_object();
        for (name, property) in properties {
            if let Some(value) = evaluate(property, frame, context)? {
                encoder.name(name);
                encoder.value(value.as_ref());
                check_made(encoder.written())?;
            }
        }
        encoder.end_object();
        return Ok(Some(encoder.finish()));
    }
    let Some(value) = evaluate(output, frame, context)? else { return Ok(None) };
    encoder.value(value.as_ref());
    Ok(Some(encoder.finish()))
}
