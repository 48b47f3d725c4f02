//! Items of documents: queries with what they cost, and single items.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, Method, Request, Response};
use serde_json::{Value, json};

use super::super::refusal::{Refusal, Result};
use super::super::{body_up_to, ok};
use super::answer::{ask, header, json as read_json};
use super::documents::json_body;
use super::request::{CollectionPath, ItemPath, Page};
use crate::owner::Owner;

const KEY: &str = "x-ms-documentdb-partitionkey";
/// The largest body that puts an item: 2 MiB and its key.
const ITEM_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
const ALL: &str = "SELECT * FROM c";

/// Runs a query, and tells its rows, its request units, how much was read, and which indexes were used.
pub(super) async fn query(
    owner: &Owner,
    path: &CollectionPath,
    query: Option<&str>,
    key: Option<&str>,
    page: &Page,
) -> Result<Response> {
    let body = json!({ "query": query.unwrap_or(ALL), "parameters": [] });
    let wanted = path
        .ask(Method::POST, "/docs")
        .header("x-ms-documentdb-isquery", "True")
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-query-enablecrosspartition", "True")
        .header("x-ms-documentdb-populatequerymetrics", "True")
        .header("x-ms-cosmos-populateindexmetrics", "True")
        .header("x-ms-max-item-count", page.most.to_string())
        .maybe_header(KEY, key)
        .maybe_header("x-ms-continuation", page.after.as_deref());
    let answer = ask(owner, wanted.body(json_body(&body))).await?;
    let next = header(&answer, "x-ms-continuation");
    let units = header(&answer, "x-ms-request-charge").and_then(|text| text.parse::<f64>().ok());
    let metrics = header(&answer, "x-ms-documentdb-query-metrics").unwrap_or_default();
    let figure = |name: &str| {
        let fields = metrics.split(';').filter_map(|field| field.split_once('='));
        fields
            .into_iter()
            .find(|(it, _)| *it == name)
            .and_then(|(_, text)| text.parse::<u64>().ok())
    };
    let (read, bytes_read) = (figure("retrievedDocumentCount"), figure("retrievedDocumentSize"));
    let indexes = header(&answer, "x-ms-cosmos-index-utilization").map(|text| indexes(&text));
    let mut found = read_json(answer).await?;
    let rows = found["Documents"].take();
    Ok(ok(&json!({
        "rows": rows,
        "units": units.unwrap_or_default(),
        "items_read": read.unwrap_or_default(),
        "bytes_read": bytes_read.unwrap_or_default(),
        "indexes": indexes.unwrap_or_default(),
        "next": next,
    })))
}

/// What the front tells of indexes: JSON, in base64 as older SDKs want it.
fn indexes(text: &str) -> Value {
    let decoded = STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
    serde_json::from_slice(&decoded).unwrap_or(Value::Null)
}

fn one(path: &ItemPath, method: Method) -> crate::owner::Ask {
    let rest = format!("/docs/{}", percent_encode(&path.id));
    path.collection.ask(method, &rest).header(KEY, path.key.as_str())
}

pub(super) async fn get(owner: &Owner, path: &ItemPath) -> Result<Response> {
    let item = read_json(ask(owner, one(path, Method::GET)).await?).await?;
    Ok(ok(&json!({ "item": item })))
}

/// `{"item": …, "key": […], "etag": …}`: creates or replaces an item, with an etag only the one that has it.
pub(super) async fn put(
    owner: &Owner,
    path: &CollectionPath,
    request: Request,
) -> Result<Response> {
    let given = body_up_to(request, ITEM_BODY_BYTES_MAX).await?;
    if !given["item"].is_object() || !given["key"].is_array() {
        return Err(Refusal::bad_request("item must be an object, and key an array"));
    }
    let body = Body::from(Bytes::from(given["item"].to_string()));
    let wanted = path
        .ask(Method::POST, "/docs")
        .header(KEY, ascii(&given["key"].to_string()))
        .header("x-ms-documentdb-is-upsert", "True")
        .maybe_header("if-match", given["etag"].as_str());
    let answer = ask(owner, wanted.body(body)).await?;
    let units = header(&answer, "x-ms-request-charge").and_then(|text| text.parse::<f64>().ok());
    let id = given["item"]["id"].clone();
    Ok(ok(&json!({ "id": id, "units": units.unwrap_or_default() })))
}

pub(super) async fn delete(owner: &Owner, path: &ItemPath, request: &Request) -> Result<Response> {
    let wanted = one(path, Method::DELETE).maybe_header("if-match", request.header("if-match"));
    ask(owner, wanted).await?;
    Ok(ok(&json!({ "id": path.id })))
}

/// JSON that can stand in a header.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}
