//! What an expression says of a message. None stands for unknown, as NULL does in SQL.

use std::cmp::Ordering;

use lazuli_engine::Result;

use super::tree::{Arithmetic, Compare, Expression};
use super::{Properties, Value, bad, like};
use crate::{PropertyName, SystemProperty};

/// Whether a condition holds. Unknown does not.
pub(super) fn condition(condition: &Expression, message: &dyn Properties) -> Result<bool> {
    Ok(truth(condition, message)? == Some(true))
}

fn truth(expression: &Expression, message: &dyn Properties) -> Result<Option<bool>> {
    match value(expression, message)? {
        None => Ok(None),
        Some(Value::Boolean(truth)) => Ok(Some(truth)),
        Some(other) => Err(bad(format!("{other:?} is no condition"))),
    }
}

fn boolean(truth: Option<bool>) -> Result<Option<Value>> {
    Ok(truth.map(Value::Boolean))
}

pub(super) fn value(expression: &Expression, message: &dyn Properties) -> Result<Option<Value>> {
    let of = |inner: &Expression| value(inner, message);
    match expression {
        Expression::Constant(constant) => Ok(Some(constant.clone())),
        Expression::Property(name) => message.get(name),
        Expression::PropertyNamed(name) => match of(name)? {
            Some(Value::Text(name)) => message.get(&named(&name)?),
            Some(other) => Err(bad(format!("{other:?} is no name of a property"))),
            None => Ok(None),
        },
        Expression::NewId => Ok(Some(Value::Uuid(message.new_id()))),
        Expression::Plus(inner) => match of(inner)? {
            Some(number @ (Value::Integer(_) | Value::Double(_))) => Ok(Some(number)),
            None => Ok(None),
            Some(other) => Err(bad(format!("{other:?} has no sign"))),
        },
        Expression::Minus(inner) => match of(inner)? {
            Some(Value::Integer(number)) => number
                .checked_neg()
                .map(|number| Some(Value::Integer(number)))
                .ok_or_else(|| bad("a number is too large")),
            Some(Value::Double(number)) => Ok(Some(Value::Double(-number))),
            None => Ok(None),
            Some(other) => Err(bad(format!("{other:?} has no sign"))),
        },
        Expression::Arithmetic(operator, left, right) => match (of(left)?, of(right)?) {
            (Some(left), Some(right)) => calculate(*operator, left, right).map(Some),
            _ => Ok(None),
        },
        Expression::Compare(compare, left, right) => {
            boolean(compared(of(left)?, of(right)?).map(|order| holds(*compare, order)))
        }
        Expression::IsNull(inner) => boolean(Some(of(inner)?.is_none())),
        Expression::Exists(name) => boolean(Some(message.get(name)?.is_some())),
        Expression::In(left, list) => {
            let left = of(left)?;
            let mut found = Some(false);
            for one in list {
                found = or(found, compared(left.clone(), of(one)?).map(Ordering::is_eq));
            }
            boolean(found)
        }
        Expression::Like { text, pattern, escape } => {
            let escape = escape.as_ref().map(|escape| of(escape)).transpose()?;
            boolean(is_like(of(text)?, of(pattern)?, escape)?)
        }
        Expression::Not(inner) => boolean(truth(inner, message)?.map(|truth| !truth)),
        Expression::And(left, right) => {
            let left = truth(left, message)?;
            // What is false already stays so: the other side is not asked, and cannot fail.
            match left {
                Some(false) => boolean(left),
                _ => boolean(and(left, truth(right, message)?)),
            }
        }
        Expression::Or(left, right) => {
            let left = truth(left, message)?;
            match left {
                Some(true) => boolean(left),
                _ => boolean(or(left, truth(right, message)?)),
            }
        }
    }
}

/// A property as `property()` names it, with or without its scope.
fn named(name: &str) -> Result<PropertyName> {
    let scoped = name.split_once('.').map(|(scope, rest)| (scope.to_ascii_lowercase(), rest));
    match scoped {
        Some((scope, rest)) if scope == "sys" => match SystemProperty::parse(rest) {
            Some(property) => Ok(PropertyName::System(property)),
            None => Err(bad(format!("there is no system property {rest}"))),
        },
        Some((scope, rest)) if scope == "user" => Ok(PropertyName::User(rest.to_owned())),
        _ => Ok(PropertyName::User(name.to_owned())),
    }
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    and(left.map(|truth| !truth), right.map(|truth| !truth)).map(|truth| !truth)
}

/// How two values are ordered. Unknown if one is, or if their types do not compare.
fn compared(left: Option<Value>, right: Option<Value>) -> Option<Ordering> {
    left?.order(&right?)
}

fn holds(compare: Compare, order: Ordering) -> bool {
    match compare {
        Compare::Equal => order.is_eq(),
        Compare::NotEqual => order.is_ne(),
        Compare::Less => order.is_lt(),
        Compare::LessOrEqual => order.is_le(),
        Compare::Greater => order.is_gt(),
        Compare::GreaterOrEqual => order.is_ge(),
    }
}

fn is_like(
    text: Option<Value>,
    pattern: Option<Value>,
    escape: Option<Option<Value>>,
) -> Result<Option<bool>> {
    let escape = match escape {
        None => None,
        Some(Some(Value::Text(escape))) => {
            let mut characters = escape.chars();
            match (characters.next(), characters.next()) {
                (Some(escape), None) => Some(escape),
                _ => return Err(bad("an escape character is one character")),
            }
        }
        Some(Some(other)) => return Err(bad(format!("{other:?} is no escape character"))),
        Some(None) => return Ok(None),
    };
    match (text, pattern) {
        (Some(Value::Text(text)), Some(Value::Text(pattern))) => {
            like::matches(&text, &pattern, escape).map(Some)
        }
        (_, Some(Value::Text(_)) | None) => Ok(None),
        (_, Some(other)) => Err(bad(format!("{other:?} is no pattern"))),
    }
}

fn calculate(operator: Arithmetic, left: Value, right: Value) -> Result<Value> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => whole(operator, left, right),
        (Value::Integer(left), Value::Double(right)) => Ok(real(operator, left as f64, right)),
        (Value::Double(left), Value::Integer(right)) => Ok(real(operator, left, right as f64)),
        (Value::Double(left), Value::Double(right)) => Ok(real(operator, left, right)),
        (Value::Text(left), Value::Text(right)) if operator == Arithmetic::Add => {
            Ok(Value::Text(left + &right))
        }
        (left, right) => Err(bad(format!("{operator:?} does not take {left:?} and {right:?}"))),
    }
}

fn whole(operator: Arithmetic, left: i64, right: i64) -> Result<Value> {
    if right == 0 && matches!(operator, Arithmetic::Divide | Arithmetic::Remainder) {
        return Err(bad("a division by zero"));
    }
    let result = match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => left.checked_rem(right),
    };
    result.map(Value::Integer).ok_or_else(|| bad("a number is too large"))
}

fn real(operator: Arithmetic, left: f64, right: f64) -> Value {
    Value::Double(match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    })
}
