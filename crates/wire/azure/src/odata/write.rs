//! Properties as JSON text, with as many notes on types as the client asked for.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::value::{EdmType, Value};
use lazuli_http::date::{Fraction, write_iso8601};

/// How much an answer says about its own types and addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    None,
    #[default]
    Minimal,
    Full,
}

impl Metadata {
    /// From an `Accept` header or a `$format` parameter. `None` if JSON is not among what is asked for.
    pub fn parse(accept: &str) -> Option<Self> {
        let mut found = None;
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or("");
            let json = media.eq_ignore_ascii_case("application/json")
                || matches!(media, "*/*" | "application/*" | "" | "json");
            if !json {
                continue;
            }
            let level = parts.find_map(|part| part.strip_prefix("odata=")).unwrap_or("");
            let level = match level {
                _ if level.eq_ignore_ascii_case("nometadata") => Self::None,
                _ if level.eq_ignore_ascii_case("fullmetadata") => Self::Full,
                _ => Self::Minimal,
            };
            found = found.or(Some(level));
        }
        found
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// Writes text between quotation marks, escaped.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    if is_plain(text.as_bytes()) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    // Writing to memory can't fail.
    let _ = serde_json::to_writer(out, text);
}

/// Writes stored text between quotation marks, escaped, and says whether it was text at all. Most of it is ASCII without
/// anything to escape, which is seen in the same glance, so that only the rest is checked for UTF-8.
#[inline]
pub fn write_stored_text(out: &mut Vec<u8>, text: &[u8]) -> bool {
    if any_word(text, |word| odd_bytes(word) | (word & HIGH_BITS)) {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        write_string(out, text);
        return true;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
    true
}

/// Whether text stands in JSON as it is.
fn is_plain(text: &[u8]) -> bool {
    !any_word(text, odd_bytes)
}

const EACH_BYTE: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = EACH_BYTE * 0x80;

/// Whether the test finds something in one of the eight-byte words that cover the text. The last word overlaps the one
/// before it; what is too short for one is filled up with spaces, in which no test finds anything.
fn any_word(text: &[u8], test: impl Fn(u64) -> u64) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let found = words.iter().fold(0, |found, word| found | test(u64::from_le_bytes(*word)));
    let last = match (rest, text.last_chunk::<8>()) {
        ([], _) => return found != 0,
        (_, Some(last)) => u64::from_le_bytes(*last),
        (rest, None) => {
            rest.iter().fold(EACH_BYTE * b' ' as u64, |word, byte| word << 8 | u64::from(*byte))
        }
    };
    (found | test(last)) != 0
}

/// Not 0 if one of eight bytes is a control character, a quotation mark or a backslash. A subtraction reaches over into
/// the next byte only behind a byte that counts by itself, so no other eight bytes are taken for such.
fn odd_bytes(word: u64) -> u64 {
    let control = word.wrapping_sub(EACH_BYTE * 0x20) & !word;
    let quotation = (word ^ (EACH_BYTE * b'"' as u64)).wrapping_sub(EACH_BYTE) & !word;
    let backslash = (word ^ (EACH_BYTE * b'\\' as u64)).wrapping_sub(EACH_BYTE) & !word;
    (control | quotation | backslash) & HIGH_BITS
}

/// Writes `"name":"text"`.
pub fn write_text_property(out: &mut Vec<u8>, name: &str, text: &str) {
    write_string(out, name);
    out.push(b':');
    write_string(out, text);
}

/// Writes `"name":null`, for a property that was asked for and is not there.
pub fn write_null(out: &mut Vec<u8>, name: &str) {
    write_string(out, name);
    out.extend_from_slice(b":null");
}

/// Writes `"name":value`, after a note on its type if the level wants one and JSON alone doesn't tell it.
pub fn write_property(out: &mut Vec<u8>, name: &str, value: &Value<'_>, level: Metadata) {
    if let Some(kind) = type_note(value, level) {
        write_string(out, name);
        // The note stands inside of the quotation marks.
        out.pop();
        out.extend_from_slice(b"@odata.type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",");
    }
    write_string(out, name);
    out.push(b':');
    write_value(out, value);
}

/// The type that a note in front of the property names, if the level wants one and JSON alone doesn't tell it.
#[inline]
pub fn type_note(value: &Value<'_>, level: Metadata) -> Option<&'static str> {
    (level != Metadata::None && needs_note(value)).then(|| value.kind().name())
}

#[inline]
pub fn write_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Int32(value) => write_integer(out, i64::from(*value)),
        Value::Int64(value) => {
            out.push(b'"');
            write_integer(out, *value);
            out.push(b'"');
        }
        Value::Double(value) => write_double(out, *value),
        Value::String(text) => write_string(out, text),
        Value::Guid(guid) => {
            let _ = write!(out, "\"{guid}\"");
        }
        Value::DateTime(ticks) => {
            out.push(b'"');
            write_iso8601(out, *ticks, Fraction::Shortest);
            out.push(b'"');
        }
        Value::Binary(bytes) => {
            let _ = write!(out, "\"{}\"", STANDARD.encode(bytes));
        }
    }
}

