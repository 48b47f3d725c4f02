//! Databases and containers of documents: list, create, what their ranges hold, and their throughput.

use bytes::Bytes;
use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, Method, Request, Response};
use serde_json::{Value, json};

use super::super::refusal::{Refusal, Result};
use super::super::{body, ok};
use super::answer::{ask, header, json as read_json};
use super::request::{CollectionPath, Page};
use crate::owner::{Ask, Owner, Service};

impl CollectionPath {
    /// A request about the container, or about what is below it.
    pub(super) fn ask(&self, method: Method, rest: &str) -> Ask {
        let (database, container) = (&self.database, &self.container);
        let (database, container) = (percent_encode(database), percent_encode(container));
        let path = format!("/dbs/{database}/colls/{container}{rest}");
        Ask::new(Service::Documents, method, &self.account, path)
    }

    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.database, self.container)
    }
}

fn of_account(account: &str, method: Method, path: &str) -> Ask {
    Ask::new(Service::Documents, method, account, path.to_owned())
}

pub(super) fn json_body(value: &Value) -> Body {
    Body::from(Bytes::from(value.to_string()))
}

/// The containers of a page of databases.
pub(super) async fn list(owner: &Owner, account: &str, page: &Page) -> Result<Response> {
    let wanted = of_account(account, Method::GET, "/dbs")
        .header("x-ms-max-item-count", page.most.to_string())
        .maybe_header("x-ms-continuation", page.after.as_deref());
    let answer = ask(owner, wanted).await?;
    let next = header(&answer, "x-ms-continuation");
    let databases = read_json(answer).await?;
    let mut collections = Vec::new();
    for database in databases["Databases"].as_array().into_iter().flatten() {
        let name = database["id"].as_str().unwrap_or_default();
        let path = format!("/dbs/{}/colls", percent_encode(name));
        // The service has at most 500 in an account.
        let wanted = of_account(account, Method::GET, &path).header("x-ms-max-item-count", "1000");
        let found = read_json(ask(owner, wanted).await?).await?;
        for one in found["DocumentCollections"].as_array().into_iter().flatten() {
            let id = one["id"].as_str().unwrap_or_default();
            let key = &one["partitionKey"]["paths"];
            collections.push(json!({ "name": format!("{name}/{id}"), "key": key }));
        }
    }
    Ok(ok(&json!({ "collections": collections, "next": next })))
}

/// `{"name": "DATABASE/CONTAINER", "key": "/path", "throughput": …}`. The database is created if there is none.
pub(super) async fn create(owner: &Owner, account: &str, request: Request) -> Result<Response> {
    let given = body(request).await?;
    let text = |name: &str| given[name].as_str().filter(|text| !text.is_empty());
    let name = text("name").and_then(|name| name.split_once('/'));
    let (database, container) =
        name.ok_or_else(|| Refusal::bad_request("name must be DATABASE/CONTAINER"))?;
    let key = text("key").ok_or_else(|| Refusal::bad_request("key must be a path"))?;
    let paths: Vec<&str> = key.split(',').map(str::trim).collect();
    let throughput = match &given["throughput"] {
        Value::Null => None,
        units => Some(units.as_u64().ok_or_else(|| {
            Refusal::bad_request("throughput must be a whole number of request units")
        })?),
    };
    let wanted = of_account(account, Method::POST, "/dbs");
    let made = owner.ask(wanted.body(json_body(&json!({ "id": database })))).await?;
    if !made.status.is_success() && made.status != lazuli_http::StatusCode::CONFLICT {
        // The front says what is wrong with the name.
        let wanted = of_account(account, Method::POST, "/dbs");
        ask(owner, wanted.body(json_body(&json!({ "id": database })))).await?;
    }
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    let definition = json!({
        "id": container,
        "partitionKey": { "paths": paths, "kind": kind, "version": 2 },
    });
    let path = format!("/dbs/{}/colls", percent_encode(database));
    let mut wanted = of_account(account, Method::POST, &path).body(json_body(&definition));
    if let Some(units) = throughput {
        wanted = wanted.header("x-ms-offer-throughput", units.to_string());
    }
    ask(owner, wanted).await?;
    Ok(ok(&json!({ "name": format!("{database}/{container}") })))
}

