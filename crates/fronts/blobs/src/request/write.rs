//! What single operations on blobs are asked for with, beside the blob itself.

use lazuli_shapes::blob::{
    Conditions, CustomerKey, Headers, Immutability, SequenceAction, Snapshots, Tier, Which,
};

use super::{Head, bad_header, bad_parameter};
use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::limits::{Limits, PAGE_BYTES, SOURCE_BYTES_MAX};
use crate::options::{
    Checksums, Pairs, conditions, customer_key, http_headers, immutability, metadata,
    source_conditions, tags, tier, which,
};
use crate::range::ByteRange;

/// What a new blob has beside its content.
#[derive(Debug)]
pub(crate) struct NewBlob {
    pub(crate) headers: Headers,
    pub(crate) metadata: Pairs,
    pub(crate) tags: Option<Pairs>,
    pub(crate) tier: Option<Tier>,
    pub(crate) immutability: Option<Immutability>,
    pub(crate) legal_hold: bool,
    pub(crate) conditions: Conditions,
}

impl NewBlob {
    pub(super) fn of(head: Head<'_>, limits: &Limits, general_headers: bool) -> Result<Self> {
        Ok(Self {
            headers: http_headers(head, general_headers)?,
            metadata: metadata(head, limits)?,
            tags: tags(head, limits)?,
            tier: tier(head)?,
            immutability: immutability(head)?,
            legal_hold: head.flag("x-ms-legal-hold")?.unwrap_or_default(),
            conditions: conditions(head)?,
        })
    }
}

/// The kind of a blob that is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewKind {
    Block,
    Append,
    Page { length: u64, sequence: u64 },
}

#[derive(Debug)]
pub(crate) struct PutBlob {
    pub(crate) kind: NewKind,
    pub(crate) blob: NewBlob,
    pub(crate) checksums: Checksums,
}

impl PutBlob {
    pub(super) fn of(head: Head<'_>, limits: &Limits) -> Result<Self> {
        let kind = match head.required("x-ms-blob-type")? {
            "BlockBlob" => NewKind::Block,
            "AppendBlob" => NewKind::Append,
            "PageBlob" => {
                let length = head.required("x-ms-blob-content-length")?.parse().ok();
                let length = length.filter(|length| page_length(*length, limits));
                NewKind::Page {
                    length: length.ok_or_else(|| bad_header("x-ms-blob-content-length"))?,
                    sequence: sequence_number(head)?.unwrap_or_default(),
                }
            }
            _ => return Err(bad_header("x-ms-blob-type")),
        };
        let mut checksums = Checksums::of(head)?;
        let blob = NewBlob::of(head, limits, true)?;
        if kind == NewKind::Block {
            checksums = checksums.or_of_blob(blob.headers.content_md5)?;
        }
        Ok(Self { kind, blob, checksums })
    }
}

/// Whole pages, and not too many.
fn page_length(length: u64, limits: &Limits) -> bool {
    length.is_multiple_of(PAGE_BYTES) && length <= limits.page_blob_bytes_max
}

/// A sequence number has 63 bits.
fn sequence_number(head: Head<'_>) -> Result<Option<u64>> {
    let number: Option<u64> = head.number("x-ms-blob-sequence-number")?;
    match number.is_some_and(|number| number > i64::MAX as u64) {
        true => Err(bad_header("x-ms-blob-sequence-number")),
        false => Ok(number),
    }
}

/// Another blob, or anything with an address, that bytes are read from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) url: String,
    pub(crate) range: Option<ByteRange>,
    pub(crate) checksums: Checksums,
    pub(crate) conditions: Conditions,
    /// The conditions and the key as headers, for a source that another server has.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// What to say to the server of the source about who we are.
    pub(crate) authorization: Option<String>,
    /// The key that the source is encrypted with.
    pub(crate) key: Option<CustomerKey>,
}

