//! Writing replies: one buffer per connection, the shapes of RESP2 or RESP3 as the client has chosen.

use crate::number::double_text;

/// Replies that are not sent yet.
#[derive(Debug, Default)]
pub struct Reply {
    pub bytes: Vec<u8>,
    /// Whether the client has chosen RESP3.
    pub is_resp3: bool,
}

impl Reply {
    pub fn new(is_resp3: bool) -> Self {
        Self { bytes: Vec::new(), is_resp3 }
    }

    #[inline]
    fn head(&mut self, kind: u8, count: i64) {
        let mut digits = itoa::Buffer::new();
        self.bytes.push(kind);
        self.bytes.extend_from_slice(digits.format(count).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// A status; it must not hold an end of a line.
    pub fn simple(&mut self, text: &str) {
        self.bytes.push(b'+');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// An error, its code first. Ends of lines become blanks.
    pub fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        let clean = |it: u8| if it == b'\r' || it == b'\n' { b' ' } else { it };
        self.bytes.extend(text.trim_end_matches(['\r', '\n']).bytes().map(clean));
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.head(b':', value);
    }

    pub fn count(&mut self, value: usize) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.bytes.reserve(bytes.len() + 16);
        self.head(b'$', bytes.len() as i64);
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// The bulk string, or null.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// An integer as a bulk string.
    pub fn bulk_integer(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        let text = digits.format(value).to_owned();
        self.text(&text);
    }

    #[inline]
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(if self.is_resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    pub fn null_array(&mut self) {
        self.bytes.extend_from_slice(if self.is_resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    pub fn array(&mut self, count: usize) {
        self.head(b'*', count as i64);
    }

    /// A map of so many pairs: twice as many elements in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.is_resp3 {
            true => self.head(b'%', pairs as i64),
            false => self.head(b'*', 2 * pairs as i64),
        }
    }

    pub fn set(&mut self, count: usize) {
        self.head(if self.is_resp3 { b'~' } else { b'*' }, count as i64);
    }

    /// An out-of-band message: an array in RESP2.
    pub fn push(&mut self, count: usize) {
        self.head(if self.is_resp3 { b'>' } else { b'*' }, count as i64);
    }

    pub fn double(&mut self, value: f64) {
        let text = double_text(value);
        if !self.is_resp3 {
            return self.text(&text);
        }
        self.bytes.push(b',');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub fn boolean(&mut self, value: bool) {
        match (self.is_resp3, value) {
            (true, true) => self.bytes.extend_from_slice(b"#t\r\n"),
            (true, false) => self.bytes.extend_from_slice(b"#f\r\n"),
            (false, _) => self.integer(i64::from(value)),
        }
    }

    /// A text with a format of three letters (`txt`, `mkd`): a bulk string in RESP2.
    pub fn verbatim(&mut self, format: &str, text: &str) {
        debug_assert_eq!(format.len(), 3, "the format of a verbatim text has three letters");
        if !self.is_resp3 {
            return self.text(text);
        }
        self.head(b'=', text.len() as i64 + 4);
        self.bytes.extend_from_slice(format.as_bytes());
        self.bytes.push(b':');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A number of any size: a bulk string in RESP2.
    pub fn big_number(&mut self, digits: &str) {
        if !self.is_resp3 {
            return self.text(digits);
        }
        self.bytes.push(b'(');
        self.bytes.extend_from_slice(digits.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: fn(&mut Reply)) -> (String, String) {
        let one = |is_resp3| {
            let mut reply = Reply::new(is_resp3);
            write(&mut reply);
            String::from_utf8(reply.bytes).unwrap()
        };
        (one(false), one(true))
    }

    #[test]
    fn the_same_reply_has_two_shapes() {
        let same = |text: &str| (text.to_owned(), text.to_owned());
        let two = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(both(|it| it.bulk(b"a\r\n")), same("$3\r\na\r\n\r\n"));
        assert_eq!(both(|it| it.error("ERR a\r\nb\r\n")), same("-ERR a  b\r\n"));
        assert_eq!(both(|it| it.null()), two("$-1\r\n", "_\r\n"));
        assert_eq!(both(|it| it.null_array()), two("*-1\r\n", "_\r\n"));
        assert_eq!(both(|it| it.map(2)), two("*4\r\n", "%2\r\n"));
        assert_eq!(both(|it| it.set(1)), two("*1\r\n", "~1\r\n"));
        assert_eq!(both(|it| it.push(3)), two("*3\r\n", ">3\r\n"));
        assert_eq!(both(|it| it.double(1.5)), two("$3\r\n1.5\r\n", ",1.5\r\n"));
        assert_eq!(both(|it| it.boolean(true)), two(":1\r\n", "#t\r\n"));
        assert_eq!(both(|it| it.verbatim("txt", "a")), two("$1\r\na\r\n", "=5\r\ntxt:a\r\n"));
        assert_eq!(both(|it| it.big_number("12")), two("$2\r\n12\r\n", "(12\r\n"));
    }
}
