//! Operations on the service itself: its properties, its statistics, the account, keys for users, and what browsers ask.

use bytes::Bytes;
use lazuli_http::auth::access::Access;
use lazuli_http::auth::delegation::{DelegatedKey, KeyWish};
use lazuli_http::service::{self, PreflightRefusal};
use lazuli_http::{Body, HeaderMap, Response, StatusCode};
use md5::{Digest as _, Md5};

use crate::error::{Common, Fault, Result};
use crate::options::Checksums;
use crate::{Call, Front, response};

impl Front {
    /// The whole of a body that is a document.
    pub(crate) async fn document(&self, body: &mut Body) -> Result<Bytes> {
        let body = std::mem::replace(body, Body::empty());
        Ok(body.collect(self.limits.document_bytes_max).await?)
    }

    /// The same, checked against the sums that the request names.
    pub(crate) async fn checked_document(
        &self,
        body: &mut Body,
        checksums: Checksums,
    ) -> Result<Bytes> {
        let body = self.document(body).await?;
        let mut crc64 = lazuli_engine::Crc64::new();
        crc64.update(&body);
        checksums.check(Some(Md5::digest(&body).into()), crc64.sum())?;
        Ok(body)
    }
}

pub(crate) async fn get_properties(front: &Front, call: &Call) -> Result<Response> {
    let properties = front.properties(&call.target.account).await?;
    Ok(response::xml(StatusCode::OK, properties.write()))
}

pub(crate) async fn set_properties(
    front: &Front,
    call: &Call,
    body: &mut Body,
) -> Result<Response> {
    let body = front.document(body).await?;
    let account = &call.target.account;
    let properties = front.properties(account).await?.changed_by(&body)?;
    front.set_properties(account, &properties).await?;
    Ok(Response::new(StatusCode::ACCEPTED))
}

/// The secondary endpoint reads what the primary wrote, so it is never behind.
pub(crate) fn stats(call: &Call) -> Result<Response> {
    if !call.target.secondary {
        return Err(Fault::new(Common::InvalidQueryParameterValue)
            .say("Statistics are there at the secondary endpoint only."));
    }
    Ok(response::xml(StatusCode::OK, service::stats(call.received_ms)))
}

/// What kind of account it is: one that can do everything that we can.
pub(crate) fn account() -> Response {
    Response::new(StatusCode::OK)
        .with("x-ms-sku-name", "Standard_RAGRS")
        .with("x-ms-account-kind", "StorageV2")
        .with("x-ms-is-hns-enabled", "false")
}

/// Whether the request that a browser has in mind would be let in by a rule.
pub(crate) async fn preflight(front: &Front, call: &Call, headers: &HeaderMap) -> Result<Response> {
    let properties = front.properties(&call.target.account).await?;
    service::preflight(headers, &properties.common.cors).map_err(|refusal| match refusal {
        PreflightRefusal::NoQuestion => Fault::new(Common::MissingRequiredHeader),
        PreflightRefusal::NoRule => Fault::new(Common::CorsPreflightFailure),
    })
}

/// A key for the user whom the token speaks of, to sign with for a while.
pub(crate) async fn delegation_key(
    front: &Front,
    call: &Call,
    body: &mut Body,
) -> Result<Response> {
    let Access::User(user) = &call.access else {
        return Err(Fault::new(Common::AuthenticationFailed));
    };
    let body = front.document(body).await?;
    let wish = KeyWish::read(&body, call.received_ms)?;
    let key = DelegatedKey {
        object_id: &user.object_id,
        tenant_id: &user.tenant_id,
        start: &wish.start,
        expiry: &wish.expiry,
        service: "b",
        version: &call.version,
        delegated_tenant: &wish.delegated_tenant,
    };
    let keys = front.accounts.get(&call.target.account);
    let keys = keys.ok_or_else(|| Fault::new(Common::AuthenticationFailed))?;
    Ok(response::xml(StatusCode::OK, key.write(&keys)))
}
