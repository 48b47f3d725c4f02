//! Operations on the service itself: its properties, its statistics, the account, keys for users, and what browsers ask.

use bytes::Bytes;
use lazuli_http::auth::access::Access;
use lazuli_http::auth::delegation::DelegatedKey;
use lazuli_http::date::{Fraction, TICKS_PER_MILLI, format_iso8601, parse_iso8601};
use lazuli_http::service::{self, PreflightRefusal};
use lazuli_http::{Body, HeaderMap, Response, StatusCode, xml};
use md5::{Digest as _, Md5};

use crate::error::{Common, Fault, Result};
use crate::limits::DELEGATION_DAYS_MAX;
use crate::options::Checksums;
use crate::{Call, Front, response};

const DAY_TICKS: i64 = 24 * 3600 * 1000 * TICKS_PER_MILLI;

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
    let root = xml::parse(&body).map_err(|_| Fault::new(Common::InvalidXmlDocument))?;
    let bad = || Fault::new(Common::InvalidXmlNodeValue);
    let time = |name: &str| match root.child_text(name) {
        Some(text) => parse_iso8601(text).map(Some).ok_or_else(bad),
        None => Ok(None),
    };
    let now = i64::try_from(call.received_ms).unwrap_or(i64::MAX).saturating_mul(TICKS_PER_MILLI);
    let start = time("Start")?.unwrap_or(now);
    let expiry = time("Expiry")?.ok_or_else(|| Fault::new(Common::MissingRequiredXmlNode))?;
    if root.name != "KeyInfo" || expiry <= start || expiry <= now {
        return Err(bad());
    }
    if expiry - start.max(now) > DELEGATION_DAYS_MAX * DAY_TICKS {
        return Err(bad());
    }
    let text =
        |ticks: i64| format_iso8601(ticks - ticks.rem_euclid(10_000_000), Fraction::Shortest);
    let (start, expiry) = (text(start), text(expiry));
    let key = DelegatedKey {
        object_id: &user.object_id,
        tenant_id: &user.tenant_id,
        start: &start,
        expiry: &expiry,
        service: "b",
        version: &call.version,
        delegated_tenant: root.child_text("DelegatedUserTid").unwrap_or_default(),
    };
    let keys = front.accounts.get(&call.target.account);
    let keys = keys.ok_or_else(|| Fault::new(Common::AuthenticationFailed))?;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey>");
    for (name, value) in [
        ("SignedOid", key.object_id),
        ("SignedTid", key.tenant_id),
        ("SignedStart", key.start),
        ("SignedExpiry", key.expiry),
        ("SignedService", key.service),
        ("SignedVersion", key.version),
    ] {
        xml::write(&mut out, name, value);
    }
    if !key.delegated_tenant.is_empty() {
        xml::write(&mut out, "SignedDelegatedUserTid", key.delegated_tenant);
    }
    xml::write(&mut out, "Value", &key.value(&keys));
    out.push_str("</UserDelegationKey>");
    Ok(response::xml(StatusCode::OK, out))
}
