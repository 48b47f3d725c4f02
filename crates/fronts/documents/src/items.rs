//! Items: create, upsert, read, replace, patch and delete, and what their responses say.

use lazuli_engine::Error;
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::document::{
    Body, DocumentReason, Etag, Operation, Outcome, PartitionKey, Work, etag, etag_version,
};
use lazuli_value::Value;

use crate::address::ContainerName;
use crate::charge::{self, Units};
use crate::containers::Opened;
use crate::error::{Fault, Result, Status, substatus};
use crate::patch::Patch;
use crate::session::{self, Seen};
use crate::{Call, Front, response, scripts};

/// The errors of operations on items, in the service's words.
pub(crate) fn from_core(error: Error) -> Fault {
    match error.reason::<DocumentReason>() {
        Some(DocumentReason::KeyMismatch) => Fault::bad_request(
            "Partition key provided either doesn't correspond to definition in the collection or \
             doesn't match partition key field values specified in the document.",
        )
        .substatus(substatus::KEY_MISMATCH),
        Some(DocumentReason::NotUnique) => {
            Fault::new(Status::Conflict, "Unique index constraint violation.")
        }
        Some(DocumentReason::ShardletFull) => {
            let message = format!("Partition key reached maximum size: {}.", error.message());
            Fault::forbidden(message).substatus(substatus::KEY_FULL)
        }
        Some(DocumentReason::PatchCondition) => {
            Fault::precondition().substatus(substatus::PATCH_CONDITION)
        }
        _ => Fault::from(error),
    }
    .charged(charge::MISS)
}

/// What the headers ask of the etag of an item that is written.
fn written_etag(call: &Call) -> Result<Etag> {
    if let Some(text) = call.headers.if_match.as_deref().filter(|text| *text != "*") {
        // What is no etag of ours is that of no item.
        return Ok(Etag::Is(etag_version(text).ok_or_else(Fault::precondition)?));
    }
    match call.headers.if_none_match.as_deref() {
        Some("*") => Ok(Etag::Absent),
        Some(text) => Ok(etag_version(text).map_or(Etag::Any, Etag::IsNot)),
        None => Ok(Etag::Any),
    }
}

fn read_etag(call: &Call) -> Etag {
    match call.headers.if_none_match.as_deref() {
        Some(text) => etag_version(text).map_or(Etag::Any, Etag::IsNot),
        None => Etag::Any,
    }
}

pub(crate) async fn create(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    body: &[u8],
    upserts: bool,
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let key = front.key(call, &opened)?;
    let body = Body::from_json(body).map_err(from_core)?;
    let operation = match upserts {
        true => Operation::upsert(body),
        false => Operation::create(body),
    };
    write(front, call, &opened, &key, operation.with(written_etag(call)?)).await
}

pub(crate) async fn replace(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    id: &str,
    body: &[u8],
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let key = front.key(call, &opened)?;
    let body = Body::from_json(body).map_err(from_core)?;
    let operation = Operation::replace(id, body).with(written_etag(call)?);
    write(front, call, &opened, &key, operation).await
}

pub(crate) async fn patch(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    id: &str,
    body: &[u8],
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let key = front.key(call, &opened)?;
    let operation = patching(&opened, id, parse(body)?)?.with(written_etag(call)?);
    write(front, call, &opened, &key, operation).await
}

pub(crate) fn parse(body: &[u8]) -> Result<Value> {
    Value::from_json(body)
        .map_err(|error| Fault::bad_request(format!("The body is not valid JSON: {error}.")))
}

/// A patch as an operation of the shape.
pub(crate) fn patching(opened: &Opened, id: &str, body: Value) -> Result<Operation> {
    Patch::parse(body)?.into_operation(id, opened.collection.definition())
}

pub(crate) async fn delete(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    id: &str,
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let key = front.key(call, &opened)?;
    let operation = Operation::delete(id).with(written_etag(call)?);
    write(front, call, &opened, &key, operation).await
}

