//! Numbers as the service reads and writes them.

/// A whole number in its one canonical form: no blanks, no plus, no leading zeros.
#[inline]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Nineteen digits fit.
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// A number with a fraction, or an infinity; never NaN, no blanks around it.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_hex = unsigned.len() > 2 && unsigned[..2].eq_ignore_ascii_case("0x");
    let value = match is_hex {
        true => {
            let value = u64::from_str_radix(&unsigned[2..], 16).ok()? as f64;
            if text.starts_with('-') { -value } else { value }
        }
        false => text.parse::<f64>().ok()?,
    };
    // A number too large to be one is refused; only the word stands for infinity.
    let is_too_large = value.is_infinite() && text.bytes().any(|it| it.is_ascii_digit());
    (!value.is_nan() && !is_too_large).then_some(value)
}

/// A number with up to 17 digits, in the manner of C's `%.17g`.
pub fn double_text(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value.is_nan() {
        return "nan".into();
    }
    if value == value.trunc() && value.abs() < 1e15 {
        let whole = value as i64;
        return if whole == 0 && value.is_sign_negative() {
            "-0".into()
        } else {
            whole.to_string()
        };
    }
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (-4..17).contains(&exponent) {
        let places = usize::try_from(16 - exponent).unwrap_or_default();
        let text = format!("{value:.places$}");
        return if places == 0 { text } else { trim(&text) };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_integers_are_read() {
        let good = [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)];
        for (text, value) in good {
            assert_eq!(parse_integer(text.as_bytes()), Some(value));
        }
        assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
        for text in ["", "-", "-0", "01", "+1", " 1", "1 ", "9223372036854775808", "1.0", "a"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_integer(b"-9223372036854775809"), None);
    }

    #[test]
    fn doubles_look_as_c_prints_them() {
        let cases = [
            (3.1, "3.1000000000000001"),
            (0.1, "0.10000000000000001"),
            (1e20, "1e+20"),
            (1.5e-7, "1.4999999999999999e-07"),
            (-2.5, "-2.5"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123456789.125, "123456789.125"),
            (f64::INFINITY, "inf"),
            (0.0001, "0.0001"),
        ];
        for (value, text) in cases {
            assert_eq!(double_text(value), text);
        }
    }

    #[test]
    fn doubles_are_read_with_infinities_and_without_nan() {
        assert_eq!(parse_double(b"+inf"), Some(f64::INFINITY));
        assert_eq!(parse_double(b"-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_double(b"1e3"), Some(1000.0));
        assert_eq!(parse_double(b"0x10"), Some(16.0));
        for text in ["nan", "", " 1", "1 ", "abc", "1e"] {
            assert_eq!(parse_double(text.as_bytes()), None, "{text}");
        }
    }
}
