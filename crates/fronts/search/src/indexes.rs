//! Indexes: created, put, read, listed, deleted; their statistics, and over how many shards they are spread.

use std::sync::Arc;

use lazuli_engine::Kind;
use lazuli_http::{Response, StatusCode};
use lazuli_index::{Index, IndexReason, RecordKind, Scale};
use lazuli_search_engine::IndexDefinition;
use serde_json::{Map, Value, json};

use crate::error::{Fault, Result};
use crate::limits::INDEXES_MAX;
use crate::text_index::definition_of;
use crate::{Call, Front, definition, response};

/// The ETag of an index.
pub(crate) fn etag(index: &Index) -> String {
    format!("\"0x{:X}\"", index.version)
}

/// The version that an ETag stands for. One that is none of ours matches nothing.
fn version_of(etag: &str) -> u64 {
    let digits = etag.trim_matches('"').strip_prefix("0x").unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

/// The JSON of an index as clients get it.
pub(crate) fn rendered(index: &Index) -> Result<Map<String, Value>> {
    let kept: Value = serde_json::from_str(&index.definition).map_err(Fault::internal)?;
    let Value::Object(kept) = kept else {
        return Err(Fault::internal("a definition is no object"));
    };
    let mut body = Map::new();
    body.insert("@odata.etag".to_owned(), etag(index).into());
    body.extend(kept);
    Ok(body)
}

impl Front {
    /// The index of this name, or the one that an alias of this name stands for.
    pub(crate) async fn index(&self, call: &Call, name: &str) -> Result<Arc<Index>> {
        self.index_of(&call.sender.account, name).await
    }

    pub(crate) async fn index_of(&self, account: &str, name: &str) -> Result<Arc<Index>> {
        match self.indexes.index(account, name).await {
            Err(error) if error.is(IndexReason::IndexNotFound) => {}
            found => return Ok(found?),
        }
        let alias = match self.indexes.record(account, RecordKind::Alias, name).await {
            Err(error) if error.kind() == Kind::NotFound => return Err(Fault::no_index(name)),
            found => found?,
        };
        let alias: Value = serde_json::from_slice(&alias.body).map_err(Fault::internal)?;
        let index = alias["indexes"][0].as_str().unwrap_or_default();
        match self.indexes.index(account, index).await {
            Err(error) if error.is(IndexReason::IndexNotFound) => Err(Fault::no_index(index)),
            found => Ok(found?),
        }
    }
}

fn check(body: &Value) -> Result<IndexDefinition> {
    IndexDefinition::parse(body).map_err(|error| Fault::invalid("definition", &error.message))
}

pub(crate) async fn create(front: &Front, call: &Call, body: Value) -> Result<Response> {
    let body = definition::completed(body)?;
    let parsed = check(&body)?;
    let index = make(front, call, &parsed.name, &body).await?;
    answer(StatusCode::CREATED, &index)
}

async fn make(front: &Front, call: &Call, name: &str, body: &Value) -> Result<Arc<Index>> {
    let account = &call.sender.account;
    if front.indexes.indexes(account).await?.len() >= INDEXES_MAX {
        let message = format!("Index quota of {INDEXES_MAX} has been exceeded for this service.");
        return Err(Fault::quota(message));
    }
    if front.has_record(account, RecordKind::Alias, name).await? {
        return Err(Fault::exists("index", name));
    }
    let text = body.to_string();
    let made = front.indexes.create_index(account, name, &text, Scale::default());
    let index = made.await.map_err(|error| match error.kind() {
        Kind::Exists => Fault::exists("index", name),
        _ => error.into(),
    })?;
    front.texts.feed(account, &index);
    Ok(index)
}

fn answer(status: StatusCode, index: &Index) -> Result<Response> {
    Ok(response::resource(status, &etag(index), &Value::Object(rendered(index)?)))
}

pub(crate) async fn put(front: &Front, call: &Call, name: &str, body: Value) -> Result<Response> {
    let body = definition::completed(body)?;
    let parsed = check(&body)?;
    if parsed.name != name {
        let message = "The name of the index in the address and in the body differ.";
        return Err(Fault::bad_request(message));
    }
    let (account, condition) = (&call.sender.account, &call.options.condition);
    let old = match front.indexes.index(account, name).await {
        Err(error) if error.is(IndexReason::IndexNotFound) => {
            if condition.if_match.is_some() {
                return Err(Fault::precondition());
            }
            let index = make(front, call, name, &body).await?;
            return answer(StatusCode::CREATED, &index);
        }
        found => found?,
    };
    if condition.if_absent {
        return Err(Fault::precondition());
    }
    let seen = condition.if_match.as_deref().filter(|etag| *etag != "*").map(version_of);
    if seen.is_some_and(|seen| seen != old.version) {
        return Err(Fault::precondition());
    }
    definition_of(&old)?.check_change(&parsed)?;
    // The change was checked against this version, so it must still be the one that is replaced.
    let text = body.to_string();
    let changed = front.indexes.redefine_index(account, name, &text, Some(old.version)).await?;
    match call.options.wants_body {
        true => answer(StatusCode::OK, &changed),
        false => Ok(response::empty(StatusCode::NO_CONTENT).with("etag", etag(&changed))),
    }
}

pub(crate) async fn read(front: &Front, call: &Call, name: &str) -> Result<Response> {
    let found = front.indexes.index(&call.sender.account, name).await;
    let index = found.map_err(|error| match error.kind() {
        Kind::NotFound => Fault::no_index(name),
        _ => error.into(),
    })?;
    answer(StatusCode::OK, &index)
}

pub(crate) async fn delete(front: &Front, call: &Call, name: &str) -> Result<Response> {
    let condition = call.options.condition.if_match.as_deref();
    let seen = condition.filter(|etag| *etag != "*").map(version_of);
    let deleted = front.indexes.delete_index(&call.sender.account, name, seen).await;
    deleted.map_err(|error| match error.kind() {
        Kind::NotFound => Fault::no_index(name),
        _ => error.into(),
    })?;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// All indexes, each with the properties that `$select` names.
pub(crate) async fn list(front: &Front, call: &Call) -> Result<Response> {
    let selected = call.options.get("select").filter(|text| !text.is_empty() && *text != "*");
    let names: Option<Vec<&str>> = selected.map(|text| text.split(',').map(str::trim).collect());
    let mut all = Vec::new();
    for index in front.indexes.indexes(&call.sender.account).await? {
        let mut body = rendered(&index)?;
        if let Some(names) = &names {
            body.retain(|name, _| names.contains(&name.as_str()));
        }
        all.push(Value::Object(body));
    }
    Ok(response::json(StatusCode::OK, &json!({ "value": all })))
}

/// Documents and sizes of one index: documents as they are, the size of the text index as it was at its last commit.
pub(crate) async fn figures(front: &Front, call: &Call, index: &Arc<Index>) -> Result<Value> {
    let documents = front.indexes.count(index).await?;
    let text = front.texts.seen(&call.sender.account, index);
    let (bytes, vector_bytes) =
        text.map_or((0, 0), |it| (it.figures.bytes, it.figures.vector_bytes));
    Ok(json!({
        "documentCount": documents,
        "storageSize": bytes,
        "vectorIndexSize": vector_bytes,
    }))
}

pub(crate) async fn statistics(front: &Front, call: &Call, name: &str) -> Result<Response> {
    let index = front.index(call, name).await?;
    Ok(response::json(StatusCode::OK, &figures(front, call, &index).await?))
}

pub(crate) async fn all_statistics(front: &Front, call: &Call) -> Result<Response> {
    let mut all = Vec::new();
    for index in front.indexes.indexes(&call.sender.account).await? {
        let index = Arc::new(index);
        let mut one = figures(front, call, &index).await?;
        one["name"] = index.name.clone().into();
        all.push(one);
    }
    Ok(response::json(StatusCode::OK, &json!({ "value": all })))
}

pub(crate) async fn read_scale(front: &Front, call: &Call, name: &str) -> Result<Response> {
    let index = front.index(call, name).await?;
    let astray = front.indexes.placements(&index).await?;
    let astray = astray.iter().filter(|it| it.shard != it.wanted).count();
    let body = json!({
        "partitionCount": index.scale.partitions,
        "replicaCount": index.scale.replicas,
        "isMoving": index.is_spreading,
        "partitionsToMove": if index.is_spreading { astray } else { 0 },
    });
    Ok(response::json(StatusCode::OK, &body))
}

/// Another number of partitions or replicas for an index that is in use.
pub(crate) async fn scale(front: &Front, call: &Call, name: &str, body: Value) -> Result<Response> {
    let index = front.index(call, name).await?;
    let count = |property: &str, now: u32| match &body[property] {
        Value::Null => Ok(now),
        value => {
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
            count.ok_or_else(|| Fault::invalid(property, "It must be a whole number."))
        }
    };
    let partitions = count("partitionCount", index.scale.partitions)?;
    let replicas = count("replicaCount", index.scale.replicas)?;
    let scale = Scale { partitions, replicas };
    scale.check(front.limits.is_scale_limited)?;
    front.indexes.scale_index(&call.sender.account, &index.name, scale).await?;
    front.texts.spread();
    read_scale(front, call, name).await
}

/// What every slice holds, for people who look where documents are.
pub(crate) async fn slices(front: &Front, call: &Call, name: &str) -> Result<Response> {
    let index = front.index(call, name).await?;
    let mut slices = Vec::new();
    for one in front.indexes.figures(&index).await? {
        slices.push(json!({
            "slice": one.slice,
            "partition": one.partition.to_string(),
            "shard": one.shard.to_string(),
            "documents": one.documents,
            "bytes": one.bytes,
        }));
    }
    let text = front.texts.seen(&call.sender.account, &index);
    let text = text.map(|it| {
        json!({
            "documents": it.figures.documents,
            "bytes": it.figures.bytes,
            "segments": it.figures.segments,
            "isFilled": it.positions.is_filled(),
        })
    });
    let body = json!({ "index": index.name, "slices": slices, "textIndex": text });
    Ok(response::json(StatusCode::OK, &body))
}
