//! Reads the answers of fronts: their errors as refusals, their XML and JSON as values.

use lazuli_http::{Request, Response, StatusCode, xml};
use serde_json::Value;

use super::super::body;
use super::super::refusal::{Refusal, Result};
use crate::failure::Failure;
use crate::owner::{Ask, Owner};

/// The most bytes of an answer that is read as a whole: a page of entities is the longest.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most elements of a list in XML: of each blob forty, of a thousand.
const ELEMENTS_MAX: usize = 100_000;

/// Sends a request; an error of the service becomes a refusal with its code and sentence.
pub(super) async fn ask(owner: &Owner, ask: Ask) -> Result<Response> {
    let response = owner.ask(ask).await?;
    if response.status.is_success() {
        return Ok(response);
    }
    let status = response.status;
    let code = header(&response, "x-ms-error-code").unwrap_or_else(|| "refused".to_owned());
    let message = match response.body.collect(ANSWER_BYTES_MAX).await {
        Ok(body) => told(&body),
        Err(_) => None,
    };
    let reason = status.canonical_reason().unwrap_or("an error");
    let message = message.unwrap_or_else(|| format!("the service answered: {reason}"));
    Err(Refusal::new(status, Failure::new(code, message)))
}

/// The sentence of an error; what follows it names the request and the time.
fn told(body: &[u8]) -> Option<String> {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(value) => {
            let told = &value["odata.error"]["message"]["value"];
            // The front of documents has no envelope.
            let told = told.as_str().or_else(|| value["message"].as_str());
            told.or_else(|| value["error"]["message"].as_str())?.to_owned()
        }
        Err(_) => xml::parse(body).ok()?.child_text("Message")?.to_owned(),
    };
    text.lines().next().map(str::to_owned)
}

pub(super) async fn json(response: Response) -> Result<Value> {
    let bytes = response.body.collect(ANSWER_BYTES_MAX).await.map_err(|_| unread())?;
    serde_json::from_slice(&bytes).map_err(|_| unread())
}

pub(super) async fn document(response: Response) -> Result<xml::Element> {
    let bytes = response.body.collect(ANSWER_BYTES_MAX).await.map_err(|_| unread())?;
    xml::parse_up_to(&bytes, ELEMENTS_MAX).map_err(|_| unread())
}

/// The answer of a front cannot be parsed, which is a bug of this program.
pub(super) fn unread() -> Refusal {
    let failure = Failure::new("unread-answer", "the answer of the service cannot be read");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, failure)
}

/// A header as text, with a replacement character for what is not UTF-8.
pub(super) fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// `{"name": …}`: what is to be created.
pub(super) async fn new_name(request: Request) -> Result<String> {
    match &body(request).await?["name"] {
        Value::String(name) if !name.is_empty() => Ok(name.clone()),
        _ => Err(Refusal::bad_request("name must be text")),
    }
}
