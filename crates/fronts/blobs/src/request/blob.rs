//! Operations on blobs: which one a request means.

use lazuli_shapes::blob::{Conditions, Immutability, LeaseAction, Which};

use super::content::{Append, BlockListKind, Expiry, GetPages, PageWrite, PutBlock, PutBlockList};
use super::write::{
    CopyBlob, Delete, Get, PutBlob, PutBlobFromUrl, SetProperties, SetTier, Source,
};
use super::{Head, Row, bad_header, unknown};
use crate::access::Need;
use crate::blocks::block_id;
use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::limits::Limits;
use crate::options::{
    Checksums, Pairs, conditions, immutability, lease_action, lease_only, metadata, tag_conditions,
    which,
};

#[derive(Debug)]
pub(crate) enum BlobOperation {
    Put(PutBlob),
    PutFromUrl(PutBlobFromUrl),
    Get(Get),
    Properties { which: Which, conditions: Conditions },
    SetProperties(SetProperties),
    Metadata { which: Which, conditions: Conditions },
    SetMetadata { metadata: Pairs, conditions: Conditions },
    Tags { which: Which, conditions: Conditions },
    SetTags { which: Which, checksums: Checksums, conditions: Conditions },
    Lease { action: LeaseAction, conditions: Conditions },
    Snapshot { metadata: Pairs, conditions: Conditions },
    Copy(CopyBlob),
    AbortCopy { id: String, conditions: Conditions },
    Delete(Delete),
    Undelete,
    SetTier(SetTier),
    SetExpiry { expiry: Expiry, conditions: Conditions },
    SetImmutability { which: Which, policy: Immutability, conditions: Conditions },
    DeleteImmutability { which: Which },
    SetLegalHold { which: Which, hold: bool },
    Query,
    PutBlock(PutBlock),
    PutBlockList(PutBlockList),
    BlockList { which: Which, kind: BlockListKind, conditions: Conditions },
    WritePages(PageWrite),
    PageRanges(GetPages),
    IncrementalCopy,
    Append(Append),
    Seal { position: Option<u64>, conditions: Conditions },
    Account,
}

/// What can be changed of snapshots and versions.
const CHANGES_OF_STATES: [&str; 4] = ["tags", "tier", "immutabilityPolicies", "legalhold"];

/// Refuses a snapshot or a version where only the blob itself can be meant.
fn current_only(head: Head<'_>) -> Result<()> {
    match which(head.query)? {
        Which::Current => Ok(()),
        Which::Snapshot(_) | Which::Version(_) => Err(Fault::new(Code::InvalidOperation)),
    }
}

impl BlobOperation {
    pub(super) fn parse(head: Head<'_>, limits: &Limits) -> Result<Self> {
        if let Some(kind) = head.parameter("restype") {
            let is_account = kind.eq_ignore_ascii_case("account");
            return match (head.method.as_str(), head.parameter("comp")) {
                ("GET" | "HEAD", Some("properties")) if is_account => Ok(Self::Account),
                _ => Err(unknown(head)),
            };
        }
        match (head.method.as_str(), head.parameter("comp")) {
            ("GET", part) => Self::parse_get(head, part, limits),
            ("HEAD", None) => {
                Ok(Self::Properties { which: which(head.query)?, conditions: conditions(head)? })
            }
            ("HEAD", Some("metadata")) => Self::parse_get(head, Some("metadata"), limits),
            ("DELETE", None) => Ok(Self::Delete(Delete::of(head)?)),
            ("DELETE", Some("immutabilityPolicies")) => {
                Ok(Self::DeleteImmutability { which: which(head.query)? })
            }
            ("POST", Some("query")) => Ok(Self::Query),
            ("PUT", None) => {
                current_only(head)?;
                Self::parse_put(head, limits)
            }
            ("PUT", Some(part)) => {
                if !CHANGES_OF_STATES.contains(&part) {
                    current_only(head)?;
                }
                Self::parse_change(head, part, limits)
            }
            _ => Err(unknown(head)),
        }
    }

    fn parse_get(head: Head<'_>, part: Option<&str>, limits: &Limits) -> Result<Self> {
        match part {
            None => Ok(Self::Get(Get::of(head)?)),
            Some("metadata") => {
                Ok(Self::Metadata { which: which(head.query)?, conditions: conditions(head)? })
            }
            Some("tags") => {
                Ok(Self::Tags { which: which(head.query)?, conditions: tag_conditions(head)? })
            }
            Some("blocklist") => Ok(Self::BlockList {
                which: which(head.query)?,
                kind: BlockListKind::of(head)?,
                conditions: conditions(head)?,
            }),
            Some("pagelist") => Ok(Self::PageRanges(GetPages::of(head, limits)?)),
            Some(_) => Err(unknown(head)),
        }
    }

    /// A blob is put whole, from another address, or copied.
    fn parse_put(head: Head<'_>, limits: &Limits) -> Result<Self> {
        match (head.text("x-ms-copy-source"), head.text("x-ms-blob-type")) {
            (None, _) => Ok(Self::Put(PutBlob::of(head, limits)?)),
            (Some(_), Some("BlockBlob")) => Ok(Self::PutFromUrl(PutBlobFromUrl::of(head, limits)?)),
            (Some(_), Some(_)) => Err(bad_header("x-ms-blob-type")),
            (Some(_), None) => Ok(Self::Copy(CopyBlob::of(head, limits)?)),
        }
    }

