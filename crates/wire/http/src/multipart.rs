//! Bodies of several parts (`multipart/mixed`), and requests and responses that are parts of them (`application/http`).
//!
//! Read as the storage services read them: lines may end with or without a carriage return, text before the first
//! boundary is skipped, and the end of the body may stand for the last boundary, because some clients leave it out.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use memchr::memchr;

use crate::message::Response;

/// The longest boundary that RFC 2046 allows.
pub const BOUNDARY_BYTES_MAX: usize = 70;
/// The most header lines of one part, and of one request in a part.
pub const PART_HEADERS_MAX: usize = 64;
/// What the clients at hand send with one request in a part, and some to spare.
const PART_HEADERS_USUAL: usize = 12;

/// Why a body of parts can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipartError {
    /// The media type is not `multipart/mixed`, or names no boundary.
    NoBoundary,
    /// Headers, request lines or boundaries are not where they must be.
    Malformed,
    /// There are more parts than the reader takes.
    TooManyParts,
}

/// One part: its headers and its body, as they stand in the whole one.
#[derive(Debug)]
pub struct Part<'a> {
    head: &'a [u8],
    pub body: &'a [u8],
}

impl<'a> Part<'a> {
    /// Names and values of the headers, in their order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.head;
        std::iter::from_fn(move || {
            let (line, tail) = split_line(rest);
            rest = tail;
            split_header(line)
        })
    }

    /// The value of a header, if it is there and text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers();
        let (_, value) = headers.find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))?;
        std::str::from_utf8(value).ok()
    }
}

/// A request in a part.
#[derive(Debug)]
pub struct PartRequest<'a> {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: &'a [u8],
}

/// The boundary that a `Content-Type` header names.
pub fn boundary(content_type: &str) -> Result<&str, MultipartError> {
    let mut fields = content_type.split(';').map(str::trim);
    let is_mixed = fields.next().is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/mixed"));
    let mut values = fields.filter_map(|field| field.split_once('='));
    let named = values.find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"));
    let boundary = named.map(|(_, value)| value.trim().trim_matches('"')).unwrap_or_default();
    if !is_mixed || boundary.is_empty() || boundary.len() > BOUNDARY_BYTES_MAX {
        return Err(MultipartError::NoBoundary);
    }
    Ok(boundary)
}

/// The parts of a body, at most `parts_max`.
pub fn parts<'a>(
    body: &'a [u8],
    boundary: &str,
    parts_max: usize,
) -> Result<Vec<Part<'a>>, MultipartError> {
    let mut parts = Vec::new();
    let (mut rest, mut begin) = (body, None);
    while !rest.is_empty() {
        let at = body.len() - rest.len();
        let (line, tail) = split_line(rest);
        rest = tail;
        let Some(last) = delimiter(line, boundary) else { continue };
        if let Some(begin) = begin {
            if parts.len() == parts_max {
                return Err(MultipartError::TooManyParts);
            }
            parts.push(part(without_line_end(&body[begin..at]))?);
        }
        if last {
            return Ok(parts);
        }
        begin = Some(body.len() - rest.len());
    }
    // What stands behind the last boundary is a part if there is anything.
    let left = begin.map(|begin| &body[begin..]).ok_or(MultipartError::Malformed)?;
    if !left.trim_ascii().is_empty() {
        if parts.len() == parts_max {
            return Err(MultipartError::TooManyParts);
        }
        parts.push(part(without_line_end(left))?);
    }
    Ok(parts)
}

/// The request that is the body of a part.
pub fn request<'a>(part: &Part<'a>) -> Result<PartRequest<'a>, MultipartError> {
    let mut rest = part.body;
    while let [b'\r' | b'\n', tail @ ..] = rest {
        rest = tail;
    }
    let (line, rest) = split_line(rest);
    let line = std::str::from_utf8(line).map_err(|_| MultipartError::Malformed)?;
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let (Some(method), Some(uri), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(MultipartError::Malformed);
    };
    if !version.starts_with("HTTP/1.") {
        return Err(MultipartError::Malformed);
    }
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| MultipartError::Malformed)?;
    let uri = uri.parse().map_err(|_| MultipartError::Malformed)?;
    let (headers, body) = headers(rest)?;
    Ok(PartRequest { method, uri, headers, body })
}

