//! HTTP as the storage services speak it: listening, limits, signatures, OData JSON, and the XML of their settings.
//!
//! Bytes only: this crate knows no engine, no shape and no front. Everything it parses comes from strangers, so every
//! parser here is total (an answer or a refusal, never a panic) and bounded.

pub mod account;
pub mod acl;
mod arriving;
pub mod auth;
pub mod body;
pub mod budget;
pub mod client;
pub mod cors;
pub mod date;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
pub mod message;
pub mod multipart;
pub mod mutate;
pub mod odata;
pub mod properties;
pub mod serve;
pub mod service;
pub mod stop;
pub mod storage;
pub mod storage_error;
pub mod tls;
pub mod uri;
pub mod xml;

pub use body::{Body, BodyError};
pub use budget::Budget;
pub use http::header::{HeaderMap, HeaderName, HeaderValue};
pub use http::{Method, StatusCode, Uri};
pub use limits::Limits;
pub use message::{Request, RequestId, Response};
pub use serve::{Counts, Door, serve};
pub use stop::{Stop, Stopper, stopper};
pub use tls::{CertificatePem, Tls, TlsError, self_signed};
