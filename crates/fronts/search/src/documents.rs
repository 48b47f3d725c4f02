//! Documents: batches of actions, lookups by key, and their number.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::Kind;
use lazuli_http::{Response, StatusCode};
use lazuli_index::{Action, ActionKind, Outcome, Written, check_key};
use lazuli_search_engine::{IndexDefinition, Selection};
use serde_json::{Map, Value, json};

use crate::error::{Fault, Result};
use crate::limits::ACTIONS_MAX;
use crate::text_index::definition_of;
use crate::{Call, Front, response};

/// How a byte order mark stands in front of a count, as the service writes it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// One action as it was read, or the answer that it gets without being run.
enum Item {
    Run(Action),
    Refused { key: String, message: String },
}

impl Item {
    fn key(&self) -> &str {
        match self {
            Self::Run(action) => &action.key,
            Self::Refused { key, .. } => key,
        }
    }
}

fn kind_of(text: Option<&Value>) -> Result<ActionKind> {
    let Some(text) = text.filter(|it| !it.is_null()) else { return Ok(ActionKind::Upload) };
    match text.as_str() {
        Some("upload") => Ok(ActionKind::Upload),
        Some("merge") => Ok(ActionKind::Merge),
        Some("mergeOrUpload") => Ok(ActionKind::MergeOrUpload),
        Some("delete") => Ok(ActionKind::Delete),
        _ => {
            let message = format!(
                "The value {text} of '@search.action' is not one of upload, merge, mergeOrUpload and delete."
            );
            Err(Fault::invalid("actions", &message))
        }
    }
}

/// Reads one element of a batch.
fn item_of(place: usize, element: Value, definition: &IndexDefinition) -> Result<Item> {
    let Value::Object(mut document) = element else {
        return Err(Fault::invalid("actions", &format!("Element {place} is no JSON object.")));
    };
    let kind = kind_of(document.remove("@search.action").as_ref())?;
    document.retain(|name, _| !name.starts_with("@search.") && !name.starts_with("@odata."));
    let key = match document.get(definition.key()) {
        Some(Value::String(key)) if !key.is_empty() => key.clone(),
        _ => {
            let message = format!(
                "{place}: Document key cannot be missing or empty. The key is the field '{}'.",
                definition.key()
            );
            return Err(Fault::invalid("actions", &message));
        }
    };
    if let Err(error) = check_key(&key) {
        return Ok(Item::Refused { key, message: error.message().to_owned() });
    }
    if kind == ActionKind::Delete {
        return Ok(Item::Run(Action { key, kind, document: Bytes::new() }));
    }
    let document = Value::Object(document);
    definition
        .check_document(&document)
        .map_err(|error| Fault::invalid("actions", &format!("{place}: {}", error.message)))?;
    Ok(Item::Run(Action { key, kind, document: Bytes::from(document.to_string()) }))
}

fn items_of(body: Value, definition: &IndexDefinition) -> Result<Vec<Item>> {
    let elements = match body {
        Value::Object(mut body) => match body.remove("value") {
            Some(Value::Array(elements)) => elements,
            _ => return Err(Fault::invalid("actions", "The property 'value' must be an array.")),
        },
        _ => return Err(Fault::invalid("actions", "The body must be a JSON object.")),
    };
    match elements.len() {
        0 => return Err(Fault::bad_request("No indexing actions found in the request.")),
        count if count > ACTIONS_MAX => {
            let message = format!(
                "The request has {count} actions, and a batch has at most {ACTIONS_MAX}. Split it."
            );
            return Err(Fault::too_large(message));
        }
        _ => {}
    }
    let elements = elements.into_iter().enumerate();
    elements.map(|(place, element)| item_of(place, element, definition)).collect()
}

/// Status and message of one action.
fn result_of(key: &str, written: &Written) -> (u16, Option<String>) {
    match &written.outcome {
        Ok(Outcome::Created) => (201, None),
        Ok(Outcome::Updated | Outcome::Deleted) => (200, None),
        Ok(Outcome::Missing) => (404, Some(format!("Document not found: '{key}'."))),
        Ok(Outcome::TooLarge) => (413, Some("The document is too large.".to_owned())),
        Err(error) => match error.kind() {
            Kind::Throttled { .. } | Kind::Unavailable { .. } | Kind::Moved => {
                (503, Some("The service is busy. Please retry.".to_owned()))
            }
            Kind::TooLarge => (413, Some(error.message().to_owned())),
            Kind::NotFound => (404, Some("The index was deleted.".to_owned())),
            Kind::Invalid | Kind::Precondition | Kind::Exists => {
                (400, Some(error.message().to_owned()))
            }
            Kind::Corrupt | Kind::Internal => {
                tracing::error!(%error, "a document was not written");
                (500, Some("The server failed. Please retry.".to_owned()))
            }
        },
    }
}

fn result(key: &str, status: u16, message: Option<String>) -> Value {
    json!({
        "key": key,
        "status": message.is_none(),
        "errorMessage": message,
        "statusCode": status,
    })
}

pub(crate) async fn write(front: &Front, call: &Call, name: &str, body: Value) -> Result<Response> {
    let index = front.index(call, name).await?;
    let definition = Arc::new(definition_of(&index)?);
    let items = items_of(body, &definition)?;
    let runs = items.iter().filter_map(|item| match item {
        Item::Run(action) => Some(action.clone()),
        Item::Refused { .. } => None,
    });
    let written = front.indexes.write(&index, runs.collect()).await?;
    let mut answers = written.iter();
    let mut results = Vec::with_capacity(items.len());
    let mut all_done = true;
    for item in &items {
        let (status, message) = match item {
            Item::Refused { message, .. } => (400, Some(message.clone())),
            Item::Run(action) => match answers.next() {
                Some(written) => result_of(&action.key, written),
                None => (500, Some("The action was not answered.".to_owned())),
            },
        };
        all_done &= message.is_none();
        results.push(result(item.key(), status, message));
    }
    if call.options.waits.unwrap_or(front.limits.waits) {
        front.texts.wait_for(&call.sender.account, &index, &written).await?;
    }
    let status = if all_done { StatusCode::OK } else { StatusCode::MULTI_STATUS };
    Ok(response::json(status, &json!({ "value": results })))
}

pub(crate) async fn read(front: &Front, call: &Call, name: &str, key: &str) -> Result<Response> {
    let index = front.index(call, name).await?;
    let definition = definition_of(&index)?;
    let selection = Selection::parse(&definition, call.options.get("select"))?;
    let missing = || Fault::not_found(format!("Document not found: '{key}'."));
    if check_key(key).is_err() {
        return Err(missing());
    }
    let found = front.indexes.document(&index, key).await?.ok_or_else(missing)?;
    let document: Value = serde_json::from_slice(&found.text).map_err(Fault::internal)?;
    let mut body = Map::new();
    body.extend(selection.apply(&document));
    Ok(response::text(StatusCode::OK, Value::Object(body).to_string()))
}

pub(crate) async fn count(front: &Front, call: &Call, name: &str) -> Result<Response> {
    let index = front.index(call, name).await?;
    let count = front.indexes.count(&index).await?;
    let body = format!("{BYTE_ORDER_MARK}{count}");
    Ok(Response::new(StatusCode::OK).with("content-type", "text/plain").with_body(body))
}
