//! Operations on containers.

use bytes::Bytes;
use lazuli_shapes::blob::{Conditions, LeaseAction, PublicAccess};

use super::service::{Find, boundary, includes, marker};
use super::{Head, Row, bad_header, bad_parameter, unknown};
use crate::access::Need;
use crate::error::{Common, Fault, Result};
use crate::limits::Limits;
use crate::options::{Pairs, conditions, lease_action, lease_only, metadata};

/// The header by which a client asks for a container whose names are hashed (B3).
pub(crate) const MAP_HEADER: &str = "x-lazuli-map";

#[derive(Debug)]
pub(crate) enum ContainerOperation {
    Create(CreateContainer),
    Properties {
        conditions: Conditions,
    },
    Metadata {
        conditions: Conditions,
    },
    SetMetadata {
        metadata: Pairs,
        conditions: Conditions,
    },
    Acl {
        conditions: Conditions,
    },
    SetAcl(SetAcl),
    Delete {
        conditions: Conditions,
    },
    /// The name that the container had, and its version.
    Restore {
        name: String,
        version: Option<String>,
    },
    Lease {
        action: LeaseAction,
        conditions: Conditions,
    },
    List(BlobList),
    Find(Find),
    Batch {
        boundary: String,
    },
    Account,
}

#[derive(Debug, PartialEq)]
pub(crate) struct CreateContainer {
    pub(crate) metadata: Pairs,
    /// Whether its blobs are placed by a hash of their names.
    pub(crate) hashed: bool,
    pub(crate) access: PublicAccess,
}

#[derive(Debug)]
pub(crate) struct SetAcl {
    pub(crate) access: PublicAccess,
    pub(crate) conditions: Conditions,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct BlobList {
    pub(crate) prefix: String,
    /// Names before this one are left out.
    pub(crate) from: Option<String>,
    pub(crate) delimiter: Option<String>,
    /// The marker as it was sent, which the answer repeats.
    pub(crate) sent_marker: Option<String>,
    pub(crate) marker: Option<Bytes>,
    pub(crate) most: usize,
    /// The number that the client asked for, which the answer repeats.
    pub(crate) asked: Option<usize>,
    pub(crate) copy: bool,
    pub(crate) deleted: bool,
    pub(crate) metadata: bool,
    pub(crate) snapshots: bool,
    pub(crate) uncommitted: bool,
    pub(crate) versions: bool,
    pub(crate) deleted_with_versions: bool,
    pub(crate) tags: bool,
    pub(crate) immutability: bool,
    pub(crate) legal_hold: bool,
}

impl ContainerOperation {
    pub(super) fn parse(head: Head<'_>, limits: &Limits) -> Result<Self> {
        if head.parameter("restype").is_some_and(|kind| kind.eq_ignore_ascii_case("account")) {
            return match (head.method.as_str(), head.parameter("comp")) {
                ("GET" | "HEAD", Some("properties")) => Ok(Self::Account),
                _ => Err(unknown(head)),
            };
        }
        let conditions = || conditions(head);
        match (head.method.as_str(), head.parameter("comp")) {
            ("PUT", None) => Ok(Self::Create(CreateContainer {
                metadata: metadata(head, limits)?,
                hashed: is_hashed(head)?,
                access: public_access(head)?,
            })),
            ("GET" | "HEAD", None) => Ok(Self::Properties { conditions: lease_only(head)? }),
            ("DELETE", None) => Ok(Self::Delete { conditions: conditions()? }),
            ("GET" | "HEAD", Some("metadata")) => {
                Ok(Self::Metadata { conditions: lease_only(head)? })
            }
            ("PUT", Some("metadata")) => Ok(Self::SetMetadata {
                metadata: metadata(head, limits)?,
                conditions: conditions()?,
            }),
            ("GET" | "HEAD", Some("acl")) => Ok(Self::Acl { conditions: lease_only(head)? }),
            ("PUT", Some("acl")) => {
                Ok(Self::SetAcl(SetAcl { access: public_access(head)?, conditions: conditions()? }))
            }
            ("PUT", Some("undelete")) => Ok(Self::Restore {
                name: head.required("x-ms-deleted-container-name")?.to_owned(),
                version: head.text("x-ms-deleted-container-version").map(str::to_owned),
            }),
            ("PUT", Some("lease")) => Ok(Self::Lease {
                action: lease_action(head)?,
                conditions: Conditions { lease_id: None, ..conditions()? },
            }),
            ("GET", Some("list")) => Ok(Self::List(list(head, limits)?)),
            ("GET", Some("blobs")) => Ok(Self::Find(Find::of(head, limits)?)),
            ("POST", Some("batch")) => Ok(Self::Batch { boundary: boundary(head)? }),
            _ => Err(unknown(head)),
        }
    }