async fn write(
    front: &Front,
    call: &Call,
    opened: &Opened,
    key: &PartitionKey,
    operation: Operation,
) -> Result<Response> {
    let operation = operation.indexed(call.headers.indexing);
    let budget = front.admit_key(call, opened, key).await?;
    let has_triggers =
        !(call.headers.pre_triggers.is_empty() && call.headers.post_triggers.is_empty());
    let done = match has_triggers {
        true => scripts::with_triggers(front, call, opened, key, &operation).await,
        false => {
            let done = front.documents.run_one(&opened.collection, key, operation).await;
            done.map_err(from_core)
        }
    };
    let done = done.inspect_err(|fault| budget.take(fault.charge))?;
    let units = written(&done);
    budget.take(units);
    let status = match (&done.document, done.was_there) {
        (None, _) => StatusCode::NO_CONTENT,
        (Some(_), true) => StatusCode::OK,
        (Some(_), false) => StatusCode::CREATED,
    };
    answer(call, opened, status, &done, units)
}

pub(crate) async fn read(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    id: &str,
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let key = front.key(call, &opened)?;
    let budget = front.admit_key(call, &opened, &key).await?;
    let done = front.documents.read(&opened.collection, &key, id, read_etag(call)).await;
    match done {
        Ok(done) => {
            let units = charge::read(done.work.bytes_read as usize);
            budget.take(units);
            front.check_session(call, done.range.0, done.lsn.0).await?;
            answer(call, &opened, StatusCode::OK, &done, units)
        }
        Err(error) if error.is(DocumentReason::NotModified) => {
            budget.take(charge::MISS);
            let known = call.headers.if_none_match.clone().unwrap_or_default();
            let response = response::empty(StatusCode::NOT_MODIFIED).with("etag", known);
            Ok(response::charged(response, charge::MISS))
        }
        Err(error) => {
            budget.take(charge::MISS);
            Err(from_core(error))
        }
    }
}

/// What a write has cost.
pub(crate) fn written(done: &Outcome) -> Units {
    let Work { bytes_read, bytes_written, entries_written, .. } = done.work;
    let (before, after, terms) =
        (bytes_read as usize, bytes_written as usize, entries_written as usize);
    match (&done.document, done.was_there) {
        (None, _) => charge::delete(after, terms),
        (Some(_), false) => charge::create(after, terms),
        (Some(_), true) if after == 0 => charge::read(before),
        (Some(_), true) => charge::replace(before, after, terms),
    }
}

fn answer(
    call: &Call,
    opened: &Opened,
    status: StatusCode,
    done: &Outcome,
    units: Units,
) -> Result<Response> {
    let response = match &done.document {
        Some(document) if call.headers.is_minimal && !call.reads() => {
            response::empty(status).with("etag", etag(document.version))
        }
        Some(document) => {
            let body = document.json().map_err(Fault::from)?;
            response::text(status, body)
                .with("etag", etag(document.version))
                .with("x-ms-item-lsn", document.version.0.to_string())
        }
        None => response::empty(status),
    };
    let seen = Seen { range: done.range.0, lsn: done.lsn.0 };
    Ok(response::charged(of_container(opened, response, Some(seen)), units))
}

/// What every response about items of a container says of it.
pub(crate) fn of_container(opened: &Opened, response: Response, seen: Option<Seen>) -> Response {
    let response = response
        .with("x-ms-alt-content-path", opened.path())
        .with("x-ms-content-path", opened.resource.rid.to_string());
    match seen {
        Some(seen) => response
            .with("x-ms-session-token", session::text(seen))
            .with("lsn", seen.lsn.to_string())
            .with("x-ms-cosmos-llsn", seen.lsn.to_string())
            .with("x-ms-documentdb-partitionkeyrangeid", seen.range.to_string()),
        None => response,
    }
}

/// Deletes all items of a partition key. The service does so in the background; here it is done when the response comes.
pub(crate) async fn delete_partition(
    front: &Front,
    call: &Call,
    container: &ContainerName,
) -> Result<Response> {
    /// How many items are deleted in one step.
    const STEP_ITEMS: usize = 1_000;
    let opened = front.open(call, container).await?;
    let key = front.key(call, &opened)?;
    while front.documents.delete_some(&opened.collection, &key, STEP_ITEMS).await? {}
    let response = response::empty(StatusCode::ACCEPTED);
    Ok(response::charged(of_container(&opened, response, None), charge::METADATA_WRITE))
}
