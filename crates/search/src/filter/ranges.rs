//! The values that a comparison with a constant accepts, as one range.

use super::tree::CompareOp;
use crate::index::Values;
use std::ops::Bound;

/// A range of strings.
pub(super) fn text_range(op: CompareOp, text: &str) -> Option<Values> {
    let text = text.to_owned();
    let (low, high) = match op {
        CompareOp::Gt => (Bound::Excluded(text), Bound::Unbounded),
        CompareOp::Ge => (Bound::Included(text), Bound::Unbounded),
        CompareOp::Lt => (Bound::Unbounded, Bound::Excluded(text)),
        CompareOp::Le => (Bound::Unbounded, Bound::Included(text)),
        CompareOp::Eq | CompareOp::Ne => (Bound::Included(text.clone()), Bound::Included(text)),
    };
    Some(Values::Text(low, high))
}

/// A range of whole numbers, or none where no number is in it.
pub(super) fn whole_range(op: CompareOp, number: i64) -> Option<Values> {
    let range = match op {
        CompareOp::Eq | CompareOp::Ne => number..=number,
        CompareOp::Gt => number.checked_add(1)?..=i64::MAX,
        CompareOp::Ge => number..=i64::MAX,
        CompareOp::Lt => i64::MIN..=number.checked_sub(1)?,
        CompareOp::Le => i64::MIN..=number,
    };
    Some(Values::Whole(range))
}

/// A range of doubles. What is no number is in no range, and zero has two forms, which are equal.
pub(super) fn double_range(op: CompareOp, number: f64) -> Option<Values> {
    if number.is_nan() {
        return None;
    }
    let (low, high) = if number == 0.0 { (-0.0, 0.0) } else { (number, number) };
    let range = match op {
        CompareOp::Eq | CompareOp::Ne => low..=high,
        CompareOp::Gt if high == f64::INFINITY => return None,
        CompareOp::Gt => high.next_up()..=f64::INFINITY,
        CompareOp::Ge => low..=f64::INFINITY,
        CompareOp::Lt if low == f64::NEG_INFINITY => return None,
        CompareOp::Lt => f64::NEG_INFINITY..=low.next_down(),
        CompareOp::Le => f64::NEG_INFINITY..=high,
    };
    Some(Values::Double(range))
}

/// A range of whole numbers whose bound is any number.
pub(super) fn mixed_range(op: CompareOp, number: f64) -> Option<Values> {
    if number.is_nan() {
        return None;
    }
    let floor = number.floor();
    if floor >= 9.2e18 || floor <= -9.2e18 {
        let all = match op {
            CompareOp::Lt | CompareOp::Le => floor > 0.0,
            CompareOp::Gt | CompareOp::Ge => floor < 0.0,
            CompareOp::Eq | CompareOp::Ne => false,
        };
        return all.then_some(Values::Whole(i64::MIN..=i64::MAX));
    }
    let bound = floor as i64;
    let whole = number == floor;
    match op {
        CompareOp::Eq | CompareOp::Ne if !whole => None,
        CompareOp::Lt if !whole => whole_range(CompareOp::Le, bound),
        CompareOp::Ge if !whole => whole_range(CompareOp::Gt, bound),
        _ => whole_range(op, bound),
    }
}
