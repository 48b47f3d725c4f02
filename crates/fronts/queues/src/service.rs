//! Operations on the service itself: its properties, its statistics, keys for users, and what browsers ask beforehand.

use lazuli_http::auth::access::{Access, Service};
use lazuli_http::auth::delegation::{DelegatedKey, KeyWish};
use lazuli_http::properties::Properties;
use lazuli_http::service::{self, PreflightRefusal, Visitor};
use lazuli_http::storage_error::CommonCode;
use lazuli_http::{HeaderMap, Response, StatusCode};

use crate::error::{Fault, Result, from_core};
use crate::{Call, Front, response};

/// Under which name the properties of an account's Queue service are kept.
fn name(account: &str) -> String {
    format!("queues/{account}")
}

async fn load(front: &Front, account: &str) -> Result<Properties> {
    match front.queues.service(&name(account)).await.map_err(from_core)? {
        None => Ok(Properties::default()),
        Some(stored) => Properties::default().changed_by(&stored).map_err(|_| {
            Fault::new(CommonCode::InternalError).because("the stored properties can't be read")
        }),
    }
}

pub(crate) async fn get_properties(front: &Front, call: &Call) -> Result<Response> {
    let properties = load(front, call.account()).await?;
    Ok(response::document(StatusCode::OK, properties.write()))
}

pub(crate) async fn set_properties(front: &Front, call: &Call, body: &[u8]) -> Result<Response> {
    let account = call.account();
    let properties = load(front, account).await?.changed_by(body)?;
    let kept = front.queues.set_service(&name(account), properties.write().into()).await;
    kept.map_err(from_core)?;
    Ok(Response::new(StatusCode::ACCEPTED))
}

pub(crate) fn stats(call: &Call) -> Result<Response> {
    if !call.address.target.secondary {
        return Err(Fault::new(CommonCode::InvalidQueryParameterValue)
            .say("Statistics are there at the secondary endpoint only."));
    }
    Ok(response::document(StatusCode::OK, service::stats(call.received_ms)))
}

/// A key for whoever the token of the request speaks of.
pub(crate) fn user_delegation_key(front: &Front, call: &Call, body: &[u8]) -> Result<Response> {
    let Access::User(identity) = &call.access else {
        return Err(Fault::new(CommonCode::AuthenticationFailed).detail(
            "AuthenticationErrorDetail",
            "Only authentication scheme Bearer is supported",
        ));
    };
    let wish = KeyWish::read(body, call.received_ms)?;
    let keys = front.accounts.get(call.account());
    let keys = keys.ok_or_else(|| Fault::new(CommonCode::AuthenticationFailed))?;
    let service = Service::QUEUE.letter.to_string();
    let key = DelegatedKey {
        object_id: &identity.object_id,
        tenant_id: &identity.tenant_id,
        start: &wish.start,
        expiry: &wish.expiry,
        service: &service,
        version: &call.version,
        delegated_tenant: &wish.delegated_tenant,
    };
    Ok(response::document(StatusCode::OK, key.write(&keys)))
}

pub(crate) async fn preflight(front: &Front, call: &Call, headers: &HeaderMap) -> Result<Response> {
    let rules = load(front, call.account()).await?.cors;
    service::preflight(headers, &rules).map_err(|refusal| {
        Fault::new(match refusal {
            PreflightRefusal::NoQuestion => CommonCode::MissingRequiredHeader,
            PreflightRefusal::NoRule => CommonCode::CorsPreflightFailure,
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
