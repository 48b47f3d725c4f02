//! Operations on queues: list, create, delete, what is kept about them, and who may use them.

use lazuli_azure::acl::{self, StoredPolicy};
use lazuli_azure::storage_error::CommonCode;
use lazuli_http::{HeaderName, HeaderValue, Response, StatusCode};
use lazuli_shapes::queue::{Created, Metadata};

use crate::error::{Fault, Result, from_core};
use crate::request::QueueQuery;
use crate::{Call, Front, response};

/// What policies of queues can permit: read, add, update, process.
const PERMISSIONS: &str = "raup";

pub(crate) async fn list(front: &Front, call: &Call, query: QueueQuery) -> Result<Response> {
    let most = query.most.unwrap_or(front.limits.page_queues_max);
    let page = front
        .queues
        .list(call.account(), &query.prefix, query.marker.as_deref(), most)
        .await
        .map_err(from_core)?;
    Ok(response::queues(call, &query, most, &page))
}

pub(crate) async fn create(
    front: &Front,
    call: &Call,
    queue: &str,
    metadata: Metadata,
) -> Result<Response> {
    let created = front.queues.create(call.account(), queue, metadata).await.map_err(from_core)?;
    Ok(Response::new(match created {
        Created::New => StatusCode::CREATED,
        Created::Before => StatusCode::NO_CONTENT,
    }))
}

pub(crate) async fn delete(front: &Front, call: &Call, queue: &str) -> Result<Response> {
    front.queues.delete(call.account(), queue).await.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

pub(crate) async fn get_metadata(front: &Front, call: &Call, queue: &str) -> Result<Response> {
    let properties = front.queues.properties(call.account(), queue).await.map_err(from_core)?;
    let mut response = Response::new(StatusCode::OK)
        .with("cache-control", "no-cache")
        .with("x-ms-approximate-messages-count", properties.count.to_string());
    for (name, value) in &properties.metadata {
        // Both came in a header, so both fit into one.
        let name = HeaderName::from_bytes(format!("x-ms-meta-{name}").as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            response.headers.append(name, value);
        }
    }
    Ok(response)
}

pub(crate) async fn set_metadata(
    front: &Front,
    call: &Call,
    queue: &str,
    metadata: Metadata,
) -> Result<Response> {
    front.queues.set_metadata(call.account(), queue, metadata).await.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

/// The stored access policies of a queue.
pub(crate) async fn policies(
    front: &Front,
    account: &str,
    queue: &str,
) -> Result<Vec<StoredPolicy>> {
    let stored = front.queues.acl(account, queue).await.map_err(from_core)?;
    acl::read(stored.unwrap_or_default().as_bytes(), PERMISSIONS)
        .map_err(|_| Fault::new(CommonCode::InternalError).because("stored policies can't be read"))
}

pub(crate) async fn get_acl(front: &Front, call: &Call, queue: &str) -> Result<Response> {
    let policies = policies(front, call.account(), queue).await?;
    Ok(response::document(StatusCode::OK, acl::write(&policies)))
}

pub(crate) async fn set_acl(
    front: &Front,
    call: &Call,
    queue: &str,
    body: &[u8],
) -> Result<Response> {
    let policies = acl::read(body, PERMISSIONS)?;
    let text = (!policies.is_empty()).then(|| acl::write(&policies));
    front.queues.set_acl(call.account(), queue, text).await.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}
