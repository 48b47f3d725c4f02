//! Entities: query, get, insert, replace, merge, delete, export.

use bytes::Bytes;
use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, BodyError, Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use super::super::ok;
use super::super::refusal::{Refusal, Result};
use super::answer::{ask, header, json as read_json};
use super::request::{EntityPath, Page, TablePath, Write};
use super::tables::ACCEPT;
use crate::owner::{Ask, Owner, Service};

/// Separates the two parts of a continuation. No part contains it.
const BETWEEN: char = '~';
/// How many entities are fetched at once for an export.
const EXPORT_PAGE: usize = 1_000;

pub(super) async fn query(
    owner: &Owner,
    table: &TablePath,
    filter: Option<&str>,
    page: &Page,
) -> Result<Response> {
    let (entities, next) = fetch(owner, table, filter, page).await?;
    Ok(ok(&json!({ "entities": entities, "next": next })))
}

/// A page of entities as the service prints them, and where the next one begins.
async fn fetch(
    owner: &Owner,
    table: &TablePath,
    filter: Option<&str>,
    page: &Page,
) -> Result<(Vec<Value>, Option<String>)> {
    let after = page.after.as_deref();
    let (partition, row) = match after.map(|after| after.split_once(BETWEEN)) {
        Some(Some((partition, row))) => (Some(partition), Some(row).filter(|row| !row.is_empty())),
        Some(None) => {
            return Err(Refusal::bad_request("after must be the `next` of the page before"));
        }
        None => (None, None),
    };
    let wanted = entities(table, Method::GET)
        .query("$top", &page.most.to_string())
        .maybe_query("$filter", filter)
        .maybe_query("NextPartitionKey", partition)
        .maybe_query("NextRowKey", row);
    let answer = ask(owner, wanted).await?;
    let next = header(&answer, "x-ms-continuation-nextpartitionkey").map(|partition| {
        let row = header(&answer, "x-ms-continuation-nextrowkey").unwrap_or_default();
        format!("{partition}{BETWEEN}{row}")
    });
    match read_json(answer).await?["value"].take() {
        Value::Array(entities) => Ok((entities, next)),
        _ => Err(super::answer::unread()),
    }
}

pub(super) async fn get(owner: &Owner, path: &EntityPath) -> Result<Response> {
    let answer = ask(owner, entity(path, Method::GET)).await?;
    let mut found = read_json(answer).await?;
    if let Some(members) = found.as_object_mut() {
        members.remove("odata.metadata");
    }
    Ok(ok(&json!({ "entity": found })))
}

pub(super) async fn insert(owner: &Owner, table: &TablePath, request: Request) -> Result<Response> {
    written(ask(owner, insertion(table, request.body)).await?)
}

/// The request that inserts an entity.
pub(super) fn insertion(table: &TablePath, body: Body) -> Ask {
    entities(table, Method::POST)
        .header("content-type", "application/json")
        .header("prefer", "return-no-content")
        .body(body)
}

/// On the condition of the request's `If-Match`. Without one an entity that is not there is inserted.
pub(super) async fn write(
    owner: &Owner,
    path: &EntityPath,
    write: Write,
    request: Request,
) -> Result<Response> {
    let if_match = request.header("if-match").map(str::to_owned);
    let wanted =
        overwriting(path, write, request.body).maybe_header("if-match", if_match.as_deref());
    written(ask(owner, wanted).await?)
}

/// The request that writes over an entity, or inserts it.
pub(super) fn overwriting(path: &EntityPath, write: Write, body: Body) -> Ask {
    let method = match write {
        Write::Replace => Method::PUT,
        Write::Merge => Method::PATCH,
    };
    entity(path, method).header("content-type", "application/json").body(body)
}

pub(super) async fn delete(
    owner: &Owner,
    path: &EntityPath,
    request: &Request,
) -> Result<Response> {
    let if_match = request.header("if-match").ok_or_else(|| {
        Refusal::bad_request("If-Match must say which version is deleted, or * for any")
    })?;
    ask(owner, entity(path, Method::DELETE).header("if-match", if_match)).await?;
    Ok(ok(&json!({ "deleted": true })))
}

fn written(answer: Response) -> Result<Response> {
    Ok(ok(&json!({ "etag": header(&answer, "etag") })))
}

/// All entities that match the filter, one in each line, as `lazuli table export` writes them. The first page is fetched
/// before the answer begins, so that a wrong request gets an error status.
pub(super) async fn export(
    owner: Owner,
    table: TablePath,
    filter: Option<String>,
) -> Result<Response> {
    let mut course = Course { owner, table, filter, after: None, is_over: false };
    let first = course.lines().await?;
    let body = Body::streamed((Some(first), course), |(first, mut course)| async move {
        if let Some(first) = first {
            return Ok(Some((first, (None, course))));
        }
        if course.is_over {
            return Ok(None);
        }
        match course.lines().await {
            Ok(lines) => Ok(Some((lines, (None, course)))),
            // The body breaks off, so that no client takes a part for the whole.
            Err(_) => Err(BodyError::Broken),
        }
    });
    let mut response = Response::new(StatusCode::OK).with("content-type", "application/jsonl");
    response.body = body;
    Ok(response)
}

/// Where an export is.
struct Course {
    owner: Owner,
    table: TablePath,
    filter: Option<String>,
    after: Option<String>,
    is_over: bool,
}

impl Course {
    /// The lines of the next page.
    async fn lines(&mut self) -> Result<Bytes> {
        let page = Page { after: self.after.take(), most: EXPORT_PAGE };
        let (found, next) = fetch(&self.owner, &self.table, self.filter.as_deref(), &page).await?;
        self.is_over = next.is_none();
        self.after = next;
        let mut lines = String::new();
        for mut entity in found {
            if let Some(members) = entity.as_object_mut() {
                members.remove("odata.etag");
            }
            lines.push_str(&entity.to_string());
            lines.push('\n');
        }
        Ok(lines.into())
    }
}

fn entities(table: &TablePath, method: Method) -> Ask {
    let path = format!("/{}", percent_encode(&table.table));
    let path = if method == Method::GET { format!("{path}()") } else { path };
    Ask::new(Service::Tables, method, &table.account, path).header("accept", ACCEPT)
}

fn entity(path: &EntityPath, method: Method) -> Ask {
    let key = |key: &str| percent_encode(&key.replace('\'', "''"));
    let (partition_key, row_key) = (key(&path.partition_key), key(&path.row_key));
    let table = percent_encode(&path.table.table);
    let place = format!("/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')");
    Ask::new(Service::Tables, method, &path.table.account, place).header("accept", ACCEPT)
}
