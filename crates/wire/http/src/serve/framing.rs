//! Where the heads of requests are in what a client sends, so that their line ends can be checked.
//!
//! The HTTP parser takes a line feed alone for the end of a line. Proxies differ in what they take it for, which is how
//! requests are smuggled past them. Here such a line feed becomes a sign that the parser refuses with 400, like whatever
//! else of the framing makes no sense. All other bytes pass unchanged.

use memchr::memchr;

/// What no part of a head may contain, so that the parser refuses it.
const REFUSED: u8 = 0;
/// The most of a line that is kept. No line that says how long a body is needs half as much.
const LINE_BYTES_MAX: usize = 256;
/// The most digits of the size of a chunk.
const SIZE_DIGITS_MAX: u32 = 16;

/// Follows the bytes of one connection.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    state: Expecting,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    length: u64,
    is_chunked: bool,
    has_request_line: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expecting {
    #[default]
    Head,
    /// So many bytes of a body are still to come.
    Body(u64),
    /// In the size of a chunk, after so many digits.
    Size(u64, u32),
    /// Behind the size, in what is said of the chunk.
    Extension(u64),
    /// The line feed behind the size.
    SizeEnd(u64),
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    ChunkEndLine,
    /// Behind the last chunk.
    Trailers,
    /// The parser is about to refuse, or has: nothing counts any more.
    Lost,
}

impl Framing {
    /// Looks at the next bytes, and makes those that must not be there unreadable.
    pub(crate) fn pass(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() && self.state != Expecting::Lost {
            let used = match self.state {
                Expecting::Head | Expecting::Trailers => self.line(bytes),
                Expecting::Body(left) => {
                    let used = skipped(left, bytes);
                    let left = left - used as u64;
                    self.state = if left == 0 { Expecting::Head } else { Expecting::Body(left) };
                    used
                }
                Expecting::Chunk(left) => {
                    let used = skipped(left, bytes);
                    let left = left - used as u64;
                    self.state =
                        if left == 0 { Expecting::ChunkEnd } else { Expecting::Chunk(left) };
                    used
                }
                _ => {
                    self.state = self.between_chunks(bytes[0]);
                    if self.state == Expecting::Lost {
                        bytes[0] = REFUSED;
                    }
                    1
                }
            };
            bytes = &mut bytes[used..];
        }
    }

    /// Takes a line, or the beginning of one.
    fn line(&mut self, bytes: &mut [u8]) -> usize {
        let Some(end) = memchr(b'\n', bytes) else {
            self.keep(bytes);
            return bytes.len();
        };
        let before = if end > 0 { bytes.get(end - 1) } else { self.line.last() };
        if before != Some(&b'\r') {
            bytes[end] = REFUSED;
            self.state = Expecting::Lost;
            return end + 1;
        }
        self.keep(&bytes[..end]);
        let line = std::mem::take(&mut self.line);
        let understood = self.line_ended(line.strip_suffix(b"\r").unwrap_or(&line));
        if !understood {
            bytes[end] = REFUSED;
            self.state = Expecting::Lost;
        }
        self.line = line;
        self.line.clear();
        end + 1
    }

    /// Keeps the beginning of a line, and its last byte behind it.
    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        let (kept, beyond) = bytes.split_at(room.min(bytes.len()));
        self.line.extend_from_slice(kept);
        if let (Some(last), Some(place)) = (beyond.last(), self.line.last_mut()) {
            *place = *last;
        }
    }

    /// Says whether a line makes sense as far as it is about the length of the body.
    fn line_ended(&mut self, line: &[u8]) -> bool {
        if line.is_empty() {
            self.head_ended();
            return true;
        }
        if !self.has_request_line {
            self.has_request_line = true;
            return true;
        }
        if self.state == Expecting::Trailers {
            return true;
        }
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = value.trim_ascii();
            let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            self.length = number.unwrap_or(0);
            return is_number && number.is_some() && line.len() < LINE_BYTES_MAX - 1;
        }
        self.is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding");
        true
    }

    fn head_ended(&mut self) {
        if self.state == Expecting::Head && !self.has_request_line {
            // Empty lines before a request are none of it.
            return;
        }
        self.state = match (self.state, self.is_chunked, self.length) {
            (Expecting::Trailers, _, _) | (_, false, 0) => Expecting::Head,
            (_, true, _) => Expecting::Size(0, 0),
            (_, false, length) => Expecting::Body(length),
        };
        (self.length, self.is_chunked, self.has_request_line) = (0, false, false);
    }

    fn between_chunks(&self, byte: u8) -> Expecting {
        match (self.state, byte) {
            (Expecting::Size(size, digits), _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                match digits < SIZE_DIGITS_MAX {
                    true => Expecting::Size(size << 4 | u64::from(digit), digits + 1),
                    false => Expecting::Lost,
                }
            }
            (Expecting::Size(_, 0), _) => Expecting::Lost,
            (Expecting::Size(size, _) | Expecting::Extension(size), b'\r') => {
                Expecting::SizeEnd(size)
            }
            (Expecting::Size(size, _), b';' | b' ' | b'\t') => Expecting::Extension(size),
            (Expecting::Extension(size), _) if byte != b'\n' => Expecting::Extension(size),
            (Expecting::SizeEnd(0), b'\n') => Expecting::Trailers,
            (Expecting::SizeEnd(size), b'\n') => Expecting::Chunk(size),
            (Expecting::ChunkEnd, b'\r') => Expecting::ChunkEndLine,
            (Expecting::ChunkEndLine, b'\n') => Expecting::Size(0, 0),
            _ => Expecting::Lost,
        }
    }
}

/// How many of these bytes belong to a body of which so much is left.
fn skipped(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a text that comes in one piece, and byte by byte.
    fn passed(text: &str) -> String {
        let mut whole = text.as_bytes().to_vec();
        Framing::default().pass(&mut whole);
        let (mut single, mut framing) = (text.as_bytes().to_vec(), Framing::default());
        single.chunks_mut(1).for_each(|byte| framing.pass(byte));
        assert_eq!(whole, single, "{text:?}");
        String::from_utf8(whole).unwrap()
    }

    fn is_refused(text: &str) -> bool {
        passed(text).contains('\0')
    }

    #[test]
    fn requests_pass_unchanged_one_behind_the_other() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "PUT / HTTP/1.1\r\ncontent-length: 4\r\n\r\na\nb\nGET / HTTP/1.1\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\na\nb\r\n0\r\n\r\nGET /",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nA: b\r\n\
             \r\nGET / HTTP/1.1\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ] {
            assert_eq!(passed(text), text);
        }
        let long = format!("GET /{} HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(999), "b".repeat(999));
        assert_eq!(passed(&long), long);
    }

    #[test]
    fn a_line_feed_alone_ends_no_line() {
        for text in [
            "\n",
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "GET / HTTP/1.1\r\nA: b\nContent-Length: 5\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\nabGET / HTTP/1.1\nA: b\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\nA: b\r\n",
        ] {
            assert!(is_refused(text), "{text:?}");
        }
    }

    #[test]
    fn a_length_that_is_none_is_refused() {
        for length in ["", "x", "+1", "1,1", "0x1", "18446744073709551616", &"1".repeat(300)] {
            let text = format!("PUT / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
            assert!(is_refused(&text), "{text:?}");
        }
        for size in ["", "x", "11111111111111111"] {
            let head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
            assert!(is_refused(&format!("{head}{size}\r\n")), "{size}");
        }
    }
}
