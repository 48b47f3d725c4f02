//! Functions on numbers. A result that is no finite number is undefined.

use lazuli_value::Value;

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("ABS", 1, 1, |call| one(call, f64::abs)),
    Function::new("ACOS", 1, 1, |call| one(call, f64::acos)),
    Function::new("ASIN", 1, 1, |call| one(call, f64::asin)),
    Function::new("ATAN", 1, 1, |call| one(call, f64::atan)),
    Function::new("ATN2", 2, 2, |call| two(call, f64::atan2)),
    Function::new("CEILING", 1, 1, |call| one(call, f64::ceil)),
    Function::new("COS", 1, 1, |call| one(call, f64::cos)),
    Function::new("COT", 1, 1, |call| one(call, |angle| angle.tan().recip())),
    Function::new("DEGREES", 1, 1, |call| one(call, f64::to_degrees)),
    Function::new("EXP", 1, 1, |call| one(call, f64::exp)),
    Function::new("FLOOR", 1, 1, |call| one(call, f64::floor)),
    Function::new("LOG", 1, 2, log),
    Function::new("LOG10", 1, 1, |call| one(call, f64::log10)),
    Function::new("NUMBERBIN", 1, 2, number_bin),
    Function::new("PI", 0, 0, |_| Value::number(std::f64::consts::PI)),
    Function::new("POWER", 2, 2, |call| two(call, f64::powf)),
    Function::new("RADIANS", 1, 1, |call| one(call, f64::to_radians)),
    Function::new("RAND", 0, 0, |call| Value::number(call.context.random())).impure(),
    // Halves are rounded away from zero.
    Function::new("ROUND", 1, 1, |call| one(call, f64::round)),
    Function::new("SIGN", 1, 1, |call| one(call, sign)),
    Function::new("SIN", 1, 1, |call| one(call, f64::sin)),
    Function::new("SQRT", 1, 1, |call| one(call, f64::sqrt)),
    Function::new("SQUARE", 1, 1, |call| one(call, |number| number * number)),
    Function::new("TAN", 1, 1, |call| one(call, f64::tan)),
    Function::new("TRUNC", 1, 1, |call| one(call, f64::trunc)),
];

fn one(call: &Call<'_>, compute: impl FnOnce(f64) -> f64) -> Option<Value> {
    Value::number(compute(call.number(0)?))
}

fn two(call: &Call<'_>, compute: impl FnOnce(f64, f64) -> f64) -> Option<Value> {
    Value::number(compute(call.number(0)?, call.number(1)?))
}

fn sign(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number.signum() }
}

/// The natural logarithm, or the one to a base.
fn log(call: &Call<'_>) -> Option<Value> {
    let number = call.number(0)?;
    if !call.has(1) {
        return Value::number(number.ln());
    }
    Value::number(number.ln() / call.number(1)?.ln())
}

/// The largest multiple of the bin's size that is not above the number.
fn number_bin(call: &Call<'_>) -> Option<Value> {
    let number = call.number(0)?;
    let size = if call.has(1) { call.number(1)? } else { 1.0 };
    Value::number((number / size).floor() * size)
}

#[cfg(test)]
mod tests {
    use crate::functions::check::{check_all, evaluate};

    #[test]
    fn numbers_are_rounded_in_five_ways() {
        check_all(&[
            ("ROUND(2.4)", "2"),
            ("ROUND(2.5)", "3"),
            ("ROUND(-2.5)", "-3"),
            ("ROUND(-0.4)", "0"),
            ("CEILING(62.6)", "63"),
            ("CEILING(-123.45)", "-123"),
            ("FLOOR(62.6)", "62"),
            ("FLOOR(-145.11)", "-146"),
            ("TRUNC(2.6)", "2"),
            ("TRUNC(-2.6)", "-2"),
            ("NUMBERBIN(37.752)", "37"),
            ("NUMBERBIN(37.752, 10)", "30"),
            ("NUMBERBIN(37.752, 1)", "37"),
            ("NUMBERBIN(37.752, -100)", "100"),
            ("NUMBERBIN(37.752, 0.1)", "37.7"),
            ("NUMBERBIN(37.752, 0.01)", "37.75"),
            ("NUMBERBIN(37.752, 0)", "undefined"),
            ("NUMBERBIN(-3, 2)", "-4"),
            ("NUMBERBIN(1, '2')", "undefined"),
            ("SIGN(-2)", "-1"),
            ("SIGN(0)", "0"),
            ("SIGN(2.5)", "1"),
            ("ABS(-3.5)", "3.5"),
            ("ABS(0)", "0"),
        ]);
    }

    #[test]
    fn powers_and_logarithms() {
        check_all(&[
            ("POWER(2, 3)", "8"),
            ("POWER(2, -1)", "0.5"),
            ("POWER(-8, 0.5)", "undefined"),
            ("POWER(1e300, 2)", "undefined"),
            ("SQUARE(-3)", "9"),
            ("SQRT(9)", "3"),
            ("SQRT(-1)", "undefined"),
            ("EXP(0)", "1"),
            ("LOG(1)", "0"),
            ("LOG(8, 2)", "3"),
            ("LOG(0)", "undefined"),
            ("LOG(-1)", "undefined"),
            ("LOG(8, 1)", "undefined"),
            ("LOG10(100)", "2"),
        ]);
    }

    #[test]
    fn angles_are_radians() {
        check_all(&[
            ("SIN(0)", "0"),
            ("COS(0)", "1"),
            ("TAN(0)", "0"),
            ("COT(0)", "undefined"),
            ("ASIN(0)", "0"),
            ("ASIN(2)", "undefined"),
            ("ACOS(1)", "0"),
            ("ACOS(-2)", "undefined"),
            ("ATAN(-45.01)", "-1.5485826962062663"),
            ("ATN2(0, 1)", "0"),
            ("PI()", "3.141592653589793"),
            ("DEGREES(3.141592653589793)", "180"),
            ("RADIANS(180)", "3.141592653589793"),
            ("COT(1)", "0.6420926159343306"),
            ("ATN2(35.175643, 129.44)", "0.265344532064832"),
        ]);
    }

    #[test]
    fn what_is_no_number_gives_nothing() {
        let names = [
            "ABS", "ACOS", "ASIN", "ATAN", "CEILING", "COS", "COT", "DEGREES", "EXP", "FLOOR",
            "LOG", "LOG10", "RADIANS", "ROUND", "SIGN", "SIN", "SQRT", "SQUARE", "TAN", "TRUNC",
        ];
        for name in names {
            for value in ["undefined", "null", "true", "'1'", "[1]", "{}"] {
                check_all(&[(&format!("{name}({value})"), "undefined")]);
            }
        }
        check_all(&[("POWER(2, null)", "undefined"), ("ATN2('a', 1)", "undefined")]);
    }

    #[test]
    fn a_random_number_is_from_zero_to_one() {
        let number = evaluate("RAND()").and_then(|it| lazuli_value::ValueRef::from(&it).as_f64());
        assert!((0.0..1.0).contains(&number.unwrap()));
    }
}
