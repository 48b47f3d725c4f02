//! Batches: several operations in one request, all of them or none on one partition key, or each by itself (bulk).

use lazuli_http::{Response, StatusCode};
use lazuli_shapes::document::{
    Body, DocumentReason, Etag, Operation, Outcome, PartitionKey, etag, etag_version,
};
use lazuli_value::{Object, Value};

use crate::address::ContainerName;
use crate::charge::{self, Units};
use crate::containers::{Opened, whole_key};
use crate::error::{Fault, Result, Status};
use crate::headers::parse_key;
use crate::items::{from_core, of_container, parse, patching, written};
use crate::limits::BATCH_OPERATIONS_MAX;
use crate::session::Seen;
use crate::{Call, Front, response};

/// One operation as clients write it.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    act: Act,
    id: Option<String>,
    body: Option<Value>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    /// The JSON array of its partition key, in bulk requests.
    key: Option<String>,
    is_minimal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Create,
    Upsert,
    Read,
    Replace,
    Delete,
    Patch,
}

/// The body of a batch.
pub(crate) fn entries(body: Value) -> Result<Vec<Entry>> {
    let Value::Array(operations) = body else {
        return Err(Fault::bad_request("The body of a batch must be an array of operations."));
    };
    if operations.is_empty() || operations.len() > BATCH_OPERATIONS_MAX {
        return Err(Fault::bad_request(format!(
            "Batch request has {} operations; it must have 1 to {BATCH_OPERATIONS_MAX}.",
            operations.len()
        )));
    }
    operations.into_iter().map(entry).collect()
}

fn entry(value: Value) -> Result<Entry> {
    let bad =
        |what: &str| Fault::bad_request(format!("An operation of the batch is invalid: {what}."));
    let Value::Object(mut operation) = value else { return Err(bad("it must be an object")) };
    let mut text = |name: &str| match operation.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Array(values)) if name == "partitionKey" => {
            Ok(Some(Value::Array(values).to_json()))
        }
        Some(_) => Err(bad(&format!("'{name}' must be a text"))),
    };
    let act = match text("operationType")?.as_deref() {
        Some("Create") => Act::Create,
        Some("Upsert") => Act::Upsert,
        Some("Read") => Act::Read,
        Some("Replace") => Act::Replace,
        Some("Delete") => Act::Delete,
        Some("Patch") => Act::Patch,
        _ => return Err(bad("its operationType is unknown")),
    };
    let (id, if_match, if_none_match, key) =
        (text("id")?, text("ifMatch")?, text("ifNoneMatch")?, text("partitionKey")?);
    let is_minimal = operation.remove("minimalReturnPreference") == Some(Value::Bool(true));
    let body = operation.remove("resourceBody");
    Ok(Entry { act, id, body, if_match, if_none_match, key, is_minimal })
}

impl Entry {
    fn etag(&self) -> Result<Etag> {
        match (self.if_match.as_deref().filter(|text| *text != "*"), self.if_none_match.as_deref())
        {
            (Some(text), _) => Ok(Etag::Is(etag_version(text).ok_or_else(Fault::precondition)?)),
            (None, Some("*")) => Ok(Etag::Absent),
            (None, Some(text)) => Ok(etag_version(text).map_or(Etag::Any, Etag::IsNot)),
            (None, None) => Ok(Etag::Any),
        }
    }

    /// As an operation of the shape.
    fn operation(&self, opened: &Opened) -> Result<Operation> {
        let body = || {
            let body =
                self.body.as_ref().ok_or_else(|| Fault::bad_input("a resourceBody is missing"))?;
            Body::from_value(body).map_err(from_core)
        };
        let id = || self.id.as_deref().ok_or_else(|| Fault::bad_input("an id is missing"));
        let operation = match self.act {
            Act::Create => Operation::create(body()?),
            Act::Upsert => Operation::upsert(body()?),
            Act::Read => Operation::read(id()?),
            Act::Replace => Operation::replace(id()?, body()?),
            Act::Delete => Operation::delete(id()?),
            Act::Patch => {
                let body = self.body.clone().unwrap_or(Value::Null);
                patching(opened, id()?, body)?
            }
        };
        Ok(operation.with(self.etag()?))
    }
}

