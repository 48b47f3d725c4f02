//! Entry points of the fuzzer: one function for each parser. Each takes any bytes and panics if an invariant does not
//! hold. The targets in `fuzz/` are these functions; the tests here run the same ones on fixed seeds.

use http::header::HeaderValue;

use crate::date::{Fraction, format_iso8601, format_rfc1123, parse_iso8601, parse_rfc1123};
use crate::multipart::{self, PART_HEADERS_MAX};
use crate::serve::framing::Framing;
use crate::uri::{Query, percent_decode, percent_encode};

const PARTS_MAX: usize = 100;

/// Escapes and query parameters: what is read can be written and is read the same again.
pub fn uri(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(decoded) = percent_decode(&text) {
        let encoded = percent_encode(&decoded);
        assert_eq!(percent_decode(&encoded).as_deref(), Ok(&*decoded), "{encoded}");
        let named = format!("a={encoded}");
        let query = Query::parse(&named);
        assert_eq!(query.ok().as_ref().and_then(|it| it.get("A")), Some(&*decoded), "{named}");
    }
    if let Ok(query) = Query::parse(&text) {
        let _ = (query.get("comp"), query.get(""));
    }
}

/// What a client sends over one connection: however it comes in pieces, the same bytes are refused, and no head that passes
/// has a line feed that stands alone.
pub fn framing(data: &[u8]) {
    let (piece, data) = match data {
        [first, rest @ ..] => (usize::from(*first) + 1, rest),
        [] => return,
    };
    let (mut whole, mut pieces) = (data.to_vec(), data.to_vec());
    Framing::default().pass(&mut whole);
    let mut framing = Framing::default();
    pieces.chunks_mut(piece).for_each(|piece| framing.pass(piece));
    assert_eq!(whole, pieces, "{data:?} in pieces of {piece}");
    let changed = whole.iter().zip(data).filter(|(passed, sent)| passed != sent);
    assert!(changed.clone().all(|(passed, _)| *passed == 0) && changed.count() <= 1, "{data:?}");
    let head = whole.windows(4).position(|end| end == b"\r\n\r\n").map_or(whole.len(), |at| at + 4);
    let head = &whole[..head];
    let refused = head.iter().zip(data).position(|(passed, sent)| passed != sent);
    let passed = &head[..refused.unwrap_or(head.len())];
    let is_alone = |pair: &[u8]| pair[1] == b'\n' && pair[0] != b'\r';
    assert!(!passed.windows(2).any(is_alone) && passed.first() != Some(&b'\n'), "{data:?}");
}

/// Dates: what is read is written in full and is the same moment again.
pub fn date(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(ticks) = parse_iso8601(&text) {
        for fraction in [Fraction::Shortest, Fraction::Seven] {
            let written = format_iso8601(ticks, fraction);
            assert_eq!(parse_iso8601(&written), Some(ticks), "{text:?} is written as {written}");
        }
    }
    if let Some(seconds) = parse_rfc1123(&text) {
        let written = format_rfc1123(seconds);
        assert_eq!(parse_rfc1123(&written), Some(seconds), "{text:?} is written as {written}");
    }
}

/// A boundary in the first line and a body in the rest, read as a change set is: what is read can be written and is read
/// the same again.
pub fn multipart(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, body) = data.split_at(at);
    let content_type = HeaderValue::from_bytes(first);
    let content_type = content_type.as_ref().ok().and_then(|value| value.to_str().ok());
    let Ok(boundary) = multipart::boundary(content_type.unwrap_or_default()) else { return };
    let Ok(parts) = multipart::parts(body, boundary, PARTS_MAX) else { return };
    assert!(parts.len() <= PARTS_MAX);
    let mut written = Vec::new();
    for part in &parts {
        assert!(part.headers().count() <= PART_HEADERS_MAX);
        written.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        for (name, value) in part.headers() {
            written.extend([name, b": ", value, b"\r\n"].concat());
        }
        written.extend([b"\r\n", part.body, b"\r\n"].concat());
        let nested = part.header("content-type").unwrap_or_default();
        if let Ok(inner) = multipart::boundary(nested) {
            for part in multipart::parts(part.body, inner, PARTS_MAX).unwrap_or_default() {
                let _ = multipart::request(&part);
            }
        }
        let _ = multipart::request(part);
    }
    written.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let again = multipart::parts(&written, boundary, PARTS_MAX).unwrap_or_default();
    let plain = |parts: &[multipart::Part<'_>]| {
        let plain = parts.iter().map(|part| (part.headers().collect::<Vec<_>>(), part.body));
        format!("{:?}", plain.collect::<Vec<_>>())
    };
    assert_eq!(plain(&again), plain(&parts), "{}", String::from_utf8_lossy(&written));
}

#[cfg(test)]
mod tests {
    use crate::mutate::corpus;

    /// Texts of each kind that a target is tried on here; `cargo fuzz` has no end.
    const ROUNDS: u32 = 10_000;

    #[test]
    fn addresses_are_read_or_refused() {
        let words = ["%", "%4", "%41", "%c3%a4", "%ff", "a", "=", "&", "+", "$filter=", "comp="];
        corpus("uri", &words, ROUNDS, super::uri);
    }

    #[test]
    fn line_feeds_alone_are_refused_however_they_come() {
        let words = [
            "GET / HTTP/1.1\r\n",
            "Host: a\r\n",
            "\r\n",
            "\n",
            "\r",
            "Content-Length: 3\r\n",
            "Transfer-Encoding: chunked\r\n",
            "abc",
            "3\r\n",
            "0\r\n\r\n",
            ";",
        ];
        corpus("framing", &words, ROUNDS, super::framing);
    }

    #[test]
    fn dates_are_read_or_refused() {
        let words =
            ["9999-12-31", "0000-01-01", "T", "23:59:59", ".9999999", "-14:00", "+14", "Z", "Sun,"];
        corpus("date", &words, ROUNDS, super::date);
    }

    #[test]
    fn bodies_of_parts_are_read_or_refused() {
        let words = [
            "multipart/mixed; boundary=b\n",
            "--b",
            "--b--",
            "\r\n",
            "\n",
            "A: 1",
            "x",
            "--",
            "b",
            "GET / HTTP/1.1",
            "Content-Type: multipart/mixed; boundary=c\r\n\r\n",
            "--c\r\n",
        ];
        corpus("multipart", &words, ROUNDS, super::multipart);
    }
}
