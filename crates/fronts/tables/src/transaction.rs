//! Entity group transactions: up to a hundred changes of one partition key, all made or none.
//!
//! The body is `multipart/mixed` with one part: a change set, which is `multipart/mixed` again with one request in each
//! part, or a single query. The answer has the same form and is 202 even where a change is refused; the refusal inside
//! names the change by its place. Only what no change is to blame for is refused as a whole.

use std::collections::BTreeSet;

use lazuli_azure::odata::ErrorFormat;
use lazuli_http::multipart::{self, MultipartError, Part};
use lazuli_http::uri::Query;
use lazuli_http::{HeaderValue, Response, StatusCode};

use crate::address::Resource;
use crate::entities::{self, Change};
use crate::error::{Code, Common, Fault, Result};
use crate::limits::Limits;
use crate::request::{Head, Operation, Wishes};
use crate::tables::container;
use crate::{Call, Front, Own, access, query};

/// What an answer that brings nothing along takes, by and large.
const ANSWER_BYTES: usize = 512;
/// By which answers are known to the clients that number their requests.
const CONTENT_ID: &str = "content-id";

pub(crate) async fn run(
    front: &Front,
    call: &Call,
    boundary: &str,
    body: &[u8],
) -> Result<Response> {
    let parts = multipart::parts(body, boundary, 1)?;
    let [part] = parts.as_slice() else { return Err(Fault::new(Common::InvalidInput)) };
    match multipart::boundary(part.header("content-type").unwrap_or_default()) {
        Ok(boundary) => {
            let made = change_set(front, call, boundary, part.body).await;
            let most = front.limits.transaction_operations_max;
            let refused = |fault: &Fault| {
                let parts = multipart::parts(part.body, boundary, most).unwrap_or_default();
                refusal(call, fault, fault.position().and_then(|position| parts.get(position)))
            };
            let answers = inside(made, refused)?;
            Ok(answer(call, answers, true).await)
        }
        Err(_) => {
            let read = read(front, call, part).await.map(|response| vec![response]);
            let answers = inside(read, |fault| refusal(call, fault, Some(part)))?;
            Ok(answer(call, answers, false).await)
        }
    }
}

/// Makes all changes of a change set, and answers each.
async fn change_set(
    front: &Front,
    call: &Call,
    boundary: &str,
    body: &[u8],
) -> Result<Vec<Response>> {
    let changes = changes(&front.limits, call, boundary, body)?;
    let Some((_, first)) = changes.first() else { return Err(Fault::new(Common::InvalidInput)) };
    let table = container(&call.target.account, &first.key.table);
    let partition_key = first.key.partition_key.clone();
    let steps = changes.iter().map(|(_, change)| change.step()).collect();
    let version = front
        .records
        .write_all(&table, &partition_key, steps)
        .await
        .map_err(|error| entities::refused(&error).at(error.position().unwrap_or(0)))?;
    let answers = changes.into_iter().map(|(call, change)| {
        let response = change.answer(&call, version)?;
        Ok(numbered(response, call.own.content_id))
    });
    answers.collect()
}

/// What the parts of a change set ask for: changes of one partition key of one table, each of another row.
pub(crate) fn changes(
    limits: &Limits,
    call: &Call,
    boundary: &str,
    body: &[u8],
) -> Result<Vec<(Call, Change)>> {
    let most = limits.transaction_operations_max;
    let parts = match multipart::parts(body, boundary, most) {
        Err(MultipartError::TooManyParts) => return Err(too_many(most)),
        parts => parts?,
    };
    let mut changes = Vec::with_capacity(parts.len());
    let mut rows = BTreeSet::new();
    for (position, part) in parts.iter().enumerate() {
        let (call, change) = change(limits, call, part).map_err(|fault| fault.at(position))?;
        let first = changes.first().map_or(&change.key, |(_, first): &(Call, Change)| &first.key);
        let same_table = first.table.eq_ignore_ascii_case(&change.key.table);
        if !same_table || first.partition_key != change.key.partition_key {
            return Err(Fault::new(Code::CommandsInBatchActOnDifferentPartitions).at(position));
        }
        if !rows.insert(change.key.row_key.clone()) {
            return Err(Fault::new(Code::InvalidDuplicateRow).at(position));
        }
        changes.push((call, change));
    }
    Ok(changes)
}

fn too_many(most: usize) -> Fault {
    let sentence =
        format!("The batch request operation exceeds the maximum {most} changes per change set.");
    Fault::new(Common::InvalidInput).say(sentence).at(most)
}

