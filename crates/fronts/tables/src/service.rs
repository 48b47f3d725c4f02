//! Operations on the service itself: its properties, its statistics, and what browsers ask beforehand.

use lazuli_http::properties::Properties;
use lazuli_http::service::{self, PreflightRefusal, Visitor};
use lazuli_http::{HeaderMap, Response, StatusCode};

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

pub(crate) fn stats(call: &Call) -> Result<Response> {
    if !call.address.target.secondary {
        return Err(Fault::new(Code::InvalidQueryParameterValue)
            .say("Statistics are there at the secondary endpoint only."));
    }
    Ok(response::xml(StatusCode::OK, service::stats(call.received_ms)))
}

pub(crate) async fn preflight(front: &Front, call: &Call, headers: &HeaderMap) -> Result<Response> {
    let rules = load(front, &call.address.target.account).await?.cors;
    service::preflight(headers, &rules).map_err(|refusal| {
        Fault::new(match refusal {
            PreflightRefusal::NoQuestion => Code::MissingRequiredHeader,
            PreflightRefusal::NoRule => Code::CorsPreflightFailure,
        })
    })
}

/// Tells a page of another origin whether it may read the answer. If the rules can't be read, it may not.
pub(crate) async fn greet(
    front: &Front,
    account: &str,
    visitor: &Visitor,
    response: Response,
) -> Response {
    match load(front, account).await {
        Ok(properties) => visitor.greet(&properties.cors, response),
        Err(_) => response,
    }
}
