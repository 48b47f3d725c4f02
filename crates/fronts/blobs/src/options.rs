//! What headers say beside the operation itself: conditions, headers and metadata of blobs, checksums, leases.

use lazuli_http::uri::Query;
use lazuli_shapes::blob::{
    Conditions, CustomerKey, Etags, Headers, Immutability, LeaseAction, Tier, Which,
};
use sha2::{Digest as _, Sha256};

use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::etag;
use crate::filter;
use crate::limits::{BREAK_SECONDS, LEASE_SECONDS, Limits};
use crate::request::{Head, bad_header, bad_parameter, decode};
use crate::tags;

/// Names and values, as the shape keeps them.
pub(crate) type Pairs = Vec<(String, String)>;

/// The numbers of the tiers of premium page blobs.
const PREMIUM_TIERS: [u8; 11] = [4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80];
/// What the names of headers with metadata begin with.
pub(crate) const METADATA: &str = "x-ms-meta-";

/// The conditions of a request on the blob or container that it is about.
pub(crate) fn conditions(head: Head<'_>) -> Result<Conditions> {
    named_conditions(head, "", "x-ms-if-tags", Some("x-ms-lease-id"))
}

/// Those of an operation on tags, whose conditions are on the blob and have names of their own.
pub(crate) fn tag_conditions(head: Head<'_>) -> Result<Conditions> {
    named_conditions(head, "x-ms-blob-", "x-ms-if-tags", Some("x-ms-lease-id"))
}

/// The conditions on the source of a copy.
pub(crate) fn source_conditions(head: Head<'_>) -> Result<Conditions> {
    named_conditions(head, "x-ms-source-", "x-ms-source-if-tags", Some("x-ms-source-lease-id"))
}

/// Of an operation that takes no condition but the lease.
pub(crate) fn lease_only(head: Head<'_>) -> Result<Conditions> {
    Ok(Conditions::leased(head.guid("x-ms-lease-id")?))
}

fn named_conditions(
    head: Head<'_>,
    prefix: &str,
    tags: &str,
    lease: Option<&str>,
) -> Result<Conditions> {
    let name = |condition: &str| format!("{prefix}if-{condition}");
    let etag = |name: &str| head.text(name).map(|text| etags(name, text)).transpose();
    Ok(Conditions {
        if_match: etag(&name("match"))?,
        if_none_match: etag(&name("none-match"))?,
        if_modified_since: head.date(&name("modified-since"))?,
        if_unmodified_since: head.date(&name("unmodified-since"))?,
        if_tags: head.text(tags).map(|text| filter::condition(tags, text)).transpose()?,
        lease_id: lease.map(|name| head.guid(name)).transpose()?.flatten(),
    })
}

/// `*`, or ETags that commas separate. One that is not ours matches nothing.
fn etags(name: &str, text: &str) -> Result<Etags> {
    if text.trim() == "*" {
        return Ok(Etags::Any);
    }
    let versions: Vec<_> = text.split(',').filter_map(|etag| etag::read(etag.trim())).collect();
    match text.trim().is_empty() {
        true => Err(bad_header(name)),
        false => Ok(Etags::These(versions)),
    }
}

/// Names and values of metadata. All of them together are limited, names are identifiers.
pub(crate) fn metadata(head: Head<'_>, limits: &Limits) -> Result<Pairs> {
    let mut metadata = Pairs::new();
    let mut bytes = 0;
    for (name, value) in head.headers {
        let Some(key) = name.as_str().strip_prefix(METADATA) else { continue };
        if key.is_empty() {
            return Err(Fault::new(Common::EmptyMetadataKey));
        }
        let first = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = value.to_str().map_err(|_| Fault::new(Common::InvalidMetadata))?;
        if !first || !plain {
            return Err(Fault::new(Common::InvalidMetadata));
        }
        bytes += key.len() + value.len();
        // A name that comes more than once has all its values.
        match metadata.iter_mut().find(|(name, _)| name == key) {
            Some((_, kept)) => {
                kept.push(',');
                kept.push_str(value);
            }
            None => metadata.push((key.to_owned(), value.to_owned())),
        }
    }
    match bytes > limits.metadata_bytes_max {
        true => Err(Fault::new(Common::MetadataTooLarge)),
        false => Ok(metadata),
    }
}

