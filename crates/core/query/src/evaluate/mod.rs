//! Evaluation: expressions over the values that a row binds. `undefined` is `None` everywhere.

mod aggregate;
mod constant_set;
mod context;
mod datum;
mod frame;
mod like;
mod operators;
mod paused;
mod rows;
mod sort_key;
#[cfg(test)]
mod tests;

use lazuli_value::{Object, Value, equal_in_kind};

pub(crate) use aggregate::{Group, group_key};
pub use constant_set::ConstantSet;
pub use context::{Context, UserFunctions};
pub use datum::Datum;
pub use frame::Frame;
pub use like::{is_like, prefix_of_pattern};
pub(crate) use rows::{Flow, for_each_row, output_of_slots, run};
pub(crate) use sort_key::{append_sort_key, value_bytes};

use crate::error::{ErrorKind, QueryError};
use crate::functions::{Call, Undefined};
use crate::limits::MADE_BYTES_MAX;
use crate::syntax::SubqueryKind;
use crate::tree::{Expression, Level};

/// What a function makes of so few arguments is small enough to be looked at afterwards.
const FEW_ARGUMENTS: usize = 4;

/// What an expression yields, or why the query fails.
pub type Evaluated<'v> = Result<Option<Datum<'v>>, QueryError>;

/// The value of an expression for a row.
pub fn evaluate<'v>(
    expression: &'v Expression,
    frame: Option<&'v Frame<'v>>,
    context: &Context,
) -> Evaluated<'v> {
    let value = |part: &'v Expression| evaluate(part, frame, context);
    Ok(match expression {
        Expression::Constant(constant) => constant.as_ref().map(|it| Datum::Ref(it.into())),
        Expression::Slot(slot) => frame.and_then(|frame| frame.get(*slot)).map(Datum::Ref),
        Expression::Property(inside, name) => value(inside)?.and_then(|it| it.get(name)),
        Expression::Index(inside, index) => match (value(inside)?, value(index)?) {
            (Some(inside), Some(index)) => member(inside, &index),
            _ => None,
        },
        Expression::Array(elements) => Some(array(elements, frame, context)?.into()),
        Expression::Object(properties) => Some(object(properties, frame, context)?.into()),
        Expression::Unary(operator, inside) => {
            value(inside)?.and_then(|it| operators::unary(*operator, it.as_ref())).map(Datum::from)
        }
        Expression::Binary(operator, one, two) => match (value(one)?, value(two)?) {
            (Some(one), Some(two)) => {
                operators::binary(*operator, one.as_ref(), two.as_ref()).map(Datum::from)
            }
            _ => None,
        },
        Expression::And(parts) => connected(parts, false, frame, context)?,
        Expression::Or(parts) => connected(parts, true, frame, context)?,
        Expression::Between { value: inside, low, high } => {
            let (inside, low, high) = (value(inside)?, value(low)?, value(high)?);
            operators::between(inside.as_ref(), low.as_ref(), high.as_ref()).map(truth)
        }
        Expression::In { value: inside, set: Some(set), .. } => {
            value(inside)?.and_then(|it| set.contains(it.as_ref())).map(truth)
        }
        Expression::In { value: inside, list, .. } => is_in(inside, list, frame, context)?,
        Expression::Like { value: inside, pattern, escape } => {
            like(value(inside)?, value(pattern)?, *escape)?
        }
        Expression::Coalesce(one, two) => match value(one)? {
            Some(value) => Some(value),
            None => value(two)?,
        },
        Expression::Conditional(condition, yes, no) => {
            match value(condition)?.and_then(|it| it.as_ref().as_bool()) {
                Some(true) => value(yes)?,
                Some(false) => value(no)?,
                None => None,
            }
        }
        Expression::Call { .. } | Expression::UserCall { .. } => call(expression, frame, context)?,
        Expression::Subquery(kind, level) => subquery(*kind, level, frame, context)?,
    })
}

/// Whether a condition is exactly true.
pub fn is_true<'v>(
    condition: &'v Expression,
    frame: Option<&'v Frame<'v>>,
    context: &Context,
) -> Result<bool, QueryError> {
    let value = evaluate(condition, frame, context)?;
    Ok(value.and_then(|value| value.as_ref().as_bool()) == Some(true))
}

/// Refuses values that are larger than any that an expression may make.
pub(crate) fn check_made(bytes: usize) -> Result<(), QueryError> {
    if bytes <= MADE_BYTES_MAX {
        return Ok(());
    }
    let limit = MADE_BYTES_MAX / (1024 * 1024);
    Err(QueryError::too_large(format!("An expression makes a value of more than {limit} MB.")))
}

fn array(
    elements: &[Expression],
    frame: Option<&Frame<'_>>,
    context: &Context,
) -> Result<Value, QueryError> {
    let mut values = Vec::with_capacity(elements.len());
    let mut bytes = 0;
    for element in elements {
        if let Some(value) = evaluate(element, frame, context)? {
            bytes += value_bytes(value.as_ref());
            check_made(bytes)?;
            values.push(value.into_value());
        }
    }
    Ok(Value::Array(values))
}

fn object(
    properties: &[(String, Expression)],
    frame: Option<&Frame<'_>>,
    context: &Context,
) -> Result<Value, QueryError> {
    let mut values = Vec::with_capacity(properties.len());
    let mut bytes = 0;
    for (name, property) in properties {
        if let Some(value) = evaluate(property, frame, context)? {
            bytes += value_bytes(value.as_ref());
            check_made(bytes)?;
            values.push((name.clone(), value.into_value()));
        }
    }
    Ok(Value::Object(Object::from_properties(values)))
}

