//! HTTP for servers and clients: connections within limits, bodies, addresses, headers, multipart, CORS, XML, and the
//! skeleton that every HTTP front shares.
//!
//! Bytes only: this crate knows no engine, no shape and no front. Everything it parses comes from untrusted clients, so
//! every parser here is total (a value or an error, never a panic) and bounded.

pub mod api;
mod arriving;
pub mod body;
pub mod client;
pub mod cors;
pub mod date;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
pub mod message;
pub mod multipart;
pub mod mutate;
pub mod serve;
pub mod uri;
pub mod xml;

pub use api::{Api, serve_api};
pub use body::{Body, BodyError};
pub use http::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use http::{Method, StatusCode, Uri};
pub use limits::Limits;
pub use message::{Request, RequestId, Response};
pub use serve::{Handler, HttpFront, counted, handler};
