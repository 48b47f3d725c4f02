//! What is changed about a blob beside its content: properties, metadata, tags, tier, immutability, snapshots, deletion.

use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{
    BlobRecord, Conditions, DeleteOptions, Immutability, PageProperties, Which,
};

use crate::error::{Result, refused};
use crate::etag::{date, moment_text};
use crate::options::{Checksums, Pairs};
use crate::request::{Delete, Expiry, SetProperties, SetTier, bad_parameter};
use crate::{OnBlob, response, tags};

pub(crate) async fn set(on: &OnBlob<'_>, set: SetProperties) -> Result<Response> {
    let conditions = &set.conditions;
    let blobs = &on.front.blobs;
    let record = match (set.headers, set.length, set.sequence) {
        (Some(headers), None, None) => blobs.set_headers(&on.address, headers, conditions).await,
        // Only page blobs have the other two.
        (headers, length, sequence) => {
            let set = PageProperties { length, sequence, headers };
            blobs.set_page_properties(&on.address, set, conditions).await
        }
    };
    let record = record.map_err(refused)?;
    let answer = response::changed(Response::new(StatusCode::OK), record.modified());
    Ok(sequenced(answer, &record))
}

/// Page blobs say their sequence number.
pub(crate) fn sequenced(answer: Response, record: &BlobRecord) -> Response {
    match record.kind {
        lazuli_shapes::blob::BlobKind::Page => {
            answer.with("x-ms-blob-sequence-number", record.sequence_number.to_string())
        }
        _ => answer,
    }
}

pub(crate) async fn set_metadata(
    on: &OnBlob<'_>,
    metadata: Pairs,
    conditions: &Conditions,
) -> Result<Response> {
    let protection = on.front.protection(&on.call.target.account).await?;
    let key = on.call.own.key.as_ref().map(|key| key.sha256);
    let set = on.front.blobs.set_metadata(&on.address, metadata, conditions, protection, key).await;
    Ok(response::written(StatusCode::OK, &set.map_err(refused)?))
}

pub(crate) async fn tags(
    on: &OnBlob<'_>,
    which: Which,
    conditions: &Conditions,
) -> Result<Response> {
    let record =
        on.front.blobs.properties(&on.address, which, conditions, on.call.own.key.as_ref()).await;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags>");
    tags::write_set(&mut out, &record.map_err(refused)?.tags);
    out.push_str("</Tags>");
    Ok(response::xml(StatusCode::OK, out))
}

pub(crate) async fn set_tags(
    on: &OnBlob<'_>,
    which: Which,
    checksums: Checksums,
    conditions: &Conditions,
    body: &mut Body,
) -> Result<Response> {
    let body = on.front.checked_document(body, checksums).await?;
    let tags = tags::from_xml(&body, &on.front.limits)?;
    let set = on.front.blobs.set_tags(&on.address, which, tags, conditions).await;
    set.map_err(refused)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

pub(crate) async fn set_expiry(
    on: &OnBlob<'_>,
    expiry: Expiry,
    conditions: &Conditions,
) -> Result<Response> {
    let at = move |record: &BlobRecord, now_ms: u64| {
        Ok(match expiry {
            Expiry::Never => None,
            Expiry::AfterCreation(ms) => Some(record.created_ms.saturating_add(ms)),
            Expiry::FromNow(ms) => Some(now_ms.saturating_add(ms)),
            Expiry::At(ms) => Some(ms),
        })
    };
    let set = on.front.blobs.set_expiry(&on.address, at, conditions).await;
    let record = set.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::OK), record.modified()))
}

/// 202 says that it takes a while, which it does out of the archive.
pub(crate) async fn set_tier(on: &OnBlob<'_>, set: SetTier) -> Result<Response> {
    let urgent = set.high_priority;
    let done =
        on.front.blobs.set_tier(&on.address, set.which, set.tier, urgent, &set.conditions).await;
    let record = done.map_err(refused)?;
    let is_on_its_way = record.tier.is_some_and(|chosen| chosen.rehydration.is_some());
    Ok(Response::new(if is_on_its_way { StatusCode::ACCEPTED } else { StatusCode::OK }))
}

/// A snapshot has the metadata of its blob, unless the request has some.
pub(crate) async fn snapshot(
    on: &OnBlob<'_>,
    metadata: Pairs,
    conditions: &Conditions,
) -> Result<Response> {
    let metadata = (!metadata.is_empty()).then_some(metadata);
    let key = on.call.own.key.as_ref().map(|key| key.sha256);
    let protection = on.front.protection(&on.call.target.account).await?;
    let made = on.front.blobs.snapshot(&on.address, metadata, conditions, key, protection).await;
    let (time, record) = made.map_err(refused)?;
    Ok(response::written(StatusCode::CREATED, &record).with("x-ms-snapshot", moment_text(time)))
}

pub(crate) async fn set_immutability(
    on: &OnBlob<'_>,
    which: Which,
    policy: Immutability,
    conditions: &Conditions,
) -> Result<Response> {
    let set = on.front.blobs.set_immutability(&on.address, which, Some(policy), conditions).await;
    set.map_err(refused)?;
    Ok(Response::new(StatusCode::OK)
        .with("x-ms-immutability-policy-until-date", date(policy.until_ms))
        .with(
            "x-ms-immutability-policy-mode",
            response::immutability_mode(policy.is_locked).to_ascii_lowercase(),
        ))
}

pub(crate) async fn delete_immutability(on: &OnBlob<'_>, which: Which) -> Result<Response> {
    let none = Conditions::default();
    let deleted = on.front.blobs.set_immutability(&on.address, which, None, &none).await;
    deleted.map_err(refused)?;
    Ok(Response::new(StatusCode::OK))
}

pub(crate) async fn set_hold(on: &OnBlob<'_>, which: Which, hold: bool) -> Result<Response> {
    on.front.blobs.set_legal_hold(&on.address, which, hold).await.map_err(refused)?;
    Ok(Response::new(StatusCode::OK).with("x-ms-legal-hold", hold.to_string()))
}

pub(crate) async fn delete(on: &OnBlob<'_>, delete: Delete) -> Result<Response> {
    let properties = on.front.properties(&on.call.target.account).await?;
    if delete.permanent && !properties.retention.allow_permanent {
        return Err(bad_parameter("deletetype", "permanent"));
    }
    let protection = properties.protection();
    let options = DeleteOptions { snapshots: delete.snapshots, permanent: delete.permanent };
    let conditions = &delete.conditions;
    let deleted =
        on.front.blobs.delete(&on.address, delete.which, options, conditions, protection).await;
    let outcome = deleted.map_err(refused)?;
    let permanent = if outcome.permanent { "true" } else { "false" };
    Ok(Response::new(StatusCode::ACCEPTED).with("x-ms-delete-type-permanent", permanent))
}

pub(crate) async fn undelete(on: &OnBlob<'_>) -> Result<Response> {
    on.front.blobs.undelete(&on.address).await.map_err(refused)?;
    Ok(Response::new(StatusCode::OK))
}
