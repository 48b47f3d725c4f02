//! What operations on parts of blobs are asked for with: blocks, pages, appends; and the end of a blob's life.

use bytes::Bytes;
use lazuli_engine::Lsn;
use lazuli_shapes::blob::{Conditions, SequenceConditions, Which};

use super::service::marker;
use super::write::{NewBlob, Source};
use super::{Head, bad_header, bad_parameter};
use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::etag;
use crate::limits::Limits;
use crate::options::{Checksums, conditions, which};
use crate::range::ByteRange;

#[derive(Debug)]
pub(crate) struct PutBlock {
    pub(crate) id: Vec<u8>,
    /// Where the bytes come from, if not from the body.
    pub(crate) source: Option<Source>,
    pub(crate) checksums: Checksums,
    pub(crate) conditions: Conditions,
}

#[derive(Debug)]
pub(crate) struct PutBlockList {
    pub(crate) blob: NewBlob,
    pub(crate) checksums: Checksums,
}

impl PutBlockList {
    pub(super) fn of(head: Head<'_>, limits: &Limits) -> Result<Self> {
        let checksums = Checksums::of(head)?;
        Ok(Self { blob: NewBlob::of(head, limits, false)?, checksums })
    }
}

/// Which blocks a list shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockListKind {
    pub(crate) committed: bool,
    pub(crate) uncommitted: bool,
}

impl BlockListKind {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        let text = head.parameter("blocklisttype").unwrap_or("committed");
        match text.to_ascii_lowercase().as_str() {
            "committed" => Ok(Self { committed: true, uncommitted: false }),
            "uncommitted" => Ok(Self { committed: false, uncommitted: true }),
            "all" => Ok(Self { committed: true, uncommitted: true }),
            _ => Err(bad_parameter("blocklisttype", text)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct PageWrite {
    /// The first byte and the number of bytes, both those of pages.
    pub(crate) range: (u64, u64),
    pub(crate) clear: bool,
    pub(crate) source: Option<Source>,
    pub(crate) checksums: Checksums,
    pub(crate) sequence: SequenceConditions,
    pub(crate) conditions: Conditions,
}

impl PageWrite {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        let text = head.text("x-ms-range").or_else(|| head.text("range"));
        let text = text.ok_or_else(|| {
            Fault::new(Common::MissingRequiredHeader).detail("HeaderName", "x-ms-range")
        })?;
        let range = ByteRange::required(text)?.pages()?;
        let source = Source::of(head)?;
        let clear = match head.required("x-ms-page-write")?.to_ascii_lowercase().as_str() {
            "update" => false,
            "clear" if source.is_none() => true,
            _ => return Err(bad_header("x-ms-page-write")),
        };
        if let Some(source) = &source {
            let bounds = source.range.and_then(ByteRange::bounded);
            let (_, length) = bounds.ok_or_else(|| bad_header("x-ms-source-range"))?;
            if length != range.1 {
                return Err(Fault::new(Code::InvalidPageRange));
            }
        }
        Ok(Self {
            range,
            clear,
            source,
            checksums: Checksums::of(head)?,
            sequence: SequenceConditions {
                at_most: head.number("x-ms-if-sequence-number-le")?,
                below: head.number("x-ms-if-sequence-number-lt")?,
                equal: head.number("x-ms-if-sequence-number-eq")?,
            },
            conditions: conditions(head)?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct GetPages {
    pub(crate) which: Which,
    pub(crate) range: Option<ByteRange>,
    /// The snapshot that the pages are compared with.
    pub(crate) since: Option<Lsn>,
    /// Where the page before ended.
    pub(crate) after: Option<u64>,
    pub(crate) most: usize,
    pub(crate) conditions: Conditions,
}

impl GetPages {
    pub(super) fn of(head: Head<'_>, limits: &Limits) -> Result<Self> {
        let since = head.parameter("prevsnapshot");
        let since = match (since, head.text("x-ms-previous-snapshot-url")) {
            (None, Some(url)) => url.rsplit_once("snapshot=").map(|(_, time)| time),
            (since, _) => since,
        };
        let moment = |text| etag::moment(text).ok_or_else(|| bad_parameter("prevsnapshot", text));
        let since = since.map(|text| text.replace("%3A", ":").replace("%3a", ":"));
        let since = since.as_deref().map(moment).transpose()?;
        let number = |place: Bytes| std::str::from_utf8(&place).ok()?.parse().ok();
        let bad = || bad_parameter("marker", head.parameter("marker").unwrap_or_default());
        let after = marker(head)?.map(|place| number(place).ok_or_else(bad));
        Ok(Self {
            which: which(head.query)?,
            range: ByteRange::of(head)?,
            since,
            after: after.transpose()?,
            most: head.page_items(limits.page_ranges_max)?,
            conditions: conditions(head)?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) source: Option<Source>,
    pub(crate) checksums: Checksums,
    /// Where the blob must end, for the append to be made.
    pub(crate) position: Option<u64>,
    /// How long the blob may become.
    pub(crate) most: Option<u64>,
    pub(crate) conditions: Conditions,
}

impl Append {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        Ok(Self {
            source: Source::of(head)?,
            checksums: Checksums::of(head)?,
            position: head.number("x-ms-blob-condition-appendpos")?,
            most: head.number("x-ms-blob-condition-maxsize")?,
            conditions: conditions(head)?,
        })
    }
}

/// When a blob ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Never,
    /// Milliseconds after its creation.
    AfterCreation(u64),
    /// Milliseconds from now.
    FromNow(u64),
    /// Milliseconds since the Unix epoch.
    At(u64),
}

impl Expiry {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        const TIME: &str = "x-ms-expiry-time";
        let option = head.required("x-ms-expiry-option")?;
        let millis = || head.required(TIME)?.parse().map_err(|_| bad_header(TIME));
        match option.to_ascii_lowercase().as_str() {
            "neverexpire" => Ok(Self::Never),
            "relativetocreation" => Ok(Self::AfterCreation(millis()?)),
            "relativetonow" => Ok(Self::FromNow(millis()?)),
            "absolute" => {
                head.required(TIME)?;
                Ok(Self::At(head.date(TIME)?.ok_or_else(|| bad_header(TIME))?.saturating_mul(1000)))
            }
            _ => Err(bad_header("x-ms-expiry-option")),
        }
    }
}