/// The headers that a blob is to be read with. Some operations also take the general ones of the request for them.
pub(crate) fn http_headers(head: Head<'_>, general_too: bool) -> Result<Headers> {
    let text = |own: &str, general: &str| {
        let own = head.text(own);
        own.or_else(|| head.text(general).filter(|_| general_too)).map(str::to_owned)
    };
    Ok(Headers {
        content_type: text("x-ms-blob-content-type", "content-type"),
        content_encoding: text("x-ms-blob-content-encoding", "content-encoding"),
        content_language: text("x-ms-blob-content-language", "content-language"),
        content_disposition: head.text("x-ms-blob-content-disposition").map(str::to_owned),
        cache_control: text("x-ms-blob-cache-control", "cache-control"),
        content_md5: md5_of(head, "x-ms-blob-content-md5")?,
    })
}

fn md5_of(head: Head<'_>, name: &str) -> Result<Option<[u8; 16]>> {
    head.bytes(name, || Fault::new(Code::InvalidMd5))
}

/// The checksums of a body that a request names, in the order in which they are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) crc64: Option<u64>,
}

impl Checksums {
    /// Of the body of the request.
    pub(crate) fn of(head: Head<'_>) -> Result<Self> {
        if let Some(name) =
            ["x-ms-structured-body"].into_iter().find(|name| head.text(name).is_some())
        {
            return Err(Fault::new(Common::UnsupportedHeader).detail("HeaderName", name));
        }
        Self::named(head, "content-md5", "x-ms-content-crc64")
    }

    /// Of what is read from another address.
    pub(crate) fn of_source(head: Head<'_>) -> Result<Self> {
        Self::named(head, "x-ms-source-content-md5", "x-ms-source-content-crc64")
    }

    fn named(head: Head<'_>, md5: &str, crc64: &str) -> Result<Self> {
        if head.text(md5).is_some() && head.text(crc64).is_some() {
            return Err(Fault::new(Code::BothCrc64AndMd5HeaderPresent));
        }
        let sum = match head.text(crc64).map(|text| decode(text).unwrap_or_default()) {
            None => None,
            Some(bytes) => match bytes.split_first_chunk::<8>() {
                None => return Err(bad_header(crc64)),
                Some((sum, [])) => Some(u64::from_le_bytes(*sum)),
                // A number of more bytes is one that nothing has.
                Some(_) => return Err(Fault::new(Code::Crc64Mismatch)),
            },
        };
        Ok(Self { md5: md5_of(head, md5)?, crc64: sum })
    }

    /// The MD5 that a new block blob is to have is that of its bytes, and is the one that is compared.
    pub(crate) fn or_of_blob(self, md5: Option<[u8; 16]>) -> Result<Self> {
        match (md5, self.crc64) {
            (Some(_), Some(_)) => Err(Fault::new(Code::BothCrc64AndMd5HeaderPresent)),
            (Some(_), None) => Ok(Self { md5, crc64: None }),
            (None, _) => Ok(self),
        }
    }

    /// Compares them with the sums of what came.
    pub(crate) fn check(self, md5: Option<[u8; 16]>, crc64: u64) -> Result<()> {
        if self.md5.is_some_and(|expected| Some(expected) != md5) {
            return Err(Fault::new(Common::Md5Mismatch));
        }
        if self.crc64.is_some_and(|expected| expected != crc64) {
            return Err(Fault::new(Code::Crc64Mismatch));
        }
        Ok(())
    }
}

/// The key that a client wants contents to be encrypted with. Headers of sources begin in another way.
pub(crate) fn customer_key(head: Head<'_>, prefix: &str) -> Result<Option<CustomerKey>> {
    let name = |rest: &str| format!("{prefix}encryption-{rest}");
    let (key, sum, algorithm) = (name("key"), name("key-sha256"), name("algorithm"));
    let given = head.bytes::<32>(&key, || bad_header(&key))?;
    let sha256 = head.bytes::<32>(&sum, || bad_header(&sum))?;
    match (given, sha256, head.text(&algorithm)) {
        (None, None, None) => Ok(None),
        (Some(key), Some(sha256), Some("AES256")) if Sha256::digest(key)[..] == sha256 => {
            Ok(Some(CustomerKey { key, sha256 }))
        }
        (Some(_), Some(_), _) => Err(bad_header(&sum)),
        _ => Err(Fault::new(Common::MissingRequiredHeader).detail("HeaderName", key)),
    }
}