/// The result of one operation.
struct Done {
    status: u16,
    substatus: Option<u32>,
    units: Units,
    retry_after_ms: Option<u64>,
    etag: Option<String>,
    body: Option<String>,
}

impl Done {
    fn of(entry: &Entry, outcome: &Outcome) -> Result<Self> {
        let status = match (entry.act, outcome.was_there) {
            (Act::Delete, _) => 204,
            (Act::Create | Act::Upsert, false) => 201,
            _ => 200,
        };
        let units = match entry.act {
            Act::Read => charge::read(outcome.work.bytes_read as usize),
            _ => written(outcome),
        };
        let document = outcome.document.as_ref();
        let shown = document.filter(|_| !entry.is_minimal || entry.act == Act::Read);
        let body = shown.map(|document| document.json()).transpose().map_err(from_core)?;
        let etag = document.map(|document| etag(document.version));
        Ok(Self { status, substatus: None, units, retry_after_ms: None, etag, body })
    }

    fn refused(fault: &Fault) -> Self {
        Self {
            status: fault.status.number(),
            substatus: fault.substatus,
            units: fault.charge,
            retry_after_ms: fault.retry_after.map(|wait| wait.as_millis() as u64),
            etag: None,
            body: None,
        }
    }

    fn write(&self, out: &mut String) {
        let mut head = Object::new();
        head.insert("statusCode", i64::from(self.status).into());
        if let Some(substatus) = self.substatus {
            head.insert("subStatusCode", i64::from(substatus).into());
        }
        head.insert(
            "requestCharge",
            Value::number(charge::rounded(self.units)).unwrap_or(Value::Null),
        );
        if let Some(wait) = self.retry_after_ms {
            head.insert("retryAfterMilliseconds", (wait as i64).into());
        }
        if let Some(etag) = &self.etag {
            head.insert("eTag", etag.as_str().into());
        }
        let mut text = Value::Object(head).to_json();
        if let Some(body) = &self.body {
            text.pop();
            text += ",\"resourceBody\":";
            text += body;
            text.push('}');
        }
        out.push_str(&text);
    }
}

pub(crate) async fn run(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    body: &[u8],
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let entries = entries(parse(body)?)?;
    // A range that is gone is told before anything is done.
    if let Some(range) = &call.headers.range {
        front.range(&opened, range).await?;
    }
    let (done, seen) = match call.headers.batch.is_atomic {
        true => atomic(front, call, &opened, &entries).await?,
        false => each(front, call, &opened, &entries).await?,
    };
    let has_failed = done.iter().any(|one| one.status >= 400);
    let status = if has_failed { StatusCode::MULTI_STATUS } else { StatusCode::OK };
    let mut out = String::from("[");
    for (n, one) in done.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        one.write(&mut out);
    }
    out.push(']');
    let units = done.iter().map(|one| one.units).sum();
    let response = response::text(status, out);
    Ok(response::charged(of_container(&opened, response, seen), units))
}

type Results = (Vec<Done>, Option<Seen>);

/// All or nothing: if one fails it says why, and all others that they depend on it.
async fn atomic(front: &Front, call: &Call, opened: &Opened, entries: &[Entry]) -> Result<Results> {
    let key = front.key(call, opened)?;
    let mut operations = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        match entry.operation(opened) {
            Ok(operation) => operations.push(operation),
            Err(fault) => return Ok((failed(entries.len(), at, &fault), None)),
        }
    }
    let budget = front.admit_key(call, opened, &key).await?;
    match front.documents.run(&opened.collection, &key, operations).await {
        Ok(outcomes) => {
            let done =
                entries.iter().zip(&outcomes).map(|(entry, outcome)| Done::of(entry, outcome));
            let done = done.collect::<Result<Vec<_>>>()?;
            budget.take(done.iter().map(|one| one.units).sum());
            let last = outcomes.last();
            let seen = last.map(|last| Seen { range: last.range.0, lsn: last.lsn.0 });
            Ok((done, seen))
        }
        Err(error) => {
            let Some(at) = error.position() else { return Err(from_core(error)) };
            let mut fault = from_core(error.clone());
            if error.is(DocumentReason::NotModified) {
                fault = Fault::precondition();
            }
            let done = failed(entries.len(), at, &fault);
            budget.take(done.iter().map(|one| one.units).sum());
            Ok((done, None))
        }
    }
}

