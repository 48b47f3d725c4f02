//! The head of an answer: status, headers, and how long the body is.

use std::fmt;

/// The most headers of an answer that are read.
const HEADERS_MAX: usize = 128;

/// An answer up to its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

/// How an answer says where its body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    Bytes(u64),
    Chunked,
    /// With the connection.
    UntilClose,
}

/// The bytes are not the head of an HTTP answer, or it has too many headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHttp;

impl fmt::Display for NotHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is not HTTP")
    }
}

impl Head {
    /// The head and how many bytes it has; none if it is not complete yet.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, NotHttp> {
        let mut slots = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut read = httparse::Response::new(&mut slots);
        let httparse::Status::Complete(length) = read.parse(bytes).map_err(|_| NotHttp)? else {
            return Ok(None);
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = read.headers.iter().map(|it| (it.name.to_owned(), text(it.value)));
        let head = Self { status: read.code.ok_or(NotHttp)?, headers: headers.collect() };
        Ok(Some((head, length)))
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// How long the body is, unless the request was a `HEAD`: such an answer has none.
    pub fn body_length(&self) -> Result<BodyLength, NotHttp> {
        if self.header("transfer-encoding").is_some() {
            return Ok(BodyLength::Chunked);
        }
        match self.header("content-length") {
            Some(text) => text.parse().map(BodyLength::Bytes).map_err(|_| NotHttp),
            None if matches!(self.status, 100..=199 | 204 | 304) => Ok(BodyLength::Bytes(0)),
            None => Ok(BodyLength::UntilClose),
        }
    }

    /// Whether the server closes the connection behind the answer.
    pub fn ends_connection(&self) -> bool {
        self.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Head, usize) {
        Head::parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn an_answer_says_where_it_ends() {
        let length = |text: &str| read(text).0.body_length();
        assert_eq!(length("HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n"), Ok(BodyLength::Bytes(0)));
        let sized = "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nrest";
        assert_eq!(length(sized), Ok(BodyLength::Bytes(12)));
        assert_eq!(read(sized).1, sized.len() - 4);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(length(chunked), Ok(BodyLength::Chunked));
        assert_eq!(length("HTTP/1.0 200 OK\r\n\r\n"), Ok(BodyLength::UntilClose));
        assert_eq!(length("HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"), Err(NotHttp));
    }

    #[test]
    fn what_is_incomplete_waits_and_what_is_no_http_is_refused() {
        assert_eq!(Head::parse(b""), Ok(None));
        assert_eq!(Head::parse(b"HTTP/1.1 200 OK\r\na: b\r\n"), Ok(None));
        for bad in [&b"SSH-2.0\r\n\r\n"[..], b"hello\r\n\r\n", b"HTTP/1.1 \r\n\r\n"] {
            assert_eq!(Head::parse(bad), Err(NotHttp));
        }
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(Head::parse(many.as_bytes()), Err(NotHttp));
    }
}