/// The tags of a new blob.
pub(crate) fn tags(head: Head<'_>, limits: &Limits) -> Result<Option<Pairs>> {
    head.text("x-ms-tags").map(|text| tags::from_header(text, limits)).transpose()
}

pub(crate) fn tier(head: Head<'_>) -> Result<Option<Tier>> {
    let Some(text) = head.text("x-ms-access-tier") else { return Ok(None) };
    match text.to_ascii_lowercase().as_str() {
        "hot" => Ok(Some(Tier::Hot)),
        "cool" => Ok(Some(Tier::Cool)),
        "cold" => Ok(Some(Tier::Cold)),
        "archive" => Ok(Some(Tier::Archive)),
        premium => match premium.strip_prefix('p').and_then(|size| size.parse().ok()) {
            Some(size) if PREMIUM_TIERS.contains(&size) => Ok(Some(Tier::Premium(size))),
            _ => Err(bad_header("x-ms-access-tier")),
        },
    }
}

/// The policy that keeps a blob as it is until a moment.
pub(crate) fn immutability(head: Head<'_>) -> Result<Option<Immutability>> {
    let is_locked = match head.text("x-ms-immutability-policy-mode") {
        None => false,
        Some(text) if text.eq_ignore_ascii_case("unlocked") => false,
        Some(text) if text.eq_ignore_ascii_case("locked") => true,
        Some(_) => return Err(bad_header("x-ms-immutability-policy-mode")),
    };
    let until = head.date("x-ms-immutability-policy-until-date")?;
    let until = until.map(|seconds| seconds.saturating_mul(1000));
    Ok(until.map(|until_ms| Immutability { until_ms, is_locked }))
}

/// Whether the blob itself is meant, a snapshot of it or a version.
pub(crate) fn which(query: &Query<'_>) -> Result<Which> {
    let given = |name: &str| query.get(name).filter(|text| !text.is_empty());
    match (given("snapshot"), given("versionid")) {
        (None, None) => Ok(Which::Current),
        (Some(text), None) => {
            let time = etag::moment(text).ok_or_else(|| bad_parameter("snapshot", text))?;
            Ok(Which::Snapshot(time))
        }
        (None, Some(text)) => {
            let time = etag::moment(text).ok_or_else(|| bad_parameter("versionid", text))?;
            Ok(Which::Version(time))
        }
        (Some(_), Some(_)) => Err(Fault::new(Code::MutuallyExclusiveQueryParameters)),
    }
}

/// What a request wants of a lease. An acquired lease without a proposed id has none yet.
pub(crate) fn lease_action(head: Head<'_>) -> Result<LeaseAction> {
    let id = || head.required_guid("x-ms-lease-id");
    match head.required("x-ms-lease-action")?.to_ascii_lowercase().as_str() {
        "acquire" => {
            let seconds = head.required("x-ms-lease-duration")?.parse().ok();
            let duration = match seconds {
                Some(-1) => None,
                Some(seconds) if LEASE_SECONDS.contains(&seconds) => Some(seconds as u32),
                _ => return Err(bad_header("x-ms-lease-duration")),
            };
            let proposed = head.guid("x-ms-proposed-lease-id")?;
            Ok(LeaseAction::Acquire { id: proposed.unwrap_or_default(), seconds: duration })
        }
        "renew" => Ok(LeaseAction::Renew { id: id()? }),
        "release" => Ok(LeaseAction::Release { id: id()? }),
        "change" => Ok(LeaseAction::Change {
            id: id()?,
            proposed: head.required_guid("x-ms-proposed-lease-id")?,
        }),
        "break" => {
            let seconds: Option<i64> = head.number("x-ms-lease-break-period")?;
            if seconds.is_some_and(|seconds| !BREAK_SECONDS.contains(&seconds)) {
                return Err(bad_header("x-ms-lease-break-period"));
            }
            Ok(LeaseAction::Break { seconds: seconds.map(|seconds| seconds as u32) })
        }
        _ => Err(bad_header("x-ms-lease-action")),
    }
}
