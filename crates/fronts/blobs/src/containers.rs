//! Operations on containers: create, look at, change, delete, restore, list.

use lazuli_azure::acl;
use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{Conditions, ContainerRecord, ListContainers, NewBlobContainer};

use crate::access::{PERMISSIONS, policies};
use crate::error::{Result, refused};
use crate::listing::Page;
use crate::options::Pairs;
use crate::request::{ContainerList, CreateContainer, SetAcl, bad_header};
use crate::{Call, Front, OnContainer, etag, list, response};

pub(crate) async fn create(on: &OnContainer<'_>, new: CreateContainer) -> Result<Response> {
    let new = NewBlobContainer {
        metadata: new.metadata,
        public_access: new.access,
        is_hashed: new.hashed,
        ..NewBlobContainer::default()
    };
    let created = on.front.blobs.create_container(&on.address, new).await;
    let record = created.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::CREATED), record.modified()))
}

/// The properties of a container, for a client that has its lease or names none.
async fn record(on: &OnContainer<'_>, conditions: &Conditions) -> Result<ContainerRecord> {
    let lease = conditions.lease_id.as_deref();
    on.front.blobs.container(&on.address, lease).await.map_err(refused)
}

pub(crate) async fn properties(on: &OnContainer<'_>, conditions: &Conditions) -> Result<Response> {
    let record = record(on, conditions).await?;
    Ok(response::container(Response::new(StatusCode::OK), &record, on.call.received_ms))
}

pub(crate) async fn metadata(on: &OnContainer<'_>, conditions: &Conditions) -> Result<Response> {
    let record = record(on, conditions).await?;
    let answer = response::changed(Response::new(StatusCode::OK), record.modified());
    Ok(response::metadata(answer, &record.metadata))
}

pub(crate) async fn set_metadata(
    on: &OnContainer<'_>,
    metadata: Pairs,
    conditions: &Conditions,
) -> Result<Response> {
    let set = on.front.blobs.set_container_metadata(&on.address, metadata, conditions).await;
    let record = set.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::OK), record.modified()))
}

pub(crate) async fn acl(on: &OnContainer<'_>, conditions: &Conditions) -> Result<Response> {
    let record = record(on, conditions).await?;
    let answer = response::xml(StatusCode::OK, acl::write(&policies(&record.policies)?));
    let answer = response::changed(answer, record.modified());
    Ok(match response::public_access(record.public_access) {
        Some(access) => answer.with("x-ms-blob-public-access", access),
        None => answer,
    })
}

pub(crate) async fn set_acl(
    on: &OnContainer<'_>,
    set: SetAcl,
    body: &mut Body,
) -> Result<Response> {
    let body = on.front.document(body).await?;
    let policies = acl::read(&body, PERMISSIONS)?;
    let stored = match policies.is_empty() {
        true => String::new(),
        false => acl::write(&policies),
    };
    let set = on
        .front
        .blobs
        .set_container_access(&on.address, set.access, stored.into(), &set.conditions)
        .await;
    let record = set.map_err(refused)?;
    Ok(response::changed(Response::new(StatusCode::OK), record.modified()))
}

pub(crate) async fn delete(on: &OnContainer<'_>, conditions: &Conditions) -> Result<Response> {
    let protection = on.front.container_protection(&on.call.target.account).await?;
    let deleted = on.front.blobs.delete_container(&on.address, conditions, protection).await;
    deleted.map_err(refused)?;
    Ok(Response::new(StatusCode::ACCEPTED))
}

/// Brings a deleted container back, under the name that it had.
pub(crate) async fn restore(
    on: &OnContainer<'_>,
    name: &str,
    version: Option<String>,
) -> Result<Response> {
    if name != on.address.container {
        return Err(bad_header("x-ms-deleted-container-name"));
    }
    let version = version.as_deref().and_then(etag::moment);
    let version = version.ok_or_else(|| bad_header("x-ms-deleted-container-version"))?;
    let restored = on.front.blobs.restore_container(&on.address, version).await;
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
