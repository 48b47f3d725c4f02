//! The tables of an account.

use bytes::Bytes;
use lazuli_http::{Body, Method, Request, Response};
use serde_json::{Value, json};

use super::super::{ok, refusal::Result};
use super::answer::{ask, header, json as read_json, new_name};
use super::request::Page;
use crate::owner::{Ask, Owner, Service};

pub(super) const ACCEPT: &str = "application/json;odata=minimalmetadata";

pub(super) async fn list(owner: &Owner, account: &str, page: &Page) -> Result<Response> {
    let wanted = Ask::new(Service::Tables, Method::GET, account, "/Tables".to_owned())
        .header("accept", ACCEPT)
        .query("$top", &page.most.to_string())
        .maybe_query("NextTableName", page.after.as_deref());
    let answer = ask(owner, wanted).await?;
    let next = header(&answer, "x-ms-continuation-nexttablename");
    let answer = read_json(answer).await?;
    let tables = answer["value"].as_array().into_iter().flatten();
    let tables: Vec<Value> = tables.map(|table| json!({ "name": table["TableName"] })).collect();
    Ok(ok(&json!({ "tables": tables, "next": next })))
}

pub(super) async fn create(owner: &Owner, account: &str, request: Request) -> Result<Response> {
    let name = new_name(request).await?;
    let body = Body::from(Bytes::from(json!({ "TableName": name }).to_string()));
    let wanted = Ask::new(Service::Tables, Method::POST, account, "/Tables".to_owned())
        .header("accept", ACCEPT)
        .header("content-type", "application/json")
        .header("prefer", "return-no-content");
    ask(owner, wanted.body(body)).await?;
    Ok(ok(&json!({ "name": name })))
}