fn write_integer(out: &mut Vec<u8>, value: i64) {
    // Writing to memory can't fail.
    let _ = serde_json::to_writer(out, &value);
}

fn needs_note(value: &Value<'_>) -> bool {
    match value.kind() {
        EdmType::Boolean | EdmType::Int32 | EdmType::String => false,
        EdmType::Double => matches!(value, Value::Double(value) if !value.is_finite()),
        EdmType::Binary | EdmType::DateTime | EdmType::Guid | EdmType::Int64 => true,
    }
}

fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if value.is_infinite() {
        let text: &[u8] = if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" };
        out.extend_from_slice(text);
    } else {
        // A whole number keeps its `.0`, or it would come back as an Int32.
        let _ = serde_json::to_writer(out, &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::odata::{Guid, read_entity};

    #[test]
    fn every_value_comes_back_as_it_was_written() {
        let guid = Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap();
        let values = [
            Value::Binary(vec![0, 1, 255].into()),
            Value::Boolean(true),
            Value::DateTime(17_149_792_891_234_567),
            Value::Double(200.23),
            Value::Double(1.0),
            Value::Double(-0.0),
            Value::Double(f64::MAX),
            Value::Double(f64::MIN_POSITIVE),
            Value::Double(f64::NEG_INFINITY),
            Value::Guid(guid),
            Value::Int32(i32::MIN),
            Value::Int64(i64::MIN),
            Value::String("a\"\\\u{1}ä😀".into()),
        ];
        for level in [Metadata::Minimal, Metadata::Full] {
            for value in &values {
                let mut out = b"{".to_vec();
                write_property(&mut out, "Na\"me", value, level);
                out.push(b'}');
                let read = read_entity(&out).unwrap();
                assert_eq!(read, [("Na\"me".into(), value.clone())]);
            }
        }
    }

    #[test]
    fn text_is_escaped_wherever_it_must_be() {
        let text = |text: &str| {
            let mut out = Vec::new();
            write_string(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(""), r#""""#);
        assert_eq!(text("plain ä😀\u{7f}"), "\"plain ä😀\u{7f}\"");
        for byte in 0..0x80u8 {
            for before in 0..18 {
                for behind in 0..18 {
                    let [before, behind] = [before, behind].map(|count| "~".repeat(count));
                    let one = format!("{before}{}{behind}", char::from(byte));
                    let expected = serde_json::to_string(&one).unwrap();
                    assert_eq!(text(&one), expected);
                    let mut stored = Vec::new();
                    assert!(write_stored_text(&mut stored, one.as_bytes()));
                    assert_eq!(String::from_utf8(stored).unwrap(), expected);
                }
            }
        }
    }

    #[test]
    fn stored_text_is_written_if_it_is_text() {
        for length in 0..20 {
            let mut bytes = vec![b'a'; length];
            bytes.extend_from_slice("ä\"😀".as_bytes());
            let mut out = Vec::new();
            assert!(write_stored_text(&mut out, &bytes));
            let expected = serde_json::to_string(std::str::from_utf8(&bytes).unwrap()).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            bytes.push(0xff);
            assert!(!write_stored_text(&mut Vec::new(), &bytes));
        }
    }

    #[test]
    fn notes_are_written_where_json_does_not_tell_the_type() {
        let text = |value: &Value<'_>, level| {
            let mut out = Vec::new();
            write_property(&mut out, "A", value, level);
            String::from_utf8(out).unwrap()
        };
        let long = Value::Int64(5);
        assert_eq!(text(&long, Metadata::None), r#""A":"5""#);
        assert_eq!(text(&long, Metadata::Minimal), r#""A@odata.type":"Edm.Int64","A":"5""#);
        assert_eq!(text(&Value::Double(1.0), Metadata::Full), r#""A":1.0"#);
        assert_eq!(
            text(&Value::Double(f64::NAN), Metadata::Minimal),
            r#""A@odata.type":"Edm.Double","A":"NaN""#
        );
    }

    #[test]
    fn the_level_is_read_from_what_is_accepted() {
        let parse = Metadata::parse;
        assert_eq!(parse("application/json;odata=minimalmetadata"), Some(Metadata::Minimal));
        assert_eq!(parse("application/json; odata=fullmetadata"), Some(Metadata::Full));
        assert_eq!(
            parse("application/atom+xml,application/json;odata=nometadata"),
            Some(Metadata::None)
        );
        assert_eq!(parse("*/*"), Some(Metadata::Minimal));
        assert_eq!(parse("application/json"), Some(Metadata::Minimal));
        assert_eq!(parse("application/atom+xml"), None);
    }
}
