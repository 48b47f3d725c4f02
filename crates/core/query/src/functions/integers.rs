//! Functions on 64-bit integers. Other numbers are refused; what is too large wraps around.

use lazuli_value::Value;

use super::types::integer;
use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("INTADD", 2, 2, |call| two(call, |a, b| Some(a.wrapping_add(b)))),
    Function::new("INTBITAND", 2, 2, |call| two(call, |a, b| Some(a & b))),
    Function::new("INTBITLEFTSHIFT", 2, 2, |call| two(call, left_shift)),
    Function::new("INTBITNOT", 1, 1, |call| Some(Value::Int64(!argument(call, 0)?))),
    Function::new("INTBITOR", 2, 2, |call| two(call, |a, b| Some(a | b))),
    Function::new("INTBITRIGHTSHIFT", 2, 2, |call| two(call, right_shift)),
    Function::new("INTBITXOR", 2, 2, |call| two(call, |a, b| Some(a ^ b))),
    Function::new("INTDIV", 2, 2, |call| two(call, divide)),
    Function::new("INTMOD", 2, 2, |call| two(call, remainder)),
    Function::new("INTMUL", 2, 2, |call| two(call, |a, b| Some(a.wrapping_mul(b)))),
    Function::new("INTSUB", 2, 2, |call| two(call, |a, b| Some(a.wrapping_sub(b)))),
];

fn argument(call: &Call<'_>, place: usize) -> Option<i64> {
    integer(call.value(place)?.as_number()?)
}

fn two(call: &Call<'_>, compute: impl FnOnce(i64, i64) -> Option<i64>) -> Option<Value> {
    compute(argument(call, 0)?, argument(call, 1)?).map(Value::Int64)
}

fn divide(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_div(b))
}

fn remainder(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_rem(b))
}

/// A shift by 64 bits or more leaves nothing; one by less than nothing is refused.
fn left_shift(a: i64, bits: i64) -> Option<i64> {
    let bits = u32::try_from(bits).ok()?;
    Some(a.checked_shl(bits).unwrap_or(0))
}

/// The sign is kept.
fn right_shift(a: i64, bits: i64) -> Option<i64> {
    let bits = u32::try_from(bits).ok()?;
    Some(a >> bits.min(63))
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn integers_are_computed_exactly() {
        check_all(&[
            ("INTADD(20, 10)", "30"),
            ("INTADD(9007199254740993, 1)", "9007199254740994"),
            ("INTADD(9223372036854775807, 1)", "-9223372036854775808"),
            ("INTSUB(10, 20)", "-10"),
            ("INTMUL(5, -4)", "-20"),
            ("INTDIV(10, -3)", "-3"),
            ("INTDIV(10, 0)", "undefined"),
            ("INTDIV(-9223372036854775808, -1)", "-9223372036854775808"),
            ("INTMOD(12, 5)", "2"),
            ("INTMOD(-12, 5)", "-2"),
            ("INTMOD(12, 0)", "undefined"),
            ("INTBITAND(15, 25)", "9"),
            ("INTBITOR(56, 100)", "124"),
            ("INTBITXOR(56, 100)", "92"),
            ("INTBITNOT(65)", "-66"),
            ("INTBITLEFTSHIFT(16, 4)", "256"),
            ("INTBITLEFTSHIFT(1, 64)", "0"),
            ("INTBITLEFTSHIFT(1, -1)", "undefined"),
            ("INTBITRIGHTSHIFT(16, 4)", "1"),
            ("INTBITRIGHTSHIFT(-16, 2)", "-4"),
            ("INTBITRIGHTSHIFT(-1, 100)", "-1"),
        ]);
    }

    #[test]
    fn what_is_no_integer_gives_nothing() {
        for name in [
            "INTADD",
            "INTSUB",
            "INTMUL",
            "INTDIV",
            "INTMOD",
            "INTBITAND",
            "INTBITOR",
            "INTBITXOR",
            "INTBITLEFTSHIFT",
            "INTBITRIGHTSHIFT",
        ] {
            for value in ["0.4", "1e19", "'1'", "null", "undefined"] {
                check_all(&[(&format!("{name}(16, {value})"), "undefined")]);
            }
        }
        check_all(&[("INTBITNOT(0.1)", "undefined"), ("INTADD(2.0, 1)", "3")]);
    }
}
