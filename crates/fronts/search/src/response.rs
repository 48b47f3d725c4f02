//! Responses: JSON bodies with their context, and refusals.

use lazuli_http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::error::Fault;

const JSON: &str = "application/json; odata.metadata=minimal; odata.streaming=true; charset=utf-8";

pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    Response::new(status).with("content-type", JSON).with_body(body.to_string())
}

/// A JSON object that is written already.
pub(crate) fn text(status: StatusCode, body: String) -> Response {
    Response::new(status).with("content-type", JSON).with_body(body)
}

pub(crate) fn empty(status: StatusCode) -> Response {
    Response::new(status)
}

/// A resource with its ETag.
pub(crate) fn resource(status: StatusCode, etag: &str, body: &Value) -> Response {
    json(status, body).with("etag", etag)
}

pub(crate) fn refusal(fault: &Fault) -> Response {
    let body = json!({ "error": { "code": fault.code, "message": fault.message } });
    let mut response = json(fault.status, &body);
    if let Some(wait) = fault.retry_after {
        response = response.with("retry-after", wait.as_secs().max(1).to_string());
    }
    response
}

/// Adds what every response has.
pub(crate) fn finish(request: &Request, response: Response) -> Response {
    // The id by which the client, or else this server, calls the request.
    let given =
        request.header("client-request-id").or_else(|| request.header("x-ms-client-request-id"));
    let given = given.filter(|id| id.len() <= 64).map(str::to_owned);
    let response = response
        .with("request-id", request.id.to_string())
        .with("odata-version", "4.0")
        .with("cache-control", "no-cache")
        .with("preference-applied", "odata.include-annotations=\"*\"");
    match given {
        Some(id) => response.with("client-request-id", id),
        None => response,
    }
}
