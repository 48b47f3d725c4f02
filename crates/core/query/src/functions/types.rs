//! Functions that ask for the type of a value. An undefined value is of no type.

use lazuli_value::{Node, Number, Value, ValueRef};

use super::calendar::Moment;
use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("IS_ARRAY", 1, 1, is_array).with_undefined(),
    Function::new("IS_BOOL", 1, 1, is_bool).with_undefined(),
    Function::new("IS_DATETIME", 1, 1, is_date_time).with_undefined(),
    Function::new("IS_DEFINED", 1, 1, is_defined).with_undefined(),
    Function::new("IS_FINITE_NUMBER", 1, 1, is_finite_number).with_undefined(),
    Function::new("IS_INTEGER", 1, 1, is_integer).with_undefined(),
    Function::new("IS_NULL", 1, 1, is_null).with_undefined(),
    Function::new("IS_NUMBER", 1, 1, is_number).with_undefined(),
    Function::new("IS_OBJECT", 1, 1, is_object).with_undefined(),
    Function::new("IS_PRIMITIVE", 1, 1, is_primitive).with_undefined(),
    Function::new("IS_STRING", 1, 1, is_string).with_undefined(),
];

fn holds(call: &Call<'_>, test: impl FnOnce(ValueRef<'_>) -> bool) -> Option<Value> {
    Some(call.value(0).is_some_and(test).into())
}

fn is_array(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_array().is_some())
}

fn is_bool(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_bool().is_some())
}

fn is_date_time(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_str().and_then(Moment::read).is_some())
}

fn is_defined(call: &Call<'_>) -> Option<Value> {
    holds(call, |_| true)
}

fn is_finite_number(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_f64().is_some_and(f64::is_finite))
}

fn is_integer(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_number().and_then(integer).is_some())
}

fn is_null(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.is_null())
}

fn is_number(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_number().is_some())
}

fn is_object(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_object().is_some())
}

fn is_primitive(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| !matches!(value.node(), Node::Array(_) | Node::Object(_)))
}

fn is_string(call: &Call<'_>) -> Option<Value> {
    holds(call, |value| value.as_str().is_some())
}

/// The number as a 64-bit integer, if it is one.
pub(super) fn integer(number: Number<'_>) -> Option<i64> {
    /// The first double above all 64-bit integers.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    match number {
        Number::Int(number) => Some(number),
        other => {
            let number = other.nearest();
            let fits = number.trunc() == number && (-ABOVE..ABOVE).contains(&number);
            fits.then_some(number as i64)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn each_type_is_told_apart_from_the_others() {
        let values = ["undefined", "null", "true", "1", "1.5", "'a'", "[1]", "{\"a\":1}"];
        let expected = [
            ("IS_DEFINED", "01111111"),
            ("IS_NULL", "01000000"),
            ("IS_BOOL", "00100000"),
            ("IS_NUMBER", "00011000"),
            ("IS_FINITE_NUMBER", "00011000"),
            ("IS_INTEGER", "00010000"),
            ("IS_STRING", "00000100"),
            ("IS_PRIMITIVE", "01111100"),
            ("IS_ARRAY", "00000010"),
            ("IS_OBJECT", "00000001"),
        ];
        for (name, answers) in expected {
            for (value, answer) in values.iter().zip(answers.chars()) {
                let answer = if answer == '1' { "true" } else { "false" };
                check_all(&[(&format!("{name}({value})"), answer)]);
            }
        }
    }

    #[test]
    fn integers_have_64_bits_and_no_fraction() {
        check_all(&[
            ("IS_INTEGER(9223372036854775807)", "true"),
            ("IS_INTEGER(-9223372036854775808)", "true"),
            ("IS_INTEGER(1e18)", "true"),
            ("IS_INTEGER(1e19)", "false"),
            ("IS_INTEGER(0.1)", "false"),
            ("IS_INTEGER('1')", "false"),
        ]);
    }

    #[test]
    fn dates_are_texts_in_the_format_of_the_service() {
        check_all(&[
            ("IS_DATETIME('2021-01-08T18:35:00.0000000Z')", "true"),
            ("IS_DATETIME('2021-01-08')", "true"),
            ("IS_DATETIME('2021-13-08')", "false"),
            ("IS_DATETIME('yesterday')", "false"),
            ("IS_DATETIME(5)", "false"),
            ("IS_DATETIME(undefined)", "false"),
        ]);
    }
}
