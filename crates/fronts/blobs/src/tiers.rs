//! Tiers of blobs.

use lazuli_http::{Response, StatusCode};

use crate::error::{Result, refused};
use crate::request::{BlobPath, SetTier};
use crate::{Call, Front};

/// 202 says that it takes a while, which it does out of the archive.
pub(crate) async fn set(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    set: SetTier,
) -> Result<Response> {
    let (address, urgent) = (call.blob(path), set.high_priority);
    let done = front.blobs.set_tier(&address, set.which, set.tier, urgent, &set.conditions).await;
    let record = done.map_err(refused)?;
    let is_on_its_way = record.tier.is_some_and(|chosen| chosen.rehydration.is_some());
    Ok(Response::new(if is_on_its_way { StatusCode::ACCEPTED } else { StatusCode::OK }))
}