/// The offer of a container; null if it shares that of its database.
async fn offer(owner: &Owner, account: &str, rid: &Value) -> Result<Value> {
    let query = json!({
        "query": "SELECT * FROM o WHERE o.offerResourceId = @rid",
        "parameters": [{ "name": "@rid", "value": rid }],
    });
    let wanted = of_account(account, Method::POST, "/offers")
        .header("x-ms-documentdb-isquery", "True")
        .header("content-type", "application/query+json");
    let mut found = read_json(ask(owner, wanted.body(json_body(&query))).await?).await?;
    Ok(found["Offers"][0].take())
}

async fn described(owner: &Owner, path: &CollectionPath) -> Result<Value> {
    let wanted =
        path.ask(Method::GET, "").header("x-ms-documentdb-populatepartitionstatistics", "True");
    read_json(ask(owner, wanted).await?).await
}

pub(super) async fn show(owner: &Owner, path: &CollectionPath) -> Result<Response> {
    let found = described(owner, path).await?;
    let ranges = read_json(ask(owner, path.ask(Method::GET, "/pkranges")).await?).await?;
    let figures = |id: &Value| {
        let all = found["statistics"].as_array().into_iter().flatten();
        all.into_iter().find(|one| one["id"] == *id).cloned().unwrap_or_default()
    };
    let row = |range: &Value| {
        let one = figures(&range["id"]);
        json!({
            "id": range["id"],
            "min": range["minInclusive"],
            "max": range["maxExclusive"],
            "kilobytes": one["sizeInKB"].as_u64().unwrap_or_default(),
            "items": one["documentCount"].as_u64().unwrap_or_default(),
            "units_per_second": one["unitsPerSecond"].as_f64().unwrap_or_default(),
        })
    };
    let ranges: Vec<Value> =
        ranges["PartitionKeyRanges"].as_array().into_iter().flatten().map(row).collect();
    let offer = offer(owner, &path.account, &found["_rid"]).await?;
    let content = &offer["content"];
    let most = content["offerAutopilotSettings"]["maxThroughput"].as_u64();
    let mut definition = found.clone();
    if let Value::Object(definition) = &mut definition {
        definition.retain(|name, _| !name.starts_with('_') && name != "statistics");
    }
    Ok(ok(&json!({
        "name": path.name(),
        "rid": found["_rid"],
        "key": found["partitionKey"]["paths"],
        "definition": definition,
        "throughput": most.or(content["offerThroughput"].as_u64()),
        "is_autoscale": most.is_some(),
        "is_pending": content["isOfferReplacePending"] == true,
        "ranges": ranges,
    })))
}

/// Replaces the offer of a container, or only asks what that would do.
async fn replace_offer(
    owner: &Owner,
    path: &CollectionPath,
    units: u64,
    is_preview: bool,
) -> Result<Value> {
    let found = described(owner, path).await?;
    let mut offer = offer(owner, &path.account, &found["_rid"]).await?;
    let Some(rid) = offer["_rid"].as_str().map(str::to_owned) else {
        return Err(Refusal::bad_request("the container shares the throughput of its database"));
    };
    let content = &mut offer["content"];
    match content["offerAutopilotSettings"].is_object() {
        true => content["offerAutopilotSettings"]["maxThroughput"] = json!(units),
        false => content["offerThroughput"] = json!(units),
    }
    let to = format!("/offers/{}", percent_encode(&rid));
    let mut wanted = of_account(&path.account, Method::PUT, &to);
    if is_preview {
        wanted = wanted.header("x-lazuli-preview", "True");
    }
    read_json(ask(owner, wanted.body(json_body(&offer))).await?).await
}

/// What a throughput would do to the ranges.
pub(super) async fn preview(owner: &Owner, path: &CollectionPath, units: u32) -> Result<Response> {
    let told = replace_offer(owner, path, u64::from(units), true).await?;
    let (now, then) = (told["rangesNow"].as_u64(), told["rangesThen"].as_u64());
    let (now, then) = (now.unwrap_or_default(), then.unwrap_or_default());
    Ok(ok(&json!({
        "units": units,
        "ranges": now,
        "ranges_then": then,
        "units_per_range": u64::from(units) / then.max(1),
    })))
}

/// `{"units": …}`: request units per second.
pub(super) async fn set_throughput(
    owner: &Owner,
    path: &CollectionPath,
    request: Request,
) -> Result<Response> {
    let units = body(request).await?["units"].as_u64();
    let units = units.ok_or_else(|| Refusal::bad_request("units must be a whole number"))?;
    let told = replace_offer(owner, path, units, false).await?;
    let is_pending = told["content"]["isOfferReplacePending"] == true;
    Ok(ok(&json!({ "units": units, "is_pending": is_pending })))
}
