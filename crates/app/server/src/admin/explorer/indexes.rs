//! Text indexes: list, definition with slices, search, analysis of a text.

use bytes::Bytes;
use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, Method, Response};
use serde_json::{Value, json};

use super::super::ok;
use super::super::refusal::Result;
use super::answer;
use super::request::IndexPath;
use crate::owner::{Ask, Owner, SEARCH_VERSION, Service};

/// What is searched for, and how.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct Wanted {
    pub(super) text: Option<String>,
    pub(super) syntax: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) filter: Option<String>,
    pub(super) fields: Option<String>,
    pub(super) limit: usize,
}

pub(super) async fn list(owner: &Owner, account: &str) -> Result<Response> {
    let wanted = asked(Method::GET, account, "/indexstats".to_owned());
    let found = json(owner, wanted).await?;
    let one = |index: &Value| {
        json!({
            "name": index["name"],
            "documents": index["documentCount"],
            "bytes": index["storageSize"],
        })
    };
    let indexes: Vec<Value> = found["value"].as_array().into_iter().flatten().map(one).collect();
    Ok(ok(&json!({ "indexes": indexes, "next": null })))
}

/// The definition, and how the slices lie on the shards.
pub(super) async fn show(owner: &Owner, path: &IndexPath) -> Result<Response> {
    let definition = json(owner, index(path, Method::GET, "")).await?;
    let slices = json(owner, index(path, Method::GET, "/lazuli.slices")).await?;
    let scale = json(owner, index(path, Method::GET, "/lazuli.scale")).await?;
    Ok(ok(&json!({
        "name": path.index,
        "definition": definition,
        "slices": slices["slices"],
        "text_index": slices["textIndex"],
        "partitions": scale["partitionCount"],
        "replicas": scale["replicaCount"],
        "partitions_to_move": scale["partitionsToMove"],
    })))
}

/// Documents with their scores, and the query that the text has become.
pub(super) async fn search(owner: &Owner, path: &IndexPath, wanted: &Wanted) -> Result<Response> {
    let text = wanted.text.as_deref().unwrap_or("*");
    let mut query = json!({ "search": text, "count": true, "top": wanted.limit });
    for (name, value) in [
        ("queryType", &wanted.syntax),
        ("searchMode", &wanted.mode),
        ("filter", &wanted.filter),
        ("searchFields", &wanted.fields),
    ] {
        if let Some(value) = value {
            query[name] = json!(value);
        }
    }
    let found = json(owner, post(path, "/docs/search.post.search", &query)).await?;
    let explained = json(owner, post(path, "/lazuli.explain", &query)).await?;
    let results: Vec<Value> = found["value"].as_array().into_iter().flatten().map(result).collect();
    Ok(ok(&json!({
        "count": found["@odata.count"],
        "query": explained["query"],
        "results": results,
    })))
}

/// A document and its score, apart from each other.
fn result(found: &Value) -> Value {
    let score = found["@search.score"].clone();
    let mut document = found.clone();
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|name, _| !name.starts_with("@search."));
    }
    json!({ "score": score, "document": document })
}

/// The tokens that an analyzer makes of a text.
pub(super) async fn analyze(
    owner: &Owner,
    path: &IndexPath,
    analyzer: &str,
    text: &str,
) -> Result<Response> {
    let body = json!({ "analyzer": analyzer, "text": text });
    let found = json(owner, post(path, "/search.analyze", &body)).await?;
    let one = |token: &Value| {
        json!({
            "token": token["token"],
            "from": token["startOffset"],
            "to": token["endOffset"],
            "position": token["position"],
        })
    };
    let tokens: Vec<Value> = found["tokens"].as_array().into_iter().flatten().map(one).collect();
    Ok(ok(&json!({ "tokens": tokens })))
}

fn index(path: &IndexPath, method: Method, rest: &str) -> Ask {
    let place = format!("/indexes/{}{rest}", percent_encode(&path.index));
    asked(method, &path.account, place)
}

fn asked(method: Method, account: &str, path: String) -> Ask {
    Ask::new(Service::Search, method, account, path).query("api-version", SEARCH_VERSION)
}

fn post(path: &IndexPath, rest: &str, body: &Value) -> Ask {
    let body = Body::from(Bytes::from(body.to_string()));
    index(path, Method::POST, rest).header("content-type", "application/json").body(body)
}

async fn json(owner: &Owner, wanted: Ask) -> Result<Value> {
    answer::json(answer::ask(owner, wanted).await?).await
}
