//! Deleting blobs, snapshots and versions, and bringing them back.

use lazuli_http::{Response, StatusCode};
use lazuli_shapes::blob::DeleteOptions;

use crate::error::{Result, refused};
use crate::request::{BlobPath, Delete, bad_parameter};
use crate::{Call, Front};

pub(crate) async fn run(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    delete: Delete,
) -> Result<Response> {
    let properties = front.properties(&call.target.account).await?;
    if delete.permanent && !properties.retention.allow_permanent {
        return Err(bad_parameter("deletetype", "permanent"));
    }
    let protection = properties.protection();
    let options = DeleteOptions { snapshots: delete.snapshots, permanent: delete.permanent };
    let (address, conditions) = (call.blob(path), &delete.conditions);
    let deleted = front.blobs.delete(&address, delete.which, options, conditions, protection).await;
    let outcome = deleted.map_err(refused)?;
    let permanent = if outcome.permanent { "true" } else { "false" };
    Ok(Response::new(StatusCode::ACCEPTED).with("x-ms-delete-type-permanent", permanent))
}

pub(crate) async fn undelete(front: &Front, call: &Call, path: &BlobPath) -> Result<Response> {
    front.blobs.undelete(&call.blob(path)).await.map_err(refused)?;
    Ok(Response::new(StatusCode::OK))
}
