//! Operations on containers: create, look at, change, delete, restore, list.

use lazuli_azure::acl;
use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{Conditions, ContainerRecord, ListContainers, NewBlobContainer};

use crate::access::{PERMISSIONS, policies};
use crate::error::{Result, refused};
use crate::listing::Page;
use crate::options::Pairs;
use crate::request::{ContainerList, CreateContainer, SetAcl, bad_header};
use crate::{Call, Front, container_of, etag, list, response};

pub(crate) async fn create(
    front: &Front,
    call: &Call,
    container: &str,
    new: CreateContainer,
) -> Result<Response> {
    let new = NewBlobContainer {
        metadata: new.metadata,
        public_access: new.access,
        is_hashed: new.hashed,
        ..NewBlobContainer::default()
    };
    let created = front.blobs.create_container(&container_of(call, container), new).await;
    let record = created.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::CREATED), record.modified()))
}

/// The properties of a container, for a client that has its lease or names none.
async fn record(
    front: &Front,
    call: &Call,
    container: &str,
    conditions: &Conditions,
) -> Result<ContainerRecord> {
    let lease = conditions.lease_id.as_deref();
    front.blobs.container(&container_of(call, container), lease).await.map_err(refused)
}

pub(crate) async fn properties(
    front: &Front,
    call: &Call,
    container: &str,
    conditions: &Conditions,
) -> Result<Response> {
    let record = record(front, call, container, conditions).await?;
    Ok(response::container(Response::new(StatusCode::OK), &record, call.received_ms))
}

pub(crate) async fn metadata(
    front: &Front,
    call: &Call,
    container: &str,
    conditions: &Conditions,
) -> Result<Response> {
    let record = record(front, call, container, conditions).await?;
    let answer = response::changed(Response::new(StatusCode::OK), record.modified());
    Ok(response::metadata(answer, &record.metadata))
}

pub(crate) async fn set_metadata(
    front: &Front,
    call: &Call,
    container: &str,
    metadata: Pairs,
    conditions: &Conditions,
) -> Result<Response> {
    let address = container_of(call, container);
    let set = front.blobs.set_container_metadata(&address, metadata, conditions).await;
    let record = set.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::OK), record.modified()))
}

pub(crate) async fn acl(
    front: &Front,
    call: &Call,
    container: &str,
    conditions: &Conditions,
) -> Result<Response> {
    let record = record(front, call, container, conditions).await?;
    let answer = response::xml(StatusCode::OK, acl::write(&policies(&record.policies)?));
    let answer = response::changed(answer, record.modified());
    Ok(match response::public_access(record.public_access) {
        Some(access) => answer.with("x-ms-blob-public-access", access),
        None => answer,
    })
}

pub(crate) async fn set_acl(
    front: &Front,
    call: &Call,
    container: &str,
    set: SetAcl,
    body: &mut Body,
) -> Result<Response> {
    let body = front.document(body).await?;
    let policies = acl::read(&body, PERMISSIONS)?;
    let stored = match policies.is_empty() {
        true => String::new(),
        false => acl::write(&policies),
    };
    let address = container_of(call, container);
    let set = front
        .blobs
        .set_container_access(&address, set.access, stored.into(), &set.conditions)
        .await;
    let record = set.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::OK), record.modified()))
}

pub(crate) async fn delete(
    front: &Front,
    call: &Call,
    container: &str,
    conditions: &Conditions,
) -> Result<Response> {
    let protection = front.container_protection(&call.target.account).await?;
    let address = container_of(call, container);
    let deleted = front.blobs.delete_container(&address, conditions, protection).await;
    deleted.map_err(refused)?;
    Ok(Response::new(StatusCode::ACCEPTED))
}

/// Brings a deleted container back, under the name that it had.
pub(crate) async fn restore(
    front: &Front,
    call: &Call,
    container: &str,
    name: &str,
    version: Option<String>,
) -> Result<Response> {
    if name != container {
        return Err(bad_header("x-ms-deleted-container-name"));
    }
    let version = version.as_deref().and_then(etag::moment);
    let version = version.ok_or_else(|| bad_header("x-ms-deleted-container-version"))?;
    let restored = front.blobs.restore_container(&container_of(call, container), version).await;
    let record = restored.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::CREATED), record.modified()))
}

pub(crate) async fn list(front: &Front, call: &Call, list: ContainerList) -> Result<Response> {
    let ContainerList { prefix, deleted, most, .. } = list;
    let options = ListContainers { prefix, deleted, most };
    let (sent, after) = match &list.marker {
        Some((sent, place)) => (Some(sent.as_str()), Some(place)),
        None => (None, None),
    };
    let listed = front.blobs.list_containers(&call.target.account, &options, after).await;
    let listed = listed.map_err(refused)?;
    let mut page = Page::new(&call.target.base, None, call.received_ms);
    page.asked(&options.prefix, sent, list.asked);
    page.open("Containers");
    for item in &listed.entries {
        // System containers are listed only if the client asks for them.
        if list.system || !item.name.starts_with('$') {
            page.container(item, list.metadata);
        }
    }
    page.close("Containers");
    let next = listed.next.as_ref().map(|place| list::write_marker(place));
    Ok(response::list(page.end(next.as_deref())))
}
