//! Reading JSON text, part by part, into a sink.
//!
//! A whole number without fraction and exponent that fits is an integer; every other number is the nearest double. A
//! number beyond the doubles is refused, and so is half of a surrogate pair. `-0` is the double of that name.

use super::{Sink, plain_length};
use crate::ReadError;
use crate::limits::{DEPTH_MAX, TEXT_BYTES_MAX};

/// Reads one JSON value and nothing after it.
pub(crate) fn parse(text: &[u8], sink: &mut impl Sink) -> Result<(), ReadError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ReadError::new(0, "the text is too long"));
    }
    let text = std::str::from_utf8(text)
        .map_err(|error| ReadError::new(error.valid_up_to(), "the text is not UTF-8"))?;
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, scratch: String::new(), sink };
    reader.value(0)?;
    reader.spaces();
    if reader.at == text.len() { Ok(()) } else { reader.fail("more text after the value") }
}

struct Reader<'t, 's, S> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    scratch: String,
    sink: &'s mut S,
}

impl<'t, S: Sink> Reader<'t, '_, S> {
    fn fail<T>(&self, reason: &'static str) -> Result<T, ReadError> {
        Err(ReadError::new(self.at, reason))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn spaces(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), ReadError> {
        self.spaces();
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                if let Some(plain) = self.string()? {
                    self.sink.string(plain);
                } else {
                    self.sink.string(&self.scratch);
                }
                Ok(())
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true").map(|()| self.sink.bool(true)),
            Some(b'f') => self.word("false").map(|()| self.sink.bool(false)),
            Some(b'n') => self.word("null").map(|()| self.sink.null()),
            Some(_) => self.fail("no value begins like this"),
            None => self.fail("the text ends where a value should be"),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), ReadError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return self.fail("no value begins like this");
        }
        self.at += word.len();
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), ReadError> {
        if depth >= DEPTH_MAX {
            return self.fail("the text is nested too deeply");
        }
        self.at += 1;
        self.sink.begin_array();
        self.spaces();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.sink.end_array();
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.spaces();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.fail("an array goes on with ',' or ends with ']'"),
            }
        }
        self.at += 1;
        self.sink.end_array();
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), ReadError> {
        if depth >= DEPTH_MAX {
            return self.fail("the text is nested too deeply");
        }
        self.at += 1;
        self.sink.begin_object();
        self.spaces();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.sink.end_object();
            return Ok(());
        }
        loop {
            self.spaces();
            if self.peek() != Some(b'"') {
                return self.fail("a property begins with its name in quotes");
            }
            self.at += 1;
            if let Some(plain) = self.string()? {
                self.sink.name(plain);
            } else {
                self.sink.name(&self.scratch);
            }
            self.spaces();
            if self.peek() != Some(b':') {
                return self.fail("a name is followed by ':'");
            }
            self.at += 1;
            self.value(depth + 1)?;
            self.spaces();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.fail("an object goes on with ',' or ends with '}'"),
            }
        }
        self.at += 1;
        self.sink.end_object();
        Ok(())
    }

    /// A string after its opening quote: a piece of the text, or none if it had escapes and is in `scratch`.
    fn string(&mut self) -> Result<Option<&'t str>, ReadError> {
        let start = self.at;
        self.plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Some(&self.text[start..self.at - 1]));
        }
        self.scratch.clear();
        self.scratch.push_str(&self.text[start..self.at]);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(None);
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return self.fail("a control character in a string"),
                None => return self.fail("the text ends inside of a string"),
            }
            let start = self.at;
            self.plain();
            self.scratch.push_str(&self.text[start..self.at]);
        }
    }

    /// Goes on to the next byte that is no ordinary part of a string.
    fn plain(&mut self) {
        self.at += plain_length(&self.bytes[self.at..]);
    }

    fn escape(&mut self) -> Result<(), ReadError> {
        let escaped = match self.bytes.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let character = self.unicode()?;
                self.scratch.push(character);
                return Ok(());
            }
            _ => return self.fail("an unknown escape in a string"),
        };
        self.scratch.push(escaped);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self) -> Result<char, ReadError> {
        let first = self.unit(self.at)?;
        let (code, length) = match first {
            0xd800..=0xdbff => {
                let second = self.unit(self.at + 6)?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return self.fail("half of a surrogate pair");
                }
                (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
            }
            _ => (first, 6),
        };
        match char::from_u32(code) {
            Some(character) => {
                self.at += length;
                Ok(character)
            }
            None => self.fail("half of a surrogate pair"),
        }
    }

    /// The four digits of `\uXXXX` at a place.
    fn unit(&self, at: usize) -> Result<u32, ReadError> {
        let Some(escape) = self.bytes.get(at..at + 6).filter(|it| it.starts_with(b"\\u")) else {
            return self.fail("an escape needs four digits, and half of a pair its other half");
        };
        let mut unit = 0;
        for byte in &escape[2..] {
            let Some(digit) = char::from(*byte).to_digit(16) else {
                return self.fail("an escape needs four hexadecimal digits");
            };
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits_at = self.at;
        self.digits()?;
        if self.at - digits_at > 1 && self.bytes[digits_at] == b'0' {
            return self.fail("a number begins with a needless zero");
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        let integer = if whole && text != "-0" { text.parse::<i64>().ok() } else { None };
        if let Some(number) = integer {
            self.sink.int64(number);
            return Ok(());
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => {
                self.sink.double(number);
                Ok(())
            }
            _ => Err(ReadError::new(start, "a number that is too large")),
        }
    }

    fn digits(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { self.fail("a number needs digits") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Value, encode_json};

    fn refused(text: &str) -> &'static str {
        let reason = Value::from_json(text.as_bytes()).expect_err(text).reason;
        assert_eq!(encode_json(text.as_bytes()).expect_err(text).reason, reason);
        reason
    }

    #[track_caller]
    fn becomes(text: &str, expected: &str) {
        let value = Value::from_json(text.as_bytes()).unwrap();
        assert_eq!(value.to_json(), expected);
        let bytes = encode_json(text.as_bytes()).unwrap();
        assert_eq!(bytes, value.encode());
        assert_eq!(crate::View::parse(&bytes).unwrap().to_json(), expected);
    }

    #[test]
    fn numbers_keep_type_and_value() {
        becomes("9223372036854775807", "9223372036854775807");
        becomes("-9223372036854775808", "-9223372036854775808");
        becomes("9223372036854775808", "9223372036854776000.0");
        becomes("1.0", "1.0");
        becomes("1e2", "100.0");
        becomes("-0", "-0.0");
        becomes("0.1", "0.1");
        becomes("1e300", "1e300");
        becomes("1.5E-9", "1.5e-9");
        becomes("5e-324", "5e-324");
        assert_eq!(refused("1e400"), "a number that is too large");
        assert_eq!(refused("01"), "a number begins with a needless zero");
        assert_eq!(refused("1."), "a number needs digits");
        assert_eq!(refused("-"), "a number needs digits");
    }

    #[test]
    fn strings_keep_every_character() {
        becomes(r#""\u00e9\n\"\\\/\ud83d\ude00é""#, "\"é\\n\\\"\\\\/😀é\"");
        becomes(r#""\u0001""#, r#""\u0001""#);
        assert_eq!(
            refused(r#""\ud83d""#),
            "an escape needs four digits, and half of a pair its other half"
        );
        assert_eq!(refused(r#""\ude00""#), "half of a surrogate pair");
        assert_eq!(refused("\"a\nb\""), "a control character in a string");
        assert_eq!(refused("\"abc"), "the text ends inside of a string");
    }

    #[test]
    fn the_last_of_two_properties_of_one_name_wins_in_the_place_of_the_first() {
        becomes(r#"{"a":1,"b":2,"a":{"c":1,"c":[3]}}"#, r#"{"a":{"c":[3]},"b":2}"#);
        let many: Vec<String> = (0..40).map(|n| format!("\"n{}\":{n}", n % 20)).collect();
        let value = Value::from_json(format!("{{{}}}", many.join(",")).as_bytes()).unwrap();
        becomes(&format!("{{{}}}", many.join(",")), &value.to_json());
        assert!(value.to_json().starts_with(r#"{"n0":20,"#));
    }

    #[test]
    fn depth_is_limited_and_rests_are_refused() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        becomes(&nested(128), &nested(128));
        assert_eq!(refused(&nested(129)), "the text is nested too deeply");
        assert_eq!(refused("1 2"), "more text after the value");
        assert_eq!(refused("{\"a\":1,}"), "a property begins with its name in quotes");
        assert_eq!(refused("[1,]"), "no value begins like this");
        assert_eq!(refused(""), "the text ends where a value should be");
        assert_eq!(refused("nul"), "no value begins like this");
    }
}