fn truth<'v>(value: bool) -> Datum<'v> {
    Value::Bool(value).into()
}

/// A property by a computed name, or an element by a computed place.
fn member<'v>(inside: Datum<'v>, index: &Datum<'_>) -> Option<Datum<'v>> {
    let index = index.as_ref();
    if let Some(name) = index.as_str() {
        return inside.get(name);
    }
    let place = index.as_f64()?;
    let is_place = place >= 0.0 && place.trunc() == place && place < f64::from(u32::MAX);
    if is_place { inside.at(place as usize) } else { None }
}

fn like<'v>(
    text: Option<Datum<'v>>,
    pattern: Option<Datum<'v>>,
    escape: Option<char>,
) -> Evaluated<'v> {
    let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(None) };
    match text.as_ref().as_str().zip(pattern.as_ref().as_str()) {
        Some((text, pattern)) => Ok(Some(truth(is_like(text, pattern, escape)?))),
        None => Ok(None),
    }
}

/// AND and OR: one operand of the deciding value decides, else one that is no boolean makes all undefined.
fn connected<'v>(
    parts: &'v [Expression],
    decides: bool,
    frame: Option<&'v Frame<'v>>,
    context: &Context,
) -> Evaluated<'v> {
    let mut is_undefined = false;
    for part in parts {
        match evaluate(part, frame, context)?.and_then(|it| it.as_ref().as_bool()) {
            Some(value) if value == decides => return Ok(Some(truth(decides))),
            Some(_) => {}
            None => is_undefined = true,
        }
    }
    Ok(if is_undefined { None } else { Some(truth(!decides)) })
}

/// `x IN (a, b)` is `x = a OR x = b`.
fn is_in<'v>(
    inside: &'v Expression,
    list: &'v [Expression],
    frame: Option<&'v Frame<'v>>,
    context: &Context,
) -> Evaluated<'v> {
    let Some(inside) = evaluate(inside, frame, context)? else { return Ok(None) };
    let mut is_undefined = false;
    for item in list {
        match evaluate(item, frame, context)? {
            Some(item) => match equal_in_kind(inside.as_ref(), item.as_ref()) {
                Some(true) => return Ok(Some(truth(true))),
                Some(false) => {}
                None => is_undefined = true,
            },
            None => is_undefined = true,
        }
    }
    Ok(if is_undefined { None } else { Some(truth(false)) })
}

fn call<'v>(
    expression: &'v Expression,
    frame: Option<&'v Frame<'v>>,
    context: &Context,
) -> Evaluated<'v> {
    match expression {
        Expression::Call { function, arguments } => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                let value = evaluate(argument, frame, context)?;
                if value.is_none() && function.undefined == Undefined::Spreads {
                    return Ok(None);
                }
                values.push(value);
            }
            if values.len() > FEW_ARGUMENTS {
                check_made(values.iter().flatten().map(|it| value_bytes(it.as_ref())).sum())?;
            }
            let made = (function.call)(&Call { arguments: &values, context });
            if let Some(made @ (Value::Array(_) | Value::Object(_))) = &made {
                check_made(value_bytes(made.into()))?;
            }
            Ok(made.map(Datum::from))
        }
        Expression::UserCall { name, arguments } => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(evaluate(argument, frame, context)?.map(Datum::into_value));
            }
            match &context.functions {
                Some(functions) => Ok(functions.call(name, &values)?.map(Datum::from)),
                None => {
                    let message = format!("The user-defined function '{name}' was not found.");
                    Err(QueryError::new(ErrorKind::Function, message))
                }
            }
        }
        _ => Ok(None),
    }
}

fn subquery<'v>(
    kind: SubqueryKind,
    level: &'v Level,
    frame: Option<&'v Frame<'v>>,
    context: &Context,
) -> Evaluated<'v> {
    let held = context.held();
    let mut rows: Vec<Value> = Vec::new();
    let mut all_true = true;
    run(level, frame, context, &mut |row: Datum<'_>| {
        match kind {
            SubqueryKind::Scalar if !rows.is_empty() => {
                let message =
                    "The cardinality of a scalar subquery result set cannot be greater than one.";
                return Err(QueryError::invalid(message));
            }
            SubqueryKind::All => {
                all_true &= row.as_ref().as_bool() == Some(true);
                return Ok(if all_true { Flow::Continue } else { Flow::Stop });
            }
            SubqueryKind::Last => rows.clear(),
            _ => {}
        }
        if kind == SubqueryKind::Array {
            context.hold(value_bytes(row.as_ref()))?;
        }
        rows.push(row.into_value());
        let one_is_enough = matches!(kind, SubqueryKind::Exists | SubqueryKind::First);
        Ok(if one_is_enough { Flow::Stop } else { Flow::Continue })
    })?;
    context.release(context.held() - held);
    Ok(match kind {
        SubqueryKind::Array => Some(Value::Array(rows).into()),
        SubqueryKind::Exists => Some(truth(!rows.is_empty())),
        SubqueryKind::All => Some(truth(all_true)),
        SubqueryKind::Scalar | SubqueryKind::First | SubqueryKind::Last => {
            rows.pop().map(Datum::from)
        }
    })
}
