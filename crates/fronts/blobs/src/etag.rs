//! Versions of blobs and containers as clients see them: ETags, and the moments that name snapshots and versions.
//!
//! A version is a moment: milliseconds, and a counter for writes within one. As a time it has seven digits behind the
//! point; as an ETag it is the same time, counted from the year 1 and written in hexadecimal, as the service's are.

use lazuli_engine::Lsn;
use lazuli_http::date::{Fraction, format_iso8601, format_rfc1123, parse_iso8601};
use lazuli_shapes::blob::{lsn_of, ticks_of};

/// Ticks of 100 ns from the year 1 to the Unix epoch.
const EPOCH_TICKS: u64 = 621_355_968_000_000_000;

pub(crate) fn etag(version: Lsn) -> String {
    format!("\"0x{:X}\"", ticks_of(version).saturating_add(EPOCH_TICKS))
}

/// The version that an ETag stands for; none if it is not ours.
pub(crate) fn read(text: &str) -> Option<Lsn> {
    let text = text.strip_prefix("W/").unwrap_or(text);
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let digits = inner.strip_prefix("0x")?;
    let ticks = u64::from_str_radix(digits, 16).ok()?;
    lsn_of(ticks.checked_sub(EPOCH_TICKS)?)
}

/// The name of a snapshot or a version.
pub(crate) fn moment_text(version: Lsn) -> String {
    let ticks = i64::try_from(ticks_of(version)).unwrap_or(i64::MAX);
    format_iso8601(ticks, Fraction::Seven)
}

/// The version that a name of a snapshot stands for. A moment that no version has is none that was ever a snapshot, so
/// the nearest one before it will not be found either.
pub(crate) fn moment(text: &str) -> Option<Lsn> {
    let ticks = u64::try_from(parse_iso8601(text)?).ok()?;
    Some(lsn_of(ticks).unwrap_or(Lsn::ZERO))
}

/// A moment as HTTP writes it.
pub(crate) fn date(ms: u64) -> String {
    format_rfc1123(i64::try_from(ms / 1000).unwrap_or(i64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_stands_for_one_version() {
        let version = Lsn(Lsn::at_ms(1_700_000_000_123).0 | 7);
        assert_eq!(etag(version), "\"0x8DBE55EE8F6C4B7\"");
        assert_eq!(read(&etag(version)), Some(version));
        assert_eq!(read("0x8DBE55EE8F6C4B7"), Some(version));
        for foreign in ["", "\"\"", "\"abc\"", "\"0x\"", "\"0x1\"", "\"0xFFFFFFFFFFFFFFFFF\"", "*"]
        {
            assert_eq!(read(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_snapshot_is_named_by_its_moment() {
        let version = Lsn(Lsn::at_ms(1_700_000_000_123).0 | 7);
        assert_eq!(moment_text(version), "2023-11-14T22:13:20.1230007Z");
        assert_eq!(moment(&moment_text(version)), Some(version));
        assert_eq!(moment("2023-11-14T22:13:20.1239999Z"), Some(Lsn::ZERO));
        assert_eq!(moment("yesterday"), None);
    }
}
