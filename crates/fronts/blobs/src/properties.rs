//! What is said about blobs: headers, metadata, tags, length and sequence number of page blobs, expiry.

use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{BlobRecord, Conditions, PageProperties, Which};

use crate::error::{Result, refused};
use crate::options::{Checksums, Pairs};
use crate::request::{BlobPath, Expiry, SetProperties};
use crate::{Call, Front, response, tags};

pub(crate) async fn set(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    set: SetProperties,
) -> Result<Response> {
    let (address, conditions) = (call.blob(path), &set.conditions);
    let blobs = &front.blobs;
    let record = match (set.headers, set.length, set.sequence) {
        (Some(headers), None, None) => blobs.set_headers(&address, headers, conditions).await,
        // Only page blobs have the other two.
        (headers, length, sequence) => {
            let set = PageProperties { length, sequence, headers };
            blobs.set_page_properties(&address, set, conditions).await
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
    front: &Front,
    call: &Call,
    path: &BlobPath,
    metadata: Pairs,
    conditions: &Conditions,
) -> Result<Response> {
    let protection = front.protection(&call.target.account).await?;
    let key = call.key.as_ref().map(|key| key.sha256);
    let address = call.blob(path);
    let set = front.blobs.set_metadata(&address, metadata, conditions, protection, key).await;
    Ok(response::written(StatusCode::OK, &set.map_err(refused)?))
}

pub(crate) async fn tags(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    which: Which,
    conditions: &Conditions,
) -> Result<Response> {
    let record =
        front.blobs.properties(&call.blob(path), which, conditions, call.key.as_ref()).await;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags>");
    tags::write_set(&mut out, &record.map_err(refused)?.tags);
    out.push_str("</Tags>");
    Ok(response::xml(StatusCode::OK, out))
}

pub(crate) async fn set_tags(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    which: Which,
    checksums: Checksums,
    conditions: &Conditions,
    body: &mut Body,
) -> Result<Response> {
    let body = front.checked_document(body, checksums).await?;
    let tags = tags::from_xml(&body, &front.limits)?;
    let set = front.blobs.set_tags(&call.blob(path), which, tags, conditions).await;
    set.map_err(refused)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

pub(crate) async fn set_expiry(
    front: &Front,
    call: &Call,
    path: &BlobPath,
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
    let set = front.blobs.set_expiry(&call.blob(path), at, conditions).await;
    let record = set.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::OK), record.modified()))
}
