//! The version of an entity as clients see it: its timestamp, and the ETag that says the same.
//!
//! A version is a moment: milliseconds, and a counter for writes within one. The counter becomes 100 ns ticks of the
//! timestamp, so timestamps grow with every write and an ETag can be turned back into the version it stands for.

use lazuli_engine::Lsn;
use lazuli_http::date::{ISO8601_BYTES_MAX, TICKS_PER_MILLI, iso8601_seven, parse_iso8601};

use crate::error::{Common, Fault, Result};

/// The condition of an `If-Match` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// `*`: any version will do, but there must be one.
    Any,
    Version(Lsn),
}

/// A version that nothing ever has, for ETags that aren't ours: they are well formed and match nothing.
const NO_VERSION: Lsn = Lsn::ZERO;

impl IfMatch {
    /// All ETags of the service are weak: it refuses any other, where one that is weak and not its own matches nothing.
    pub(crate) fn parse(header: &str) -> Result<Self> {
        let text = header.trim();
        if text == "*" {
            return Ok(Self::Any);
        }
        let quoted = text.strip_prefix("W/\"").and_then(|text| text.strip_suffix('"'));
        let Some(inner) = quoted else {
            return Err(Fault::new(Common::InvalidInput).say("The etag value is not valid."));
        };
        Ok(Self::Version(version(inner).unwrap_or(NO_VERSION)))
    }
}

/// Ticks of 100 ns since the Unix epoch.
pub(crate) fn timestamp(version: Lsn) -> i64 {
    let millis = i64::try_from(version.millis()).unwrap_or(i64::MAX);
    millis.saturating_mul(TICKS_PER_MILLI).saturating_add(i64::from(version.counter()))
}

/// The timestamp as answers write it.
pub(crate) fn stamp(version: Lsn) -> [u8; ISO8601_BYTES_MAX] {
    iso8601_seven(timestamp(version))
}

/// `W/"datetime'…'"` around a timestamp whose two colons have become three characters each.
const ETAG_BYTES: usize = ISO8601_BYTES_MAX + 18;

pub(crate) fn etag(version: Lsn) -> String {
    let mut out = Vec::with_capacity(ETAG_BYTES);
    write_etag(&mut out, "\"", &stamp(version));
    String::from_utf8(out).expect("a timestamp and what stands around it are ASCII")
}

/// Writes the ETag as a JSON string, from the timestamp.
pub(crate) fn write_etag_json(out: &mut Vec<u8>, stamp: &[u8; ISO8601_BYTES_MAX]) {
    out.push(b'"');
    write_etag(out, "\\\"", stamp);
    out.push(b'"');
}

/// The colons of the timestamp, at two places, are escaped.
fn write_etag(out: &mut Vec<u8>, quote: &str, stamp: &[u8; ISO8601_BYTES_MAX]) {
    out.extend_from_slice(b"W/");
    out.extend_from_slice(quote.as_bytes());
    out.extend_from_slice(b"datetime'");
    out.extend_from_slice(&stamp[..13]);
    out.extend_from_slice(b"%3A");
    out.extend_from_slice(&stamp[14..16]);
    out.extend_from_slice(b"%3A");
    out.extend_from_slice(&stamp[17..]);
    out.push(b'\'');
    out.extend_from_slice(quote.as_bytes());
}

fn version(inner: &str) -> Option<Lsn> {
    let text = inner.strip_prefix("datetime'")?.strip_suffix('\'')?;
    let ticks = parse_iso8601(&text.replace("%3A", ":").replace("%3a", ":"))?;
    let millis = u64::try_from(ticks / TICKS_PER_MILLI).ok()?;
    let counter = u64::try_from(ticks % TICKS_PER_MILLI).ok()?;
    // More ticks within a millisecond than there are counters make a time that no version has.
    Some(Lsn(Lsn::at_ms(millis).0 + counter)).filter(|version| timestamp(*version) == ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_in_json_is_the_one_in_headers() {
        let version = Lsn(Lsn::at_ms(1_715_000_000_123).0 + 7);
        let mut out = Vec::new();
        write_etag_json(&mut out, &stamp(version));
        assert_eq!(String::from_utf8(out).unwrap(), format!("{:?}", etag(version)));
    }

    #[test]
    fn an_etag_stands_for_one_version() {
        let version = Lsn(Lsn::at_ms(1_700_000_000_123).0 | 7);
        let text = etag(version);
        assert_eq!(text, "W/\"datetime'2023-11-14T22%3A13%3A20.1230007Z'\"");
        assert_eq!(IfMatch::parse(&text), Ok(IfMatch::Version(version)));
        assert_eq!(IfMatch::parse(&text.replace("%3A", ":")), Ok(IfMatch::Version(version)));
        assert_ne!(IfMatch::parse(&etag(Lsn(version.0 + 1))), IfMatch::parse(&text));
    }

    #[test]
    fn foreign_etags_match_nothing_and_malformed_ones_are_refused() {
        assert_eq!(IfMatch::parse(" * "), Ok(IfMatch::Any));
        for foreign in [
            "W/\"0x8D\"",
            "W/\"\"",
            "W/\"datetime'1950-01-01T00:00:00Z'\"",
            "W/\"datetime'2024-01-01T00:00:00.0009999Z'\"",
        ] {
            assert_eq!(IfMatch::parse(foreign), Ok(IfMatch::Version(NO_VERSION)), "{foreign}");
        }
        for bad in ["", "W/", "W/\"", "\"", "abc", "W/\"abc", "\"0x8D\"", "\"\""] {
            assert_eq!(IfMatch::parse(bad).unwrap_err().code, Common::InvalidInput.into(), "{bad}");
        }
    }
}
