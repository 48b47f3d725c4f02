//! Operations on the service itself.

use bytes::Bytes;
use lazuli_http::multipart;

use super::{Head, Row, bad_parameter, unknown};
use crate::access::Need;
use crate::error::Result;
use crate::filter::{self, Search};
use crate::limits::Limits;
use crate::list;

#[derive(Debug, PartialEq)]
pub(crate) enum ServiceOperation {
    ListContainers(ContainerList),
    GetProperties,
    SetProperties,
    Stats,
    Account,
    DelegationKey,
    Find(Find),
    Batch { boundary: String },
}

#[derive(Debug, PartialEq)]
pub(crate) struct ContainerList {
    pub(crate) prefix: String,
    /// The marker as it was sent, which the answer repeats, and the place that it stands for.
    pub(crate) marker: Option<(String, Bytes)>,
    pub(crate) most: usize,
    /// The number that the client asked for, which the answer repeats.
    pub(crate) asked: Option<usize>,
    pub(crate) metadata: bool,
    pub(crate) deleted: bool,
    pub(crate) system: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Find {
    pub(crate) search: Search,
    pub(crate) marker: Option<Bytes>,
    pub(crate) most: usize,
}

impl Find {
    pub(super) fn of(head: Head<'_>, limits: &Limits) -> Result<Self> {
        Ok(Self {
            search: filter::search(head.required_parameter("where")?)?,
            marker: marker(head)?,
            most: head.page_items(limits.page_items_max)?,
        })
    }
}

/// What the marker of the page before stands for.
pub(super) fn marker(head: Head<'_>) -> Result<Option<Bytes>> {
    let read = |text| list::read_marker(text).ok_or_else(|| bad_parameter("marker", text));
    head.parameter("marker").map(read).transpose()
}

/// The parts of an `include` parameter, each of which must be known.
pub(super) fn includes(head: Head<'_>, mut know: impl FnMut(&str) -> bool) -> Result<()> {
    let Some(list) = head.parameter("include") else { return Ok(()) };
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if !know(&item.to_ascii_lowercase()) {
            return Err(bad_parameter("include", item));
        }
    }
    Ok(())
}

/// The boundary of the parts of a batch.
pub(super) fn boundary(head: Head<'_>) -> Result<String> {
    Ok(multipart::boundary(head.text("content-type").unwrap_or_default())?.to_owned())
}

impl ServiceOperation {
    pub(super) fn parse(head: Head<'_>, limits: &Limits) -> Result<Self> {
        let (kind, part) = (head.parameter("restype"), head.parameter("comp"));
        match (head.method.as_str(), kind, part) {
            ("GET", None, Some("list")) => Ok(Self::ListContainers(list(head, limits)?)),
            ("GET", Some("service"), Some("properties")) => Ok(Self::GetProperties),
            ("PUT", Some("service"), Some("properties")) => Ok(Self::SetProperties),
            ("GET", Some("service"), Some("stats")) => Ok(Self::Stats),
            ("GET" | "HEAD", Some("account"), Some("properties")) => Ok(Self::Account),
            ("POST", Some("service"), Some("userdelegationkey")) => Ok(Self::DelegationKey),
            ("GET", None, Some("blobs")) => Ok(Self::Find(Find::of(head, limits)?)),
            // Some clients take the account in the path for a container.
            ("POST", None | Some("container"), Some("batch")) => {
                Ok(Self::Batch { boundary: boundary(head)? })
            }
            _ => Err(unknown(head)),
        }
    }

    pub(super) fn row(&self) -> Row {
        match self {
            Self::ListContainers(_) => Row::read("ListContainers", Need::Any("s", "l")),
            Self::GetProperties => Row::read("GetServiceProperties", Need::Any("s", "r")),
            Self::SetProperties => Row::write("SetServiceProperties", Need::Any("s", "w")),
            Self::Stats => Row::read("GetServiceStats", Need::Any("s", "r")),
            Self::Account => Row::read("GetAccountInformation", Need::ACCOUNT),
            Self::DelegationKey => Row::read("GetUserDelegationKey", Need::Bearer),
            Self::Find(_) => Row::read("FindBlobsByTags", Need::Any("sco", "f")),
            Self::Batch { .. } => Row::write("BlobBatch", Need::Nothing),
        }
    }
}

fn list(head: Head<'_>, limits: &Limits) -> Result<ContainerList> {
    let marker = marker(head)?;
    let sent = head.parameter("marker").unwrap_or_default().to_owned();
    let most = head.page_items(limits.page_items_max)?;
    let mut list = ContainerList {
        prefix: head.parameter("prefix").unwrap_or_default().to_owned(),
        marker: marker.map(|place| (sent, place)),
        most,
        asked: head.parameter("maxresults").map(|_| most),
        metadata: false,
        deleted: false,
        system: false,
    };
    includes(head, |item| {
        let flag = match item {
            "metadata" => &mut list.metadata,
            "deleted" => &mut list.deleted,
            "system" => &mut list.system,
            _ => return false,
        };
        *flag = true;
        true
    })?;
    Ok(list)
}
