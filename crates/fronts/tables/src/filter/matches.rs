//! Whether an entity meets a filter.
//!
//! Values of different types never meet any comparison, but for numbers, which are compared by what they amount to. So
//! neither does a property that is not there; `not` turns either into a match.

use std::cmp::Ordering;

use lazuli_azure::odata::Value;

use super::{Comparison, Filter};

impl Filter {
    /// `find` looks up a property by name.
    pub(crate) fn matches<'v>(&self, find: &impl Fn(&str) -> Option<Value<'v>>) -> bool {
        match self {
            Self::All(terms) => terms.iter().all(|term| term.matches(find)),
            Self::Any(terms) => terms.iter().any(|term| term.matches(find)),
            Self::Not(term) => !term.matches(find),
            Self::Compare(name, comparison, literal) => {
                find(name).is_some_and(|value| compare(&value, *comparison, literal))
            }
            Self::Constant(value) => *value,
        }
    }
}

pub(super) fn compare(left: &Value<'_>, comparison: Comparison, right: &Value<'_>) -> bool {
    let Some(order) = order(left, right) else {
        // NaN differs from every number, itself included; nothing else without an order compares at all.
        return comparison == Comparison::NotEqual && is_number(left) && is_number(right);
    };
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
    }
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int32(_) | Value::Int64(_) | Value::Double(_))
}

fn order(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Binary(left), Value::Binary(right)) => Some(left.cmp(right)),
        (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
        (Value::DateTime(left), Value::DateTime(right)) => Some(left.cmp(right)),
        (Value::Guid(left), Value::Guid(right)) => Some(left.cmp(right)),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Double(left), right) => order_double(*left, whole(right)?),
        (left, Value::Double(right)) => order_double(*right, whole(left)?).map(Ordering::reverse),
        (left, right) => Some(whole(left)?.cmp(&whole(right)?)),
    }
}

fn whole(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(value) => Some(i64::from(*value)),
        Value::Int64(value) => Some(*value),
        _ => None,
    }
}

/// Exact also where a double can't tell neighbouring integers apart.
fn order_double(left: f64, right: i64) -> Option<Ordering> {
    if left.is_nan() {
        return None;
    }
    // 2^63 is the first double above every i64.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    if left >= ABOVE {
        return Some(Ordering::Greater);
    }
    if left < -ABOVE {
        return Some(Ordering::Less);
    }
    let by_whole = (left.trunc() as i64).cmp(&right);
    Some(by_whole.then_with(|| left.fract().partial_cmp(&0.0).unwrap_or(Ordering::Equal)))
}