/// The change that one part of a change set asks for, and how its answer should look.
fn change(limits: &Limits, call: &Call, part: &Part<'_>) -> Result<(Call, Change)> {
    let (call, operation, body) = operation(limits, call, part)?;
    match operation {
        Operation::WriteEntity(write) => {
            let change = Change::of(write, body, limits)?;
            access::check_key(&call.access, &change.key)?;
            Ok((call, change))
        }
        _ => Err(Fault::new(Common::InvalidInput)
            .say("A change set holds nothing but changes of entities.")),
    }
}

/// A single query outside of a change set.
async fn read(front: &Front, call: &Call, part: &Part<'_>) -> Result<Response> {
    let (call, operation, _) = operation(&front.limits, call, part)?;
    let response = match operation {
        Operation::GetEntity { key, select } => {
            entities::get(front, &call, &key, select.as_deref()).await
        }
        Operation::QueryEntities { table, query } => {
            query::query(front, &call, &table, query).await
        }
        _ => Err(Fault::new(Common::InvalidInput)
            .say("A batch holds one change set, or a single query of entities.")),
    };
    Ok(numbered(response?, call.own.content_id))
}

/// What one part asks for: read as if it had been sent by itself, to the same account.
fn operation<'a>(
    limits: &Limits,
    call: &Call,
    part: &Part<'a>,
) -> Result<(Call, Operation, &'a [u8])> {
    let request = multipart::request(part)?;
    let query = Query::parse(request.uri.query().unwrap_or_default())?;
    let resource = Resource::inside(&call.target, request.uri.path())?;
    let head = Head { method: &request.method, headers: &request.headers };
    let operation = Operation::parse(head, resource, &query, limits)?;
    access::check(&call.access, &operation)?;
    let wishes = Wishes::of(head, &query)?;
    let content_id = request.headers.get(CONTENT_ID).cloned();
    let call = Call { own: Own { wishes, content_id }, ..call.clone() };
    Ok((call, operation, request.body))
}

/// Refusals are answers too, but for those that are worth trying again: clients look for them outside.
fn inside(
    made: Result<Vec<Response>>,
    refused: impl FnOnce(&Fault) -> Response,
) -> Result<Vec<Response>> {
    match made {
        Err(fault) if !fault.is_ours() => Ok(vec![refused(&fault)]),
        made => made,
    }
}

/// The refusal of a part, in the form that the part asks for.
fn refusal(call: &Call, fault: &Fault, part: Option<&Part<'_>>) -> Response {
    let request = part.and_then(|part| multipart::request(part).ok());
    let (mut format, mut number) = (None, None);
    if let Some(request) = &request {
        let query = Query::parse(request.uri.query().unwrap_or_default()).unwrap_or_default();
        let head = Head { method: &request.method, headers: &request.headers };
        format = head.accept(&query).and_then(ErrorFormat::parse_odata);
        number = request.headers.get(CONTENT_ID).cloned();
    }
    let format = format.unwrap_or(ErrorFormat::ODataJson);
    numbered(fault.response(format, &call.request_id, &call.time()), number)
}

/// The answer to a request that may have had a number.
fn numbered(response: Response, number: Option<HeaderValue>) -> Response {
    match number.as_ref().and_then(|number| number.to_str().ok()) {
        Some(number) => response.with(CONTENT_ID, number),
        None => response,
    }
}

/// The answers of all parts as one.
async fn answer(call: &Call, answers: Vec<Response>, is_change_set: bool) -> Response {
    let outer = format!("batchresponse_{}", call.request_id);
    let inner = format!("changesetresponse_{}", call.request_id);
    let mut body = Vec::with_capacity(answers.len() * ANSWER_BYTES);
    if is_change_set {
        let kind = "Content-Type: multipart/mixed; boundary=";
        body.extend_from_slice(format!("--{outer}\r\n{kind}{inner}\r\n\r\n").as_bytes());
    }
    let boundary = if is_change_set { &inner } else { &outer };
    for response in answers {
        let response = response.with("x-content-type-options", "nosniff");
        multipart::write_response(&mut body, boundary, response).await;
    }
    if is_change_set {
        body.extend_from_slice(format!("--{inner}--\r\n").as_bytes());
    }
    body.extend_from_slice(format!("--{outer}--\r\n").as_bytes());
    Response::new(StatusCode::ACCEPTED)
        .with("content-type", format!("multipart/mixed; boundary={outer}"))
        .with("cache-control", "no-cache")
        .with_body(body)
}
