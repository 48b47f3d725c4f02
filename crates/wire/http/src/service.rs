//! What all storage services answer of themselves in the same way: statistics, and what browsers ask.

use http::{HeaderMap, Method, StatusCode};

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

/// A page of another origin that sent a request, or may come across its answer in a cache: what the answer must say so that
/// the page may read it.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// None if the request does not say which page sent it.
    origin: Option<String>,
    method: String,
}

impl Visitor {
    /// None if no page can come to read the answer: nothing is read, or what is read is signed for in a header, which no
    /// cache gives to others. So the rules need not be looked up for the requests of SDKs.
    pub fn of(request: &Request) -> Option<Self> {
        let origin = request.header("origin").map(str::to_owned);
        let is_kept = matches!(request.method, Method::GET | Method::HEAD)
            && request.header("authorization").is_none();
        (origin.is_some() || is_kept)
            .then(|| Self { origin, method: request.method.as_str().to_owned() })
    }

    pub fn greet(&self, rules: &[CorsRule], response: Response) -> Response {
        cors::expose(rules, self.origin.as_deref(), &self.method, response)
    }
}