    pub(super) fn row(&self) -> Row {
        match self {
            Self::Create(_) => Row::write("CreateContainer", Need::Any("c", "cw")),
            Self::Properties { .. } => Row::read("GetContainerProperties", Need::Any("c", "r")),
            Self::Metadata { .. } => Row::read("GetContainerMetadata", Need::Any("c", "r")),
            Self::SetMetadata { .. } => Row::write("SetContainerMetadata", Need::Any("c", "w")),
            Self::Acl { .. } => Row::read("GetContainerAcl", Need::Key),
            Self::SetAcl(_) => Row::write("SetContainerAcl", Need::Key),
            Self::Delete { .. } => Row::write("DeleteContainer", Need::Any("c", "d")),
            Self::Restore { .. } => Row::write("RestoreContainer", Need::Any("c", "w")),
            Self::Lease { action: LeaseAction::Break { .. }, .. } => {
                Row::write("LeaseContainer", Need::Any("c", "wd"))
            }
            Self::Lease { .. } => Row::write("LeaseContainer", Need::Any("c", "w")),
            Self::List(_) => Row::read("ListBlobs", Need::Any("c", "l")),
            Self::Find(_) => Row::read("FindBlobsByTagsInContainer", Need::Any("c", "f")),
            Self::Batch { .. } => Row::write("ContainerBatch", Need::Nothing),
            Self::Account => Row::read("GetAccountInformation", Need::ACCOUNT),
        }
    }
}

/// How a new container places its blobs: in the order of their names, or by a hash of them, which spreads names that only
/// ever grow. The header is our own; clients of the original do not know it.
fn is_hashed(head: Head<'_>) -> Result<bool> {
    match head.text(MAP_HEADER) {
        None | Some("range") => Ok(false),
        Some("hash") => Ok(true),
        Some(_) => Err(bad_header(MAP_HEADER)),
    }
}

fn public_access(head: Head<'_>) -> Result<PublicAccess> {
    match head.text("x-ms-blob-public-access") {
        None => Ok(PublicAccess::None),
        Some("container") => Ok(PublicAccess::Container),
        Some("blob" | "true") => Ok(PublicAccess::Blob),
        Some(_) => Err(bad_header("x-ms-blob-public-access")),
    }
}

fn list(head: Head<'_>, limits: &Limits) -> Result<BlobList> {
    let text = |name: &str| head.parameter(name).map(str::to_owned);
    let most = head.page_items(limits.page_items_max)?;
    let mut list = BlobList {
        prefix: text("prefix").unwrap_or_default(),
        from: text("startFrom"),
        delimiter: text("delimiter"),
        sent_marker: text("marker"),
        marker: marker(head)?,
        most,
        asked: text("maxresults").map(|_| most),
        ..BlobList::default()
    };
    includes(head, |item| {
        let flag = match item {
            "copy" => &mut list.copy,
            "deleted" => &mut list.deleted,
            "metadata" => &mut list.metadata,
            "snapshots" => &mut list.snapshots,
            "uncommittedblobs" => &mut list.uncommitted,
            "versions" => &mut list.versions,
            "deletedwithversions" => &mut list.deleted_with_versions,
            "tags" => &mut list.tags,
            "immutabilitypolicy" => &mut list.immutability,
            "legalhold" => &mut list.legal_hold,
            // There are no permissions per user here.
            "permissions" => return true,
            _ => return false,
        };
        *flag = true;
        true
    })?;
    if list.delimiter.is_some() && list.snapshots {
        return Err(bad_parameter("include", "snapshots"));
    }
    for name in ["showonly", "endBefore"] {
        if head.parameter(name).is_some() {
            return Err(
                Fault::new(Common::UnsupportedQueryParameter).detail("QueryParameterName", name)
            );
        }
    }
    Ok(list)
}
