//! Operations on the service itself: its properties, its statistics, and what browsers ask beforehand.

use lazuli_http::cors::{self, CorsRule, Preflight};
use lazuli_http::date::format_rfc1123;
use lazuli_http::properties::Properties;
use lazuli_http::{HeaderMap, Request, Response, StatusCode};

use crate::error::{Code, Fault, Result, Subject};
use crate::{Call, Front, response};

/// Under which name the properties of an account's Table service are kept.
fn name(account: &str) -> String {
    format!("tables/{account}")
}

async fn load(front: &Front, account: &str) -> Result<Properties> {
    let stored = front.records.service(&name(account)).await;
    match stored.map_err(|error| Fault::from_core(&error, Subject::Table))? {
        None => Ok(Properties::default()),
        Some(stored) => Properties::default().changed_by(&stored).map_err(|_| {
            Fault::new(Code::InternalError).because("the stored properties can't be read")
        }),
    }
}

pub(crate) async fn get_properties(front: &Front, call: &Call) -> Result<Response> {
    let properties = load(front, &call.address.target.account).await?;
    Ok(response::xml(StatusCode::OK, properties.write()))
}

pub(crate) async fn set_properties(front: &Front, call: &Call, body: &[u8]) -> Result<Response> {
    let account = &call.address.target.account;
    let properties = load(front, account).await?.changed_by(body)?;
    let kept = front.records.set_service(&name(account), properties.write().into()).await;
    kept.map_err(|error| Fault::from_core(&error, Subject::Table))?;
    Ok(Response::new(StatusCode::ACCEPTED))
}

/// The secondary endpoint reads what the primary wrote, so it is never behind.
pub(crate) fn stats(call: &Call) -> Result<Response> {
    if !call.address.target.secondary {
        return Err(Fault::new(Code::InvalidQueryParameterValue)
            .say("Statistics are there at the secondary endpoint only."));
    }
    let now = format_rfc1123(i64::try_from(call.received_ms / 1000).unwrap_or(0));
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
         <Status>live</Status><LastSyncTime>{now}</LastSyncTime></GeoReplication>\
         </StorageServiceStats>"
    );
    Ok(response::xml(StatusCode::OK, body))
}

/// Whether the request that a browser has in mind would be let in by a rule.
pub(crate) async fn preflight(front: &Front, call: &Call, headers: &HeaderMap) -> Result<Response> {
    let question = Preflight::of(headers).ok_or_else(|| Fault::new(Code::MissingRequiredHeader))?;
    let rules = load(front, &call.address.target.account).await?.cors;
    let rule = question.find(&rules).ok_or_else(|| Fault::new(Code::CorsPreflightFailure))?;
    Ok(question.answer(rule, Response::new(StatusCode::OK)))
}

/// A request of a page from another origin: what its answer must say so that the page may read it.
pub(crate) struct Visitor {
    origin: String,
    method: String,
    rules: Vec<CorsRule>,
}

impl Visitor {
    /// None if the request comes from no page, or the rules can't be read: then the browser keeps the answer to itself.
    pub(crate) async fn of(front: &Front, request: &Request, account: &str) -> Option<Self> {
        let origin = request.header("origin")?.to_owned();
        let method = request.method.as_str().to_owned();
        let rules = load(front, account).await.ok()?.cors;
        Some(Self { origin, method, rules })
    }

    pub(crate) fn greet(&self, response: Response) -> Response {
        cors::expose(&self.rules, &self.origin, &self.method, response)
    }
}
