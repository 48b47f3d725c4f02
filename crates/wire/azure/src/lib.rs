//! What the Azure storage services share on top of HTTP: accounts and their keys, signatures, OData JSON, access
//! policies, service properties, the headers of every answer, and the error document.
//!
//! Bytes only: this crate knows no engine, no shape and no front. Every parser here is total (an answer or a refusal,
//! never a panic) and bounded.

pub mod account;
pub mod acl;
pub mod auth;
pub mod front;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod odata;
pub mod properties;
pub mod service;
pub mod storage;
pub mod storage_error;

pub use front::{Base, Call, Grants, Operation, Row, StorageService};

/// Why an XML document of a client is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentError {
    /// It is not XML, or not the document that was asked for.
    NotXml,
    /// An element has a value that makes no sense.
    BadValue,
}

impl From<lazuli_http::xml::XmlError> for DocumentError {
    fn from(_: lazuli_http::xml::XmlError) -> Self {
        Self::NotXml
    }
}
