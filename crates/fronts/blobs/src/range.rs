//! Ranges of bytes: how requests ask for them, and what is left of them in a blob.

use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::limits::PAGE_BYTES;
use crate::request::Head;

/// Bytes from `start` to `end`, which is included; to the end of the blob if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: Option<u64>,
}

impl ByteRange {
    /// `bytes=START-END` or `bytes=START-`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (start, end) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(start) || !(end.is_empty() || digits(end)) {
            return None;
        }
        let start = start.parse().ok()?;
        let end = match end {
            "" => None,
            end => Some(end.parse().ok()?),
        };
        (end.is_none_or(|end| end >= start)).then_some(Self { start, end })
    }

    /// The range that a request asks for. The service's own header comes first and must be right; the general one is
    /// passed over when it is none that the service knows, as HTTP has it.
    pub(crate) fn of(head: Head<'_>) -> Result<Option<Self>> {
        match head.text("x-ms-range") {
            Some(text) => Self::required(text).map(Some),
            None => Ok(head.text("range").and_then(Self::parse)),
        }
    }

    /// A range that must be right.
    pub(crate) fn required(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| Fault::new(Common::InvalidHeaderValue))
    }

    /// The first byte and the number of bytes, of a range that has an end.
    pub(crate) fn bounded(self) -> Option<(u64, u64)> {
        let length = self.end?.checked_sub(self.start)?.checked_add(1)?;
        Some((self.start, length))
    }

    /// As `bounded`, where both bounds must be those of pages.
    pub(crate) fn pages(self) -> Result<(u64, u64)> {
        let (start, length) =
            self.bounded().ok_or_else(|| Fault::new(Common::InvalidHeaderValue))?;
        if start % PAGE_BYTES != 0 || length % PAGE_BYTES != 0 {
            return Err(Fault::new(Code::InvalidPageRange));
        }
        Ok((start, length))
    }
}

#[cfg(test)]
mod tests {
    use lazuli_azure::storage_error::ErrorCode as _;

    use super::*;

    #[test]
    fn ranges_are_read() {
        let range = |start, end| Some(ByteRange { start, end });
        assert_eq!(ByteRange::parse("bytes=0-0"), range(0, Some(0)));
        assert_eq!(ByteRange::parse("bytes=5-"), range(5, None));
        assert_eq!(ByteRange::parse(" bytes=5-9 "), range(5, Some(9)));
        for bad in ["", "bytes", "bytes=", "bytes=-", "bytes=-5", "bytes=5-4", "bytes=a-b"] {
            assert_eq!(ByteRange::parse(bad), None, "{bad}");
        }
        for bad in ["bytes=0-1,3-4", "bytes=+1-2", "bits=0-1", "bytes=0-99999999999999999999"] {
            assert_eq!(ByteRange::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn pages_begin_and_end_at_their_bounds() {
        let pages = |text: &str| ByteRange::parse(text).unwrap().pages().map_err(|f| f.code.name());
        assert_eq!(pages("bytes=0-511"), Ok((0, 512)));
        assert_eq!(pages("bytes=512-1535"), Ok((512, 1024)));
        assert_eq!(pages("bytes=1-512"), Err("InvalidPageRange"));
        assert_eq!(pages("bytes=0-512"), Err("InvalidPageRange"));
        assert_eq!(pages("bytes=0-"), Err("InvalidHeaderValue"));
        assert_eq!(pages("bytes=0-18446744073709551615"), Err("InvalidHeaderValue"));
    }
}
