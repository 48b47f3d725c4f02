//! What keeps a blob as it is: policies until a moment, and holds until they are taken off.

use lazuli_http::{Response, StatusCode};
use lazuli_shapes::blob::{Conditions, Immutability, Which};

use crate::error::{Result, refused};
use crate::etag::date;
use crate::request::BlobPath;
use crate::{Call, Front, response};

pub(crate) async fn set(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    which: Which,
    policy: Immutability,
    conditions: &Conditions,
) -> Result<Response> {
    let address = call.blob(path);
    let set = front.blobs.set_immutability(&address, which, Some(policy), conditions).await;
    set.map_err(refused)?;
    Ok(Response::new(StatusCode::OK)
        .with("x-ms-immutability-policy-until-date", date(policy.until_ms))
        .with(
            "x-ms-immutability-policy-mode",
            response::immutability_mode(policy.is_locked).to_ascii_lowercase(),
        ))
}

pub(crate) async fn delete(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    which: Which,
) -> Result<Response> {
    let none = Conditions::default();
    let deleted = front.blobs.set_immutability(&call.blob(path), which, None, &none).await;
    deleted.map_err(refused)?;
    Ok(Response::new(StatusCode::OK))
}

pub(crate) async fn set_hold(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    which: Which,
    hold: bool,
) -> Result<Response> {
    front.blobs.set_legal_hold(&call.blob(path), which, hold).await.map_err(refused)?;
    Ok(Response::new(StatusCode::OK).with("x-ms-legal-hold", hold.to_string()))
}
