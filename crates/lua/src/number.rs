//! Numbers: of Lua, and as C prints them with `%.Ng`.

use mlua::Value;

/// The number that a value is. The binding tells whole numbers apart from others, Lua 5.1 does not.
pub(crate) fn of(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// A number with so many digits, in the manner of C's `%.{digits}g`.
pub fn double(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent >= -4 && exponent < digits as i32 {
        let places = usize::try_from(digits as i32 - 1 - exponent).unwrap_or_default();
        return trim(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::double;

    #[test]
    fn numbers_look_as_c_prints_them() {
        for (value, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (12345678901234567.0, "1.2345678901235e+16"),
        ] {
            assert_eq!(double(value, 14), text);
        }
        assert_eq!(double(2.51159, 3), "2.51");
        assert_eq!(double(1.5e-7, 14), "1.5e-07");
        assert_eq!(double(100.0, 14), "100");
    }
}
