//! Snapshots of blobs.

use lazuli_http::{Response, StatusCode};
use lazuli_shapes::blob::Conditions;

use crate::error::{Result, refused};
use crate::etag::moment_text;
use crate::options::Pairs;
use crate::request::BlobPath;
use crate::{Call, Front, response};

/// A snapshot has the metadata of its blob, unless the request has some.
pub(crate) async fn create(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    metadata: Pairs,
    conditions: &Conditions,
) -> Result<Response> {
    let metadata = (!metadata.is_empty()).then_some(metadata);
    let key = call.key.as_ref().map(|key| key.sha256);
    let protection = front.protection(&call.target.account).await?;
    let address = call.blob(path);
    let made = front.blobs.snapshot(&address, metadata, conditions, key, protection).await;
    let (time, record) = made.map_err(refused)?;
    Ok(response::written(StatusCode::CREATED, &record).with("x-ms-snapshot", moment_text(time)))
}
