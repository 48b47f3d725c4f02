//! Operations on single entities: insert, get, update, merge, insert or replace, insert or merge, delete.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Kind, Lsn};
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::record::{Condition, Operation, Record};

use crate::address::EntityKey;
use crate::entity::{Entity, merge};
use crate::error::{Code, Fault, Result, Subject};
use crate::etag::{IfMatch, etag};
use crate::tables::container;
use crate::{Call, Front, response};

pub(crate) async fn insert(
    front: &Front,
    call: &Call,
    table: &str,
    body: &[u8],
) -> Result<Response> {
    let entity = Entity::parse(body, &front.limits)?;
    let (partition_key, row_key) = entity.keys()?;
    let payload = entity.encode(partition_key, row_key, &front.limits)?;
    let version = front
        .records
        .insert(&container(&call.address.account, table), partition_key, row_key, payload.clone())
        .await
        .map_err(|error| Fault::from_core(&error, Subject::Entities))?;
    let record = Record {
        partition_key: partition_key.to_owned(),
        row_key: row_key.to_owned(),
        version,
        payload,
    };
    let link = response::entity_link(table, partition_key, row_key);
    let answer = response::created(call, &link, || response::entity(call, table, &record, None))?;
    Ok(answer.with("etag", etag(version)))
}

pub(crate) async fn get(
    front: &Front,
    call: &Call,
    key: &EntityKey,
    select: Option<&[String]>,
) -> Result<Response> {
    let found = front
        .records
        .get(&container(&call.address.account, &key.table), &key.partition_key, &key.row_key)
        .await
        .map_err(|error| Fault::from_core(&error, Subject::Entities))?;
    let record = found.ok_or_else(|| Fault::new(Code::ResourceNotFound))?;
    let body = response::entity(call, &key.table, &record, select)?;
    Ok(response::json(StatusCode::OK, call, body).with("etag", etag(record.version)))
}

/// Update, and insert or replace: what was there is gone.
pub(crate) async fn replace(
    front: &Front,
    call: &Call,
    key: &EntityKey,
    if_match: Option<IfMatch>,
    body: &[u8],
) -> Result<Response> {
    let payload = payload(front, key, body)?;
    let version = write(front, call, key, if_match, Operation::Put(payload)).await?;
    Ok(Response::new(StatusCode::NO_CONTENT).with("etag", etag(version)))
}

/// Merge, and insert or merge: properties that are not sent stay as they are.
pub(crate) async fn merged(
    front: &Front,
    call: &Call,
    key: &EntityKey,
    if_match: Option<IfMatch>,
    body: &[u8],
) -> Result<Response> {
    let (sent, limits) = (payload(front, key, body)?, front.limits.clone());
    let EntityKey { partition_key, row_key, .. } = key.clone();
    let change = move |stored: Option<&Bytes>| match stored {
        None => Ok(sent.clone()),
        Some(stored) => {
            merge(stored, &sent, &partition_key, &row_key, &limits).map_err(Fault::into_core)
        }
    };
    let version = write(front, call, key, if_match, Operation::Update(Arc::new(change))).await?;
    Ok(Response::new(StatusCode::NO_CONTENT).with("etag", etag(version)))
}

pub(crate) async fn delete(
    front: &Front,
    call: &Call,
    key: &EntityKey,
    if_match: IfMatch,
) -> Result<Response> {
    write(front, call, key, Some(if_match), Operation::Delete).await?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

/// The stored form of the entity in the body. The keys are those of the address; in the body they must be the same or
/// not there.
fn payload(front: &Front, key: &EntityKey, body: &[u8]) -> Result<Bytes> {
    let entity = Entity::parse(body, &front.limits)?;
    let same = |sent: &Option<_>, addressed: &str| sent.as_deref().is_none_or(|k| k == addressed);
    if !same(&entity.partition_key, &key.partition_key) || !same(&entity.row_key, &key.row_key) {
        return Err(Fault::new(Code::InvalidInput)
            .say("The keys in the body differ from those in the address."));
    }
    entity.encode(&key.partition_key, &key.row_key, &front.limits)
}

async fn write(
    front: &Front,
    call: &Call,
    key: &EntityKey,
    if_match: Option<IfMatch>,
    operation: Operation,
) -> Result<Lsn> {
    let condition = match if_match {
        None => Condition::Any,
        Some(IfMatch::Any) => Condition::Present,
        Some(IfMatch::Version(version)) => Condition::Version(version),
    };
    let table = container(&call.address.account, &key.table);
    let written =
        front.records.write(&table, &key.partition_key, &key.row_key, condition, operation).await;
    match written {
        Ok(version) => Ok(version),
        Err(error) if error.kind() == Kind::NotFound => Err(missing(front, &table, key).await),
        Err(error) => Err(Fault::from_core(&error, Subject::Entity)),
    }
}

/// Which of the two is not there, table or entity: the service tells them apart.
async fn missing(front: &Front, table: &str, key: &EntityKey) -> Fault {
    match front.records.get(table, &key.partition_key, &key.row_key).await {
        Ok(_) => Fault::new(Code::ResourceNotFound),
        Err(error) => Fault::from_core(&error, Subject::Entities),
    }
}