    fn parse_change(head: Head<'_>, part: &str, limits: &Limits) -> Result<Self> {
        let version = || which(head.query);
        Ok(match part {
            "properties" => Self::SetProperties(SetProperties::of(head)?),
            "metadata" => Self::SetMetadata {
                metadata: metadata(head, limits)?,
                conditions: conditions(head)?,
            },
            "tags" => Self::SetTags {
                which: version()?,
                checksums: Checksums::of(head)?,
                conditions: tag_conditions(head)?,
            },
            "lease" => Self::Lease {
                action: lease_action(head)?,
                conditions: Conditions { lease_id: None, ..conditions(head)? },
            },
            "snapshot" => {
                Self::Snapshot { metadata: metadata(head, limits)?, conditions: conditions(head)? }
            }
            "copy" => {
                if head.required("x-ms-copy-action")? != "abort" {
                    return Err(bad_header("x-ms-copy-action"));
                }
                let id = head.required_parameter("copyid")?.to_owned();
                Self::AbortCopy { id, conditions: lease_only(head)? }
            }
            "undelete" => Self::Undelete,
            "tier" => Self::SetTier(SetTier::of(head)?),
            "expiry" => {
                Self::SetExpiry { expiry: Expiry::of(head)?, conditions: lease_only(head)? }
            }
            "immutabilityPolicies" => Self::SetImmutability {
                which: version()?,
                policy: immutability(head)?.ok_or_else(|| {
                    Fault::new(Common::MissingRequiredHeader)
                        .detail("HeaderName", "x-ms-immutability-policy-until-date")
                })?,
                conditions: conditions(head)?,
            },
            "legalhold" => {
                head.required("x-ms-legal-hold")?;
                let hold = head.flag("x-ms-legal-hold")?.unwrap_or_default();
                Self::SetLegalHold { which: version()?, hold }
            }
            "block" => Self::PutBlock(PutBlock {
                id: block_id(head.required_parameter("blockid")?)?,
                source: Source::of(head)?,
                checksums: Checksums::of(head)?,
                conditions: lease_only(head)?,
            }),
            "blocklist" => Self::PutBlockList(PutBlockList::of(head, limits)?),
            "page" => Self::WritePages(PageWrite::of(head)?),
            "incrementalcopy" => Self::IncrementalCopy,
            "appendblock" => Self::Append(Append::of(head)?),
            "seal" => Self::Seal {
                position: head.number("x-ms-blob-condition-appendpos")?,
                conditions: conditions(head)?,
            },
            _ => return Err(unknown(head)),
        })
    }

    pub(super) fn row(&self) -> Row {
        let read = |name, permissions| Row::read(name, Need::Any("o", permissions));
        let write = |name, permissions| Row::write(name, Need::Any("o", permissions));
        match self {
            Self::Put(_) => write("PutBlob", "cw"),
            Self::PutFromUrl(_) => write("PutBlobFromUrl", "cw"),
            Self::Get(_) => read("GetBlob", "r"),
            Self::Properties { .. } => read("GetBlobProperties", "r"),
            Self::SetProperties(_) => write("SetBlobProperties", "w"),
            Self::Metadata { .. } => read("GetBlobMetadata", "r"),
            Self::SetMetadata { .. } => write("SetBlobMetadata", "w"),
            Self::Tags { .. } => read("GetBlobTags", "t"),
            Self::SetTags { .. } => write("SetBlobTags", "t"),
            Self::Lease { action: LeaseAction::Break { .. }, .. } => write("LeaseBlob", "wd"),
            Self::Lease { .. } => write("LeaseBlob", "w"),
            Self::Snapshot { .. } => write("SnapshotBlob", "cw"),
            Self::Copy(copy) if copy.sync => write("CopyBlobFromUrl", "cw"),
            Self::Copy(_) => write("CopyBlob", "cw"),
            Self::AbortCopy { .. } => write("AbortCopyBlob", "w"),
            Self::Delete(delete) if delete.permanent => write("DeleteBlob", "y"),
            Self::Delete(Delete { which: Which::Version(_), .. }) => write("DeleteBlob", "x"),
            Self::Delete(_) => write("DeleteBlob", "d"),
            Self::Undelete => write("UndeleteBlob", "w"),
            Self::SetTier(_) => write("SetBlobTier", "w"),
            Self::SetExpiry { .. } => write("SetBlobExpiry", "w"),
            Self::SetImmutability { .. } => write("SetBlobImmutabilityPolicy", "i"),
            Self::DeleteImmutability { .. } => write("DeleteBlobImmutabilityPolicy", "i"),
            Self::SetLegalHold { .. } => write("SetBlobLegalHold", "i"),
            Self::Query => read("QueryBlobContents", "r"),
            Self::PutBlock(put) if put.source.is_some() => write("PutBlockFromUrl", "w"),
            Self::PutBlock(_) => write("PutBlock", "w"),
            Self::PutBlockList(_) => write("PutBlockList", "w"),
            Self::BlockList { .. } => read("GetBlockList", "r"),
            Self::WritePages(pages) if pages.source.is_some() => write("PutPageFromUrl", "w"),
            Self::WritePages(_) => write("PutPage", "w"),
            Self::PageRanges(_) => read("GetPageRanges", "r"),
            Self::IncrementalCopy => write("IncrementalCopyBlob", "cw"),
            Self::Append(append) if append.source.is_some() => write("AppendBlockFromUrl", "aw"),
            Self::Append(_) => write("AppendBlock", "aw"),
            Self::Seal { .. } => write("SealAppendBlob", "aw"),
            Self::Account => Row::read("GetAccountInformation", Need::ACCOUNT),
        }
    }
}
