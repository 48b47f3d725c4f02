//! What all storage services answer of themselves in the same way: statistics, and what browsers ask.

use http::{HeaderMap, StatusCode};

use crate::cors::{self, CorsRule, Preflight};
use crate::date::format_rfc1123;
use crate::message::{Request, Response};

/// The statistics of a service whose secondary endpoint reads what the primary wrote, and so is never behind.
pub fn stats(received_ms: u64) -> String {
    let now = format_rfc1123(i64::try_from(received_ms / 1000).unwrap_or(0));
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
         <Status>live</Status><LastSyncTime>{now}</LastSyncTime></GeoReplication>\
         </StorageServiceStats>"
    )
}

/// Why a browser may not send what it has in mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreflightRefusal {
    /// It does not say what.
    NoQuestion,
    /// No rule allows it.
    NoRule,
}

/// Whether the request that a browser has in mind would be let in by a rule.
pub fn preflight(headers: &HeaderMap, rules: &[CorsRule]) -> Result<Response, PreflightRefusal> {
    let question = Preflight::of(headers).ok_or(PreflightRefusal::NoQuestion)?;
    let rule = question.find(rules).ok_or(PreflightRefusal::NoRule)?;
    Ok(question.answer(rule, Response::new(StatusCode::OK)))
}

/// A page of another origin that sent a request: what its answer must say so that the page may read it.
#[derive(Clone, Debug)]
pub struct Visitor {
    origin: String,
    method: String,
}

impl Visitor {
    /// None if the request comes from no page.
    pub fn of(request: &Request) -> Option<Self> {
        let origin = request.header("origin")?.to_owned();
        Some(Self { origin, method: request.method.as_str().to_owned() })
    }

    pub fn greet(&self, rules: &[CorsRule], response: Response) -> Response {
        cors::expose(rules, &self.origin, &self.method, response)
    }
}