/// Writes a part whose body is a response.
pub async fn write_response(out: &mut Vec<u8>, boundary: &str, response: Response) {
    let status = response.status;
    for piece in [
        "--",
        boundary,
        "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 ",
        status.as_str(),
        " ",
        status.canonical_reason().unwrap_or_default(),
        "\r\n",
    ] {
        out.extend_from_slice(piece.as_bytes());
    }
    for (name, value) in &response.headers {
        write_name(out, name.as_str());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    // An answer of ours is all there, so collecting it copies nothing and can't fail.
    if let Ok(body) = response.body.collect(usize::MAX).await {
        out.extend_from_slice(&body);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the name of a header as the services write it. Some clients look for `ETag` and find no `etag`.
fn write_name(out: &mut Vec<u8>, name: &str) {
    match name {
        "etag" => out.extend_from_slice(b"ETag"),
        "content-id" => out.extend_from_slice(b"Content-ID"),
        "dataserviceid" => out.extend_from_slice(b"DataServiceId"),
        _ if name.starts_with("x-ms-") => out.extend_from_slice(name.as_bytes()),
        _ => {
            let mut at_start = true;
            for byte in name.bytes() {
                out.push(if at_start { byte.to_ascii_uppercase() } else { byte });
                at_start = byte == b'-';
            }
        }
    }
}

/// Whether a line is a boundary, and if so whether it is the last one.
fn delimiter(line: &[u8], boundary: &str) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary.as_bytes())?;
    let (last, padding) = match rest.strip_prefix(b"--") {
        Some(padding) => (true, padding),
        None => (false, rest),
    };
    padding.iter().all(|byte| matches!(byte, b' ' | b'\t')).then_some(last)
}

fn part(text: &[u8]) -> Result<Part<'_>, MultipartError> {
    let mut rest = text;
    for _ in 0..=PART_HEADERS_MAX {
        let at = text.len() - rest.len();
        let (line, tail) = split_line(rest);
        rest = tail;
        if line.is_empty() {
            return Ok(Part { head: &text[..at], body: rest });
        }
        split_header(line).ok_or(MultipartError::Malformed)?;
    }
    Err(MultipartError::Malformed)
}

/// The name and the value of a header line.
fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr(b':', line)?;
    Some((&line[..at], line[at + 1..].trim_ascii()))
}

/// Header lines up to an empty line, and what follows it.
fn headers(text: &[u8]) -> Result<(HeaderMap, &[u8]), MultipartError> {
    let mut headers = HeaderMap::with_capacity(PART_HEADERS_USUAL);
    let mut rest = text;
    for _ in 0..=PART_HEADERS_MAX {
        let (line, tail) = split_line(rest);
        rest = tail;
        if line.is_empty() {
            return Ok((headers, rest));
        }
        let (name, value) = split_header(line).ok_or(MultipartError::Malformed)?;
        let name = HeaderName::from_bytes(name).map_err(|_| MultipartError::Malformed)?;
        let value = HeaderValue::from_bytes(value).map_err(|_| MultipartError::Malformed)?;
        headers.append(name, value);
    }
    Err(MultipartError::Malformed)
}

/// The first line without its end, and what follows it.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', text) {
        Some(at) => (text[..at].strip_suffix(b"\r").unwrap_or(&text[..at]), &text[at + 1..]),
        None => (text.strip_suffix(b"\r").unwrap_or(text), &[]),
    }
}

/// The end of the last line belongs to the boundary behind it.
fn without_line_end(text: &[u8]) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.strip_suffix(b"\r").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\
        --c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
        POST http://h/dev/People?x=1 HTTP/1.1\r\nAccept: a\r\n\r\n{\"A\":1}\r\n\
        --c\r\n\r\nDELETE /dev/x HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n--c--\r\n--b--\r\n";

    #[test]
    fn a_boundary_is_named_by_the_media_type() {
        assert_eq!(boundary("multipart/mixed; boundary=batch_1"), Ok("batch_1"));
        assert_eq!(boundary("Multipart/Mixed;x=y; Boundary=\"a b\""), Ok("a b"));
        for bad in ["", "multipart/mixed", "text/plain; boundary=a", "multipart/mixed; boundary="] {
            assert_eq!(boundary(bad), Err(MultipartError::NoBoundary), "{bad}");
        }
        let long = format!("multipart/mixed; boundary={}", "x".repeat(BOUNDARY_BYTES_MAX + 1));
        assert_eq!(boundary(&long), Err(MultipartError::NoBoundary));
    }

    #[test]
    fn parts_nest_and_hold_requests() {
        let outer = parts(SEED.as_bytes(), "b", 1).unwrap();
        let kind = outer[0].header("content-type").unwrap();
        let inner = parts(outer[0].body, boundary(kind).unwrap(), 9).unwrap();
        let requests: Vec<_> = inner.iter().map(|part| request(part).unwrap()).collect();
        assert_eq!(requests[0].method, Method::POST);
        assert_eq!(requests[0].uri.path(), "/dev/People");
        assert_eq!((requests[0].uri.query(), requests[0].body), (Some("x=1"), &b"{\"A\":1}"[..]));
        assert_eq!(requests[1].headers["if-match"], "*");
        assert_eq!(requests[1].body, b"");
        let many = parts(outer[0].body, "c", 1).unwrap_err();
        assert_eq!(many, MultipartError::TooManyParts);
    }

    #[test]
    fn bare_line_ends_and_a_missing_last_boundary_are_taken() {
        let text = "skipped\n--b\nA: 1\n\nbody\nmore\n--b  \n\nx\n--b\n";
        let read = parts(text.as_bytes(), "b", 9).unwrap();
        assert_eq!(
            read.iter().map(|part| part.body).collect::<Vec<_>>(),
            [&b"body\nmore"[..], b"x"]
        );
        assert_eq!((read[0].header("a"), read[0].header("b")), (Some("1"), None));
        assert_eq!(parts(b"no boundary", "b", 9).unwrap_err(), MultipartError::Malformed);
        assert_eq!(
            parts(b"--b\nno header\n\n--b--", "b", 9).unwrap_err(),
            MultipartError::Malformed
        );
        assert!(parts(b"--b--", "b", 9).unwrap().is_empty());
    }
}
