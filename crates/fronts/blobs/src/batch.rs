//! Batches: many deletions or changes of tiers in one request, each with an answer of its own.
//!
//! Unlike a transaction nothing holds them together: each is let in, made and answered by itself, in its turn.

use lazuli_azure::auth::access::Access;
use lazuli_azure::odata::ErrorFormat;
use lazuli_http::multipart::{self, MultipartError, Part};
use lazuli_http::uri::Query;
use lazuli_http::{Body, Request, RequestId, Response, StatusCode};

use crate::address::Resource;
use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::request::{BlobOperation, Head, Operation};
use crate::{Call, Front, OnBlob, access, properties};

pub(crate) async fn run(
    front: &Front,
    call: &Call,
    container: Option<&str>,
    boundary: &str,
    body: &mut Body,
) -> Result<Response> {
    if matches!(call.access, Access::Anonymous) {
        return Err(Fault::new(Common::NoAuthenticationInformation));
    }
    let body = std::mem::replace(body, Body::empty());
    let body = body.collect(front.limits.batch_bytes_max).await?;
    let parts = match multipart::parts(&body, boundary, front.limits.batch_requests_max) {
        Err(MultipartError::TooManyParts) => {
            return Err(Fault::new(Code::ExceedsMaxBatchRequestCount));
        }
        parts => parts?,
    };
    if parts.is_empty() {
        return Err(Fault::new(Common::InvalidInput).say("A batch has one request at least."));
    }
    let mark = format!("batchresponse_{}", front.new_id());
    let mut out = Vec::with_capacity(parts.len() * 256);
    for part in &parts {
        let answer = one(front, call, container, part).await;
        let answer = answer.unwrap_or_else(|fault| {
            if let Some(cause) = fault.cause() {
                tracing::error!(request_id = &*call.request_id, cause, "a request failed");
            }
            fault.response(ErrorFormat::Storage, &call.request_id, &call.time())
        });
        let answer =
            answer.with("x-ms-request-id", &*call.request_id).with("x-ms-version", &call.version);
        write(&mut out, &mark, part.header("content-id"), answer).await;
    }
    out.extend_from_slice(format!("--{mark}--\r\n").as_bytes());
    Ok(Response::new(StatusCode::ACCEPTED)
        .with("content-type", format!("multipart/mixed; boundary={mark}"))
        .with_body(out))
}

/// Lets one request of a batch in, and makes it.
async fn one(
    front: &Front,
    call: &Call,
    container: Option<&str>,
    part: &Part<'_>,
) -> Result<Response> {
    let inner = multipart::request(part)?;
    let request = Request {
        method: inner.method,
        path: inner.uri.path().to_owned(),
        query: inner.uri.query().unwrap_or_default().to_owned(),
        headers: inner.headers,
        body: Body::empty(),
        peer: call.peer,
        secure: call.secure,
        received_ms: call.received_ms,
        id: RequestId(0),
    };
    let query = Query::parse(&request.query)?;
    let head = Head::of(&request, &query);
    let account = &*call.target.account;
    let resource = Resource::parse(inside(call, &request.path), head)?;
    // One that is not signed by itself goes by the batch's own signature.
    let access = match access::is_signed(&request, &query) {
        true => lazuli_azure::front::access(front, &request, &query, account, &resource).await?,
        false => call.access.clone(),
    };
    let operation = Operation::parse(head, resource, &front.limits)?;
    access::check(front, &access, &operation, account, &call.version).await?;
    let mut call = call.clone();
    call.access = access;
    match operation {
        Operation::Blob(path, operation)
            if container.is_none_or(|container| *container == path.container) =>
        {
            let on = &OnBlob::new(front, &call, path);
            match *operation {
                BlobOperation::Delete(delete) => properties::delete(on, delete).await,
                BlobOperation::SetTier(set) => properties::set_tier(on, set).await,
                _ => Err(not_for_batches()),
            }
        }
        _ => Err(not_for_batches()),
    }
}

fn not_for_batches() -> Fault {
    Fault::new(Common::InvalidInput)
        .say("A batch holds deletions of blobs and changes of their tiers, in its container.")
}

/// The path behind the account. Some clients write it without the account, though the batch itself has it.
fn inside<'p>(call: &Call, path: &'p str) -> &'p str {
    match call.target.inside(path) {
        // A container and a blob must be left.
        Some(rest) if rest.trim_start_matches('/').contains('/') => rest,
        _ => path,
    }
}

/// Writes the answer of one request.
async fn write(out: &mut Vec<u8>, mark: &str, id: Option<&str>, answer: Response) {
    let mut part = Vec::new();
    multipart::write_response(&mut part, mark, answer).await;
    let Some(id) = id else { return out.extend_from_slice(&part) };
    // The id stands behind the part's first line.
    let line = part.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    out.extend_from_slice(&part[..line]);
    out.extend_from_slice(format!("Content-ID: {id}\r\n").as_bytes());
    out.extend_from_slice(&part[line..]);
}
