//! The parts of a request's address: percent-decoding and query parameters, total and bounded.

use std::borrow::Cow;

/// The most query parameters that are looked at. No operation has half as many.
pub const QUERY_PARAMETERS_MAX: usize = 64;

/// Why an address can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriError {
    /// A percent sign without two hexadecimal digits behind it.
    BadEscape,
    /// The decoded bytes are not UTF-8.
    NotText,
    TooManyParameters,
}

/// Replaces `%XX` by the byte it stands for.
pub fn percent_decode(text: &str) -> Result<Cow<'_, str>, UriError> {
    decode(text, false)
}

fn decode(text: &str, plus_is_space: bool) -> Result<Cow<'_, str>, UriError> {
    if !text.bytes().any(|b| b == b'%' || (plus_is_space && b == b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' => {
                let [high, low, tail @ ..] = tail else { return Err(UriError::BadEscape) };
                out.push(hex_digit(*high)? << 4 | hex_digit(*low)?);
                rest = tail;
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(*byte),
        }
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| UriError::NotText)
}

fn hex_digit(byte: u8) -> Result<u8, UriError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(UriError::BadEscape),
    }
}

/// Writes text so that it can stand in a path, a query value or a header: everything but unreserved characters escaped.
pub fn percent_encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    out
}

/// The decoded parameters of a request, in the order they came.
#[derive(Debug, Default)]
pub struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub fn parse(text: &'a str) -> Result<Self, UriError> {
        let mut parameters = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            if parameters.len() == QUERY_PARAMETERS_MAX {
                return Err(UriError::TooManyParameters);
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            parameters.push((decode(name, true)?, decode(value, true)?));
        }
        Ok(Self(parameters))
    }

    /// All parameters, decoded.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// The first parameter of this name, in whatever case it was written.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(percent_decode("a%27b%2527"), Ok("a'b%27".into()));
        assert_eq!(percent_decode("a+b"), Ok("a+b".into()));
        assert_eq!(percent_decode("%C3%A4"), Ok("ä".into()));
        assert_eq!(percent_decode("%"), Err(UriError::BadEscape));
        assert_eq!(percent_decode("%4"), Err(UriError::BadEscape));
        assert_eq!(percent_decode("%zz"), Err(UriError::BadEscape));
        assert_eq!(percent_decode("%ff"), Err(UriError::NotText));
    }

    #[test]
    fn what_was_encoded_decodes_to_itself() {
        for text in ["", "plain", "a b/c'd?e=f&g+h%", "äöü€😀"] {
            assert_eq!(percent_decode(&percent_encode(text)), Ok(text.into()));
        }
    }

    #[test]
    fn a_query_keeps_order_and_finds_names_in_any_case() {
        let query = Query::parse("$Filter=a%20eq%201&&x&y=1+2&y=3").unwrap();
        assert_eq!(query.get("$filter"), Some("a eq 1"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("y"), Some("1 2"));
        assert_eq!(query.get("z"), None);
        let many = "a=1&".repeat(QUERY_PARAMETERS_MAX + 1);
        assert_eq!(Query::parse(&many).unwrap_err(), UriError::TooManyParameters);
    }
}
