//! Responses: JSON bodies, what every one of them says, and refusals.

use lazuli_http::{HeaderValue, Request, Response, StatusCode};
use lazuli_value::{Object, Value};

use crate::charge::{Units, rounded};
use crate::error::Fault;

const JSON: &str = "application/json";
/// The version of the protocol that both the official SDKs speak.
const SERVICE_VERSION: &str = "version=2.14.0.0";
/// The longest activity id that is repeated: that of a GUID.
const ACTIVITY_CHARS: usize = 36;

pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    text(status, body.to_json())
}

/// A body that is JSON already.
pub(crate) fn text(status: StatusCode, body: impl Into<bytes::Bytes>) -> Response {
    Response::new(status).with("content-type", JSON).with_body(body)
}

pub(crate) fn empty(status: StatusCode) -> Response {
    Response::new(status)
}

/// Says what the operation has cost.
pub(crate) fn charged(response: Response, units: Units) -> Response {
    response.with("x-ms-request-charge", rounded(units).to_string())
}

/// The refusal of a request. Every one has a body with a message: clients fail on those without.
pub(crate) fn refusal(request: &Request, fault: &Fault) -> Response {
    let status =
        StatusCode::from_u16(fault.status.number()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = format!("{}\r\nActivityId: {}", fault.message, activity(request));
    let mut response =
        charged(json(status, &error_body(fault.status.code(), message)), fault.charge);
    if let Some(substatus) = fault.substatus {
        response = response.with("x-ms-substatus", substatus.to_string());
    }
    if let Some(wait) = fault.retry_after {
        // A client that comes back a moment too early would be refused once more.
        response = response.with("x-ms-retry-after-ms", wait.as_millis().max(1).to_string());
    }
    response
}

fn error_body(code: &str, message: String) -> Value {
    let mut body = Object::new();
    body.insert("code", code.into());
    body.insert("message", message.into());
    Value::Object(body)
}

/// The id by which the client, or else this server, calls the request.
fn activity(request: &Request) -> String {
    let given = request.header("x-ms-activity-id").filter(|id| id.len() == ACTIVITY_CHARS);
    given.map_or_else(|| request.id.to_string(), str::to_owned)
}

/// Adds what every response has.
pub(crate) fn finish(request: &Request, response: Response) -> Response {
    let mut response = response
        .with("x-ms-activity-id", activity(request))
        .with("x-ms-serviceversion", SERVICE_VERSION)
        .with("x-ms-gatewayversion", SERVICE_VERSION)
        .with("x-ms-schemaversion", "1.18")
        .with("cache-control", "no-store, no-cache")
        .with("server", "Lazuli")
        .with("x-content-type-options", "nosniff");
    if !response.headers.contains_key("x-ms-request-charge") {
        response.headers.insert("x-ms-request-charge", HeaderValue::from_static("0"));
    }
    response
}