fn failed(count: usize, at: usize, fault: &Fault) -> Vec<Done> {
    let dependent = Fault::new(Status::FailedDependency, "").charged(0.0);
    let one = |n| if n == at { Done::refused(fault) } else { Done::refused(&dependent) };
    (0..count).map(one).collect()
}

/// Each by itself. Unless the client wants to go on, those behind a failure are not tried.
async fn each(front: &Front, call: &Call, opened: &Opened, entries: &[Entry]) -> Result<Results> {
    let (mut done, mut seen, mut stopped) = (Vec::with_capacity(entries.len()), None, false);
    for entry in entries {
        if stopped {
            done.push(Done::refused(&Fault::new(Status::FailedDependency, "")));
            continue;
        }
        let result = one(front, call, opened, entry).await;
        match result {
            Ok((one, at)) => {
                done.push(one);
                seen = Some(at);
            }
            Err(fault) => {
                done.push(Done::refused(&fault));
                stopped = !call.headers.batch.continues;
            }
        }
    }
    Ok((done, seen))
}

async fn one(front: &Front, call: &Call, opened: &Opened, entry: &Entry) -> Result<(Done, Seen)> {
    let key = match &entry.key {
        Some(text) => {
            let values = parse_key(text).ok_or_else(|| Fault::bad_input("the partitionKey"))?;
            whole_key(&values, opened)?
        }
        None if call.headers.partition_key.is_some() => front.key(call, opened)?,
        None => key_of_body(opened, entry)?,
    };
    let operation = entry.operation(opened)?;
    let budget = front.admit_key(call, opened, &key).await?;
    let outcome = front.documents.run_one(&opened.collection, &key, operation).await;
    let outcome = outcome.map_err(from_core).inspect_err(|fault| budget.take(fault.charge))?;
    let done = Done::of(entry, &outcome)?;
    budget.take(done.units);
    Ok((done, Seen { range: outcome.range.0, lsn: outcome.lsn.0 }))
}

/// The key that the body of an operation says, where the client says none.
fn key_of_body(opened: &Opened, entry: &Entry) -> Result<PartitionKey> {
    let body = entry.body.as_ref().ok_or_else(|| {
        Fault::bad_request("PartitionKey value must be supplied for this operation.")
    })?;
    Ok(PartitionKey::of(&opened.collection.definition().key_paths, body.into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Entry>> {
        entries(Value::from_json(text.as_bytes()).unwrap())
    }

    #[test]
    fn operations_are_read_as_clients_write_them() {
        let text = r#"[{"operationType":"Create","resourceBody":{"id":"1"},"partitionKey":"[\"a\"]"},
            {"operationType":"Delete","id":"2","ifMatch":"\"x\""}]"#;
        let entries = read(text).unwrap();
        assert_eq!((entries[0].act, entries[0].key.as_deref()), (Act::Create, Some("[\"a\"]")));
        assert_eq!((entries[1].act, entries[1].id.as_deref()), (Act::Delete, Some("2")));
        assert!(entries[1].etag().is_err());
        for bad in ["{}", "[]", "[1]", "[{}]", r#"[{"operationType":"Drop"}]"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let many = vec![r#"{"operationType":"Read","id":"1"}"#; BATCH_OPERATIONS_MAX + 1];
        assert!(read(&format!("[{}]", many.join(","))).is_err());
    }
}