/// What is said of a source, and how it is called where the source is.
const SOURCE_HEADERS: [(&str, &str); 9] = [
    ("x-ms-source-if-match", "if-match"),
    ("x-ms-source-if-none-match", "if-none-match"),
    ("x-ms-source-if-modified-since", "if-modified-since"),
    ("x-ms-source-if-unmodified-since", "if-unmodified-since"),
    ("x-ms-source-if-tags", "x-ms-if-tags"),
    ("x-ms-source-lease-id", "x-ms-lease-id"),
    ("x-ms-source-encryption-key", "x-ms-encryption-key"),
    ("x-ms-source-encryption-key-sha256", "x-ms-encryption-key-sha256"),
    ("x-ms-source-encryption-algorithm", "x-ms-encryption-algorithm"),
];

impl Source {
    pub(super) fn of(head: Head<'_>) -> Result<Option<Self>> {
        let Some(url) = head.text("x-ms-copy-source") else { return Ok(None) };
        if url.len() > SOURCE_BYTES_MAX {
            return Err(bad_header("x-ms-copy-source"));
        }
        let range = head.text("x-ms-source-range").map(ByteRange::required).transpose()?;
        let headers = SOURCE_HEADERS
            .into_iter()
            .filter_map(|(name, there)| Some((there, head.text(name)?.to_owned())));
        Ok(Some(Self {
            headers: headers.collect(),
            key: customer_key(head, "x-ms-source-")?,
            url: url.to_owned(),
            range,
            checksums: Checksums::of_source(head)?,
            conditions: source_conditions(head)?,
            authorization: head.text("x-ms-copy-source-authorization").map(str::to_owned),
        }))
    }

    fn required(head: Head<'_>) -> Result<Self> {
        head.required("x-ms-copy-source")?;
        Self::of(head)?.ok_or_else(|| bad_header("x-ms-copy-source"))
    }
}

#[derive(Debug)]
pub(crate) struct PutBlobFromUrl {
    pub(crate) blob: NewBlob,
    pub(crate) source: Source,
    /// Whether the headers of the source are kept, where the request has none of its own.
    pub(crate) copy_headers: bool,
    pub(crate) copy_tags: bool,
}

impl PutBlobFromUrl {
    pub(super) fn of(head: Head<'_>, limits: &Limits) -> Result<Self> {
        Ok(Self {
            blob: NewBlob::of(head, limits, false)?,
            source: Source::required(head)?,
            copy_headers: head.flag("x-ms-copy-source-blob-properties")?.unwrap_or(true),
            copy_tags: copies_tags(head)?,
        })
    }
}

fn copies_tags(head: Head<'_>) -> Result<bool> {
    match head.text("x-ms-copy-source-tag-option") {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("replace") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("copy") => match head.text("x-ms-tags") {
            Some(_) => Err(Fault::new(Code::BothUserTagsAndSourceTagsCopyPresentException)),
            None => Ok(true),
        },
        Some(_) => Err(bad_header("x-ms-copy-source-tag-option")),
    }
}

#[derive(Debug)]
pub(crate) struct CopyBlob {
    pub(crate) blob: NewBlob,
    pub(crate) source: Source,
    /// Whether the client waits until it is done.
    pub(crate) sync: bool,
    pub(crate) copy_tags: bool,
    pub(crate) seal: Option<bool>,
}

impl CopyBlob {
    pub(super) fn of(head: Head<'_>, limits: &Limits) -> Result<Self> {
        // A copy out of the archive is there at once, so how urgent it is makes no difference.
        high_priority(head)?;
        Ok(Self {
            blob: NewBlob::of(head, limits, false)?,
            source: Source::required(head)?,
            sync: head.flag("x-ms-requires-sync")?.unwrap_or_default(),
            copy_tags: copies_tags(head)?,
            seal: head.flag("x-ms-seal-blob")?,
        })
    }
}

/// The checksum that an answer shall have of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeDigest {
    Md5,
    Crc64,
}

#[derive(Debug)]
pub(crate) struct Get {
    pub(crate) which: Which,
    pub(crate) range: Option<ByteRange>,
    pub(crate) digest: Option<RangeDigest>,
    pub(crate) conditions: Conditions,
}

