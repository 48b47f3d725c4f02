//! Operations on single entities: insert, get, update, merge, insert or replace, insert or merge, delete.
//!
//! Each of those that write becomes a [`Change`], which is made at once here and together with others in a transaction.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Error, Kind, Lsn};
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::record::{Condition, Record, RecordWrite};

use crate::address::EntityKey;
use crate::entity::{Entity, merge};
use crate::error::{Common, Fault, Result, Subject, from_core, into_core};
use crate::etag::{IfMatch, etag};
use crate::limits::Limits;
use crate::request::EntityWrite;
use crate::tables::container;
use crate::{Call, Front, access, response};

/// What is written where, on which condition, and what is answered afterwards.
pub(crate) struct Change {
    pub(crate) key: EntityKey,
    condition: Condition,
    operation: RecordWrite,
    answer: Answer,
}

enum Answer {
    /// The entity that was inserted, in its stored form.
    Created(Bytes),
    Written,
    Deleted,
}

pub(crate) async fn get(
    front: &Front,
    call: &Call,
    key: &EntityKey,
    select: Option<&[String]>,
) -> Result<Response> {
    // Queries find nothing outside of a granted range, and this is one by both keys.
    if !access::holds(&call.access, key) {
        return Err(Fault::new(Common::ResourceNotFound));
    }
    let found = front
        .records
        .get(&container(&call.target.account, &key.table), &key.partition_key, &key.row_key)
        .await
        .map_err(|error| from_core(&error, Subject::Entities))?;
    let record = found.ok_or_else(|| Fault::new(Common::ResourceNotFound))?;
    let body = response::entity(call, &key.table, &record, select)?;
    Ok(response::json(StatusCode::OK, call, body).with("etag", etag(record.version)))
}

pub(crate) async fn write(
    front: &Front,
    call: &Call,
    write: EntityWrite,
    body: &[u8],
) -> Result<Response> {
    let change = Change::of(write, body, &front.limits)?;
    access::check_key(&call.access, &change.key)?;
    let table = container(&call.target.account, &change.key.table);
    let steps = vec![change.step()];
    let written = front.records.write_all(&table, &change.key.partition_key, steps).await;
    change.answer(call, written.map_err(|error| refused(&error))?)
}

/// What became of changes that were not made. An error that knows its place is about an entity, any other about the table.
pub(crate) fn refused(error: &Error) -> Fault {
    match (error.kind(), error.position()) {
        (Kind::NotFound, None) => from_core(error, Subject::Entities),
        _ => from_core(error, Subject::Entity),
    }
}

impl Change {
    pub(crate) fn of(write: EntityWrite, body: &[u8], limits: &Limits) -> Result<Self> {
        match write {
            EntityWrite::Insert { table } => Self::insert(table, body, limits),
            EntityWrite::Replace { key, if_match } => Ok(Self {
                operation: RecordWrite::Put(payload(&key, body, limits)?),
                condition: condition(if_match),
                answer: Answer::Written,
                key,
            }),
            EntityWrite::Merge { key, if_match } => Ok(Self {
                operation: merged(&key, body, limits)?,
                condition: condition(if_match),
                answer: Answer::Written,
                key,
            }),
            EntityWrite::Delete { key, if_match } => Ok(Self {
                operation: RecordWrite::Delete,
                condition: condition(Some(if_match)),
                answer: Answer::Deleted,
                key,
            }),
        }
    }

    fn insert(table: String, body: &[u8], limits: &Limits) -> Result<Self> {
        let entity = Entity::parse(body, limits)?;
        let (partition_key, row_key) = entity.keys()?;
        let payload = entity.encode(partition_key, row_key, limits)?;
        let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
        Ok(Self {
            key: EntityKey { table, partition_key, row_key },
            condition: Condition::Absent,
            operation: RecordWrite::Put(payload.clone()),
            answer: Answer::Created(payload),
        })
    }

    /// As the shape takes it.
    pub(crate) fn step(&self) -> (String, Condition, RecordWrite) {
        (self.key.row_key.clone(), self.condition, self.operation.clone())
    }

    /// The answer after the change was made with this version.
    pub(crate) fn answer(self, call: &Call, version: Lsn) -> Result<Response> {
        let payload = match self.answer {
            Answer::Deleted => return Ok(Response::new(StatusCode::NO_CONTENT)),
            Answer::Written => {
                return Ok(Response::new(StatusCode::NO_CONTENT).with("etag", etag(version)));
            }
            Answer::Created(payload) => payload,
        };
        let EntityKey { table, partition_key, row_key } = self.key;
        let link = response::entity_link(&table, &partition_key, &row_key);
        let record = Record {
            partition_key: partition_key.into(),
            row_key,
            version,
            time: version,
            payload,
        };
        let entity = || response::entity(call, &table, &record, None);
        Ok(response::created(call, &link, entity)?.with("etag", etag(version)))
    }
}

fn condition(if_match: Option<IfMatch>) -> Condition {
    match if_match {
        None => Condition::Any,
        Some(IfMatch::Any) => Condition::Present,
        Some(IfMatch::Version(version)) => Condition::Version(version),
    }
}

/// Merge, and insert or merge: properties that are not sent stay as they are.
fn merged(key: &EntityKey, body: &[u8], limits: &Limits) -> Result<RecordWrite> {
    let (sent, limits) = (payload(key, body, limits)?, limits.clone());
    let EntityKey { partition_key, row_key, .. } = key.clone();
    let change = move |stored: Option<&Bytes>| match stored {
        None => Ok(sent.clone()),
        Some(stored) => merge(stored, &sent, &partition_key, &row_key, &limits).map_err(into_core),
    };
    Ok(RecordWrite::Update(Arc::new(change)))
}

/// The stored form of the entity in the body. The keys are those of the address; in the body they must be the same or
/// not there.
fn payload(key: &EntityKey, body: &[u8], limits: &Limits) -> Result<Bytes> {
    let entity = Entity::parse(body, limits)?;
    let same = |sent: &Option<_>, addressed: &str| sent.as_deref().is_none_or(|k| k == addressed);
    if !same(&entity.partition_key, &key.partition_key) || !same(&entity.row_key, &key.row_key) {
        return Err(Fault::new(Common::InvalidInput)
            .say("The keys in the body differ from those in the address."));
    }
    entity.encode(&key.partition_key, &key.row_key, limits)
}
