//! From the head of a request to one of the service's operations: a closed enum that `lib.rs` matches on.
//!
//! The path says whether it is about the service, a container or a blob; `restype` and `comp` say what is asked of it.
//! What is not known is refused, as are headers that ask for what we do not have: nothing is silently left out.

mod blob;
mod container;
mod content;
mod head;
mod service;
#[cfg(test)]
mod tests;
mod write;

use lazuli_http::Method;

use crate::access::Need;
use crate::address::Resource;
use crate::address::{check_blob, check_container};
use crate::error::{Common, Fault, Result};
use crate::lake;
use crate::limits::Limits;

pub(crate) use blob::BlobOperation;
pub(crate) use container::{BlobList, ContainerOperation, CreateContainer, MAP_HEADER, SetAcl};
pub(crate) use content::{
    Append, BlockListKind, Expiry, GetPages, PageWrite, PutBlock, PutBlockList,
};
pub(crate) use head::{Head, bad_header, bad_parameter, decode};
pub(crate) use service::{ContainerList, Find, ServiceOperation};
pub(crate) use write::{
    CopyBlob, Delete, Get, NewBlob, NewKind, PutBlob, PutBlobFromUrl, RangeDigest, SetProperties,
    SetTier, Source,
};

/// Every operation of the service. `operations.toml` has one row for each name.
#[derive(Debug)]
pub(crate) enum Operation {
    Preflight,
    /// A page of the account's website, by its path.
    Website(String),
    /// A call of the Data Lake service, on a container that must be there.
    DataLake(Option<String>),
    Service(ServiceOperation),
    Container(String, ContainerOperation),
    Blob(BlobPath, Box<BlobOperation>),
}

/// The name of a blob, in its container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobPath {
    pub(crate) container: String,
    pub(crate) name: String,
}

/// Headers that ask for an encryption scope, of which no account has any.
const SCOPES: [&str; 2] = ["x-ms-encryption-scope", "x-ms-default-encryption-scope"];

impl Operation {
    pub(crate) fn parse(head: Head<'_>, resource: Resource, limits: &Limits) -> Result<Self> {
        if head.method == Method::OPTIONS {
            return Ok(Self::Preflight);
        }
        if lake::is_meant(head) {
            return match resource {
                Resource::Container(container) | Resource::Blob(container, _)
                    if !lake::creates(head) =>
                {
                    check_container(&container)?;
                    Ok(Self::DataLake(Some(container)))
                }
                _ => Ok(Self::DataLake(None)),
            };
        }
        for name in SCOPES {
            if head.text(name).is_some() {
                return Err(Fault::new(Common::UnsupportedHeader).detail("HeaderName", name));
            }
        }
        match resource {
            Resource::Service => Ok(Self::Service(ServiceOperation::parse(head, limits)?)),
            Resource::Container(container) => {
                check_container(&container)?;
                let operation = ContainerOperation::parse(head, limits)?;
                Ok(Self::Container(container, operation))
            }
            Resource::Blob(container, name) => {
                check_container(&container)?;
                check_blob(&container, &name)?;
                let operation = BlobOperation::parse(head, limits)?;
                Ok(Self::Blob(BlobPath { container, name }, Box::new(operation)))
            }
        }
    }

    /// Whether its body is the content of a blob, whose length must be known beforehand.
    pub(crate) fn has_content(&self) -> bool {
        let Self::Blob(_, operation) = self else { return false };
        matches!(
            **operation,
            BlobOperation::Put(_)
                | BlobOperation::PutBlock(_)
                | BlobOperation::Append(_)
                | BlobOperation::WritePages(_)
        )
    }
}

impl lazuli_azure::Operation for Operation {
    type Need = Need;

    fn row(&self) -> Row {
        match self {
            Self::Preflight => Row::read("Preflight", Need::Nothing),
            Self::Website(_) => Row::read("GetWebsite", Need::Nothing),
            Self::DataLake(_) => Row::read("DataLake", Need::ACCOUNT),
            Self::Service(operation) => operation.row(),
            Self::Container(_, operation) => operation.row(),
            Self::Blob(_, operation) => operation.row(),
        }
    }
}

type Row = lazuli_azure::Row<Need>;

/// The refusal of an operation that the resource does not have.
fn unknown(head: Head<'_>) -> Fault {
    for (name, value) in [("comp", head.parameter("comp")), ("restype", head.parameter("restype"))]
    {
        if let Some(value) = value {
            return bad_parameter(name, value);
        }
    }
    match *head.method {
        Method::GET | Method::HEAD | Method::PUT | Method::DELETE => Fault::new(Common::InvalidUri),
        _ => Fault::new(Common::UnsupportedHttpVerb),
    }
}