impl Get {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        if head.text("x-ms-structured-body").is_some() {
            return Err(
                Fault::new(Common::UnsupportedHeader).detail("HeaderName", "x-ms-structured-body")
            );
        }
        let range = ByteRange::of(head)?;
        let asked = |name: &str| Ok::<_, Fault>(head.flag(name)?.unwrap_or_default());
        let digest =
            match (asked("x-ms-range-get-content-md5")?, asked("x-ms-range-get-content-crc64")?) {
                (false, false) => None,
                (true, false) => Some(RangeDigest::Md5),
                (false, true) => Some(RangeDigest::Crc64),
                (true, true) => {
                    return Err(Fault::new(Code::BothCrc64AndMd5RangeHeaderPresent));
                }
            };
        if digest.is_some() && range.is_none() {
            return Err(bad_header("x-ms-range-get-content-md5"));
        }
        Ok(Self { which: which(head.query)?, range, digest, conditions: conditions(head)? })
    }
}

#[derive(Debug)]
pub(crate) struct SetProperties {
    /// All headers of the blob are set together, if any is.
    pub(crate) headers: Option<Headers>,
    pub(crate) length: Option<u64>,
    pub(crate) sequence: Option<SequenceAction>,
    pub(crate) conditions: Conditions,
}

impl SetProperties {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        let headers = http_headers(head, false)?;
        let length: Option<u64> = head.number("x-ms-blob-content-length")?;
        if length.is_some_and(|length| !length.is_multiple_of(PAGE_BYTES)) {
            return Err(bad_header("x-ms-blob-content-length"));
        }
        let number = || {
            sequence_number(head)?.ok_or_else(|| {
                Fault::new(Common::MissingRequiredHeader)
                    .detail("HeaderName", "x-ms-blob-sequence-number")
            })
        };
        let sequence = match head.text("x-ms-sequence-number-action") {
            None => None,
            Some(text) if text.eq_ignore_ascii_case("max") => Some(SequenceAction::Max(number()?)),
            Some(text) if text.eq_ignore_ascii_case("update") => {
                Some(SequenceAction::Update(number()?))
            }
            Some(text) if text.eq_ignore_ascii_case("increment") => Some(SequenceAction::Increment),
            Some(_) => return Err(bad_header("x-ms-sequence-number-action")),
        };
        // A request that changes nothing else sets the headers, to none if it names none.
        let only_pages = length.is_some() || sequence.is_some();
        let headers = (!only_pages || headers != Headers::default()).then_some(headers);
        Ok(Self { headers, length, sequence, conditions: conditions(head)? })
    }
}

#[derive(Debug)]
pub(crate) struct Delete {
    pub(crate) which: Which,
    pub(crate) snapshots: Snapshots,
    pub(crate) permanent: bool,
    pub(crate) conditions: Conditions,
}

impl Delete {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        let which = which(head.query)?;
        let snapshots = match head.text("x-ms-delete-snapshots") {
            None => Snapshots::Refuse,
            Some(_) if !matches!(which, Which::Current) => {
                return Err(Fault::new(Code::InvalidOperation));
            }
            Some("include") => Snapshots::Include,
            Some("only") => Snapshots::Only,
            Some(_) => return Err(bad_header("x-ms-delete-snapshots")),
        };
        let permanent = match head.parameter("deletetype") {
            None => false,
            Some(text) if text.eq_ignore_ascii_case("permanent") => true,
            Some(text) => return Err(bad_parameter("deletetype", text)),
        };
        Ok(Self { which, snapshots, permanent, conditions: conditions(head)? })
    }
}

#[derive(Debug)]
pub(crate) struct SetTier {
    pub(crate) which: Which,
    pub(crate) tier: Tier,
    pub(crate) high_priority: bool,
    pub(crate) conditions: Conditions,
}

impl SetTier {
    pub(super) fn of(head: Head<'_>) -> Result<Self> {
        head.required("x-ms-access-tier")?;
        Ok(Self {
            which: which(head.query)?,
            tier: tier(head)?.ok_or_else(|| bad_header("x-ms-access-tier"))?,
            high_priority: high_priority(head)?,
            conditions: conditions(head)?,
        })
    }
}

fn high_priority(head: Head<'_>) -> Result<bool> {
    match head.text("x-ms-rehydrate-priority") {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("standard") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("high") => Ok(true),
        Some(_) => Err(bad_header("x-ms-rehydrate-priority")),
    }
}
