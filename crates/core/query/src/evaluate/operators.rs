//! Operators on defined values. What an operator has no answer for is undefined.

use std::cmp::Ordering;

use lazuli_value::{Kind, Number, Value, ValueRef, compare_in_kind, equal_in_kind};

use super::Datum;
use crate::functions::limits::TEXT_BYTES_MAX;
use crate::syntax::{BinaryOp, UnaryOp};

pub(super) fn unary(operator: UnaryOp, value: ValueRef<'_>) -> Option<Value> {
    match operator {
        UnaryOp::Not => value.as_bool().map(|value| Value::Bool(!value)),
        UnaryOp::Plus => value.as_number().map(|_| value.to_value()),
        UnaryOp::Minus => match value.as_number()? {
            Number::Int(number) if number != 0 => number.checked_neg().map(Value::Int64),
            number => Value::number(-number.nearest()),
        },
        UnaryOp::BitNot => Some(Value::Int64(i64::from(!to_int32(value.as_f64()?)))),
    }
}

pub(super) fn binary(operator: BinaryOp, one: ValueRef<'_>, two: ValueRef<'_>) -> Option<Value> {
    match operator {
        BinaryOp::Equal => equality(one, two).map(Value::Bool),
        BinaryOp::NotEqual => equality(one, two).map(|is| Value::Bool(!is)),
        BinaryOp::Less => relation(one, two).map(|it| Value::Bool(it.is_lt())),
        BinaryOp::LessOrEqual => relation(one, two).map(|it| Value::Bool(it.is_le())),
        BinaryOp::Greater => relation(one, two).map(|it| Value::Bool(it.is_gt())),
        BinaryOp::GreaterOrEqual => relation(one, two).map(|it| Value::Bool(it.is_ge())),
        BinaryOp::Concatenate => {
            let (one, two) = (one.as_str()?, two.as_str()?);
            // As of functions that make texts, a result that would be too long is undefined.
            (one.len() + two.len() <= TEXT_BYTES_MAX).then(|| [one, two].concat().into())
        }
        arithmetic => {
            let (one, two) = (one.as_number()?, two.as_number()?);
            calculate(arithmetic, one, two)
        }
    }
}

/// Equality is defined between values of one kind.
fn equality(one: ValueRef<'_>, two: ValueRef<'_>) -> Option<bool> {
    equal_in_kind(one, two)
}

/// An order is defined between values of one kind that are neither arrays nor objects.
pub(super) fn relation(one: ValueRef<'_>, two: ValueRef<'_>) -> Option<Ordering> {
    let order = compare_in_kind(one, two)?;
    (!matches!(one.kind(), Kind::Array | Kind::Object)).then_some(order)
}

/// `value >= low AND value <= high`: one that is false decides, even if the other is undefined.
pub(super) fn between(
    value: Option<&Datum<'_>>,
    low: Option<&Datum<'_>>,
    high: Option<&Datum<'_>>,
) -> Option<bool> {
    let against = |bound: Option<&Datum<'_>>| relation(value?.as_ref(), bound?.as_ref());
    let low = against(low).map(Ordering::is_ge);
    let high = against(high).map(Ordering::is_le);
    match (low, high) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn calculate(operator: BinaryOp, one: Number<'_>, two: Number<'_>) -> Option<Value> {
    let (one, two) = (one.nearest(), two.nearest());
    let (left, right) = (to_int32(one), to_int32(two));
    // Shifts use the lower five bits of their second operand.
    let places = right as u32 & 31;
    let bits = |number: i32| Some(Value::Int64(i64::from(number)));
    match operator {
        BinaryOp::Add => Value::number(one + two),
        BinaryOp::Subtract => Value::number(one - two),
        BinaryOp::Multiply => Value::number(one * two),
        BinaryOp::Divide => Value::number(one / two),
        BinaryOp::Modulo => Value::number(one % two),
        BinaryOp::ShiftLeft => bits(left << places),
        BinaryOp::ShiftRight => bits(left >> places),
        BinaryOp::ShiftRightZero => Some(Value::Int64(i64::from(left as u32 >> places))),
        BinaryOp::BitAnd => bits(left & right),
        BinaryOp::BitXor => bits(left ^ right),
        BinaryOp::BitOr => bits(left | right),
        _ => None,
    }
}

/// The lower 32 bits of a number's whole part, as JavaScript takes them.
fn to_int32(number: f64) -> i32 {
    const RANGE: f64 = 4_294_967_296.0;
    if !number.is_finite() {
        return 0;
    }
    let wrapped = number.trunc().rem_euclid(RANGE);
    wrapped as u32 as i32
}
