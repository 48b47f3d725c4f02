//! Writing JSON text. Types that only BSON has are written as MongoDB's extended JSON writes them.

use std::fmt::Write as _;

use super::plain_length;
use crate::decimal::Decimal;
use crate::node::{Node, ValueRef};

/// Appends the JSON text of a value: no spaces, properties in their order, every number so short that it still reads back
/// as the same number of the same type.
pub fn write(value: ValueRef<'_>, out: &mut String) {
    match value.node() {
        Node::Null => out.push_str("null"),
        Node::Bool(true) => out.push_str("true"),
        Node::Bool(false) => out.push_str("false"),
        Node::Int64(number) => integer(number, out),
        Node::Int32(number) => integer(i64::from(number), out),
        Node::Double(number) => double(number, out),
        Node::String(text) | Node::Symbol(text) => string(text, out),
        Node::Array(array) => {
            out.push('[');
            for (place, element) in array.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Node::Object(object) => {
            out.push('{');
            for (place, (name, value)) in object.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        other => extended(other, out),
    }
}

/// Appends a string in quotes.
pub fn string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        let length = plain_length(rest.as_bytes());
        out.push_str(&rest[..length]);
        let Some(byte) = rest.as_bytes().get(length) else { break };
        rest = &rest[length + 1..];
        match *byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            byte => {
                out.push_str("\\u00");
                out.push(char::from(b'0' + (byte >> 4)));
                out.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
            }
        }
    }
    out.push('"');
}

fn integer(number: i64, out: &mut String) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push('-');
    }
    out.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

/// Appends a double so that it reads back as a double: with a point or an exponent.
fn double(number: f64, out: &mut String) {
    // JSON has no other numbers. They come only from BSON.
    if !number.is_finite() {
        let name = if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        return dollar("$numberDouble", name, out);
    }
    let plain = number == 0.0 || (1e-6..1e21).contains(&number.abs());
    let start = out.len();
    // Writing to a string cannot fail.
    let _ = if plain { write!(out, "{number}") } else { write!(out, "{number:e}") };
    if plain && !out[start..].contains('.') {
        out.push_str(".0");
    }
}

fn dollar(name: &str, text: &str, out: &mut String) {
    out.push('{');
    string(name, out);
    out.push(':');
    string(text, out);
    out.push('}');
}

fn extended(node: Node<'_>, out: &mut String) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match node {
        Node::Decimal128(bytes) => {
            dollar("$numberDecimal", &Decimal::read(bytes).to_string(), out);
        }
        Node::DateTime(time) => {
            let _ = write!(out, "{{\"$date\":{{\"$numberLong\":\"{time}\"}}}}");
        }
        Node::ObjectId(id) => dollar("$oid", &hex(id), out),
        Node::Binary { subtype, bytes } => {
            out.push_str("{\"$binary\":{\"base64\":\"");
            base64(bytes, out);
            let _ = write!(out, "\",\"subType\":\"{subtype:02x}\"}}}}");
        }
        Node::Timestamp(time) => {
            let (seconds, count) = (time >> 32, time & 0xffff_ffff);
            let _ = write!(out, "{{\"$timestamp\":{{\"t\":{seconds},\"i\":{count}}}}}");
        }
        Node::Regex { pattern, options } => {
            out.push_str("{\"$regularExpression\":{\"pattern\":");
            string(pattern, out);
            out.push_str(",\"options\":");
            string(options, out);
            out.push_str("}}");
        }
        Node::JavaScript(text) => dollar("$code", text, out),
        Node::MinKey => out.push_str("{\"$minKey\":1}"),
        Node::MaxKey => out.push_str("{\"$maxKey\":1}"),
        _ => out.push_str("null"),
    }
}

fn base64(bytes: &[u8], out: &mut String) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = (word >> (18 - 6 * place)) & 63;
            let letter = ALPHABET[sextet as usize];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Value;

    #[test]
    fn types_beyond_json_are_written_as_extended_json() {
        let text = |value: Value| value.to_json();
        assert_eq!(text(Value::ObjectId([0xab; 12])), r#"{"$oid":"abababababababababababab"}"#);
        assert_eq!(text(Value::DateTime(-5)), r#"{"$date":{"$numberLong":"-5"}}"#);
        let binary = |bytes: &[u8]| text(Value::Binary { subtype: 4, bytes: bytes.to_vec() });
        assert_eq!(binary(b"a"), r#"{"$binary":{"base64":"YQ==","subType":"04"}}"#);
        assert_eq!(binary(b"ab"), r#"{"$binary":{"base64":"YWI=","subType":"04"}}"#);
        assert_eq!(binary(b"abc"), r#"{"$binary":{"base64":"YWJj","subType":"04"}}"#);
        assert_eq!(text(Value::Double(f64::NAN)), r#"{"$numberDouble":"NaN"}"#);
        assert_eq!(text(Value::Timestamp((7 << 32) | 9)), r#"{"$timestamp":{"t":7,"i":9}}"#);
    }

    #[test]
    fn doubles_are_short_and_stay_doubles() {
        let text = |number: f64| Value::Double(number).to_json();
        assert_eq!(text(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(text(1e21), "1e21");
        assert_eq!(text(123456789012345680000.0), "123456789012345680000.0");
        assert_eq!(text(1e-7), "1e-7");
        assert_eq!(text(-2.5e-300), "-2.5e-300");
    }
}
