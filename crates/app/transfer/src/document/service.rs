//! Requests to the service of documents that several commands make.

use std::sync::Arc;

use lazuli_console::{Failure, Result};
use lazuli_http::client::blocking::Answer;
use lazuli_http::uri::percent_encode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::item::{Item, KeyPaths};
use crate::account::Account;
use crate::session::{Answered, Call, ServiceError, Session};

pub(super) const KEY_HEADER: &str = "x-ms-documentdb-partitionkey";
pub(super) const CONTINUATION: &str = "x-ms-continuation";

/// A container by its names: `DATABASE/CONTAINER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub database: String,
    pub container: String,
}

impl Place {
    pub(super) fn path(&self) -> String {
        let (database, container) = (&self.database, &self.container);
        format!("/dbs/{}/colls/{}", percent_encode(database), percent_encode(container))
    }

    pub(super) fn named(&self, container: &str) -> Self {
        Self { container: container.to_owned(), ..self.clone() }
    }

    pub(super) fn shown(&self) -> String {
        format!("{}/{}", self.database, self.container)
    }
}

/// Reads `DATABASE/CONTAINER`.
pub fn place(text: &str) -> std::result::Result<Place, &'static str> {
    match text.split_once('/') {
        Some((database, container)) if !database.is_empty() && !container.is_empty() => {
            Ok(Place { database: database.to_owned(), container: container.to_owned() })
        }
        _ => Err("a container is named DATABASE/CONTAINER"),
    }
}

/// A container as the service describes it.
pub(super) struct Described {
    pub(super) body: Value,
    pub(super) rid: String,
    pub(super) keys: KeyPaths,
}

/// A page of rows, and where the next one begins.
pub(super) struct Rows {
    pub(super) rows: Vec<Box<serde_json::value::RawValue>>,
    pub(super) next: Option<String>,
    pub(super) answer: Answer,
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "Documents")]
    documents: Vec<Box<serde_json::value::RawValue>>,
}

/// What is asked of all items of a container, or of one partition key.
pub(super) struct Asked {
    pub(super) place: Place,
    pub(super) body: String,
    pub(super) key: Option<String>,
    pub(super) page_items: u64,
    pub(super) wants_metrics: bool,
}

impl Asked {
    pub(super) fn all(place: &Place, text: &str) -> Self {
        let body = json!({ "query": text, "parameters": [] }).to_string();
        let (key, page_items) = (None, PAGE_ITEMS);
        Self { place: place.clone(), body, key, page_items, wants_metrics: false }
    }
}

/// How many items a page has.
pub(super) const PAGE_ITEMS: u64 = 500;

pub(super) struct Service {
    pub(super) session: Session,
}

impl Service {
    pub(super) fn new(account: &Arc<Account>) -> Result<Self> {
        Ok(Self { session: Session::new(Arc::clone(account))? })
    }

    pub(super) fn describe(&mut self, place: &Place) -> Result<Described> {
        let answer = self.session.expect(Call::new("GET", &place.path()))?;
        describe(&answer.body)
    }

    /// As [`Self::describe`]; none if there is no such container.
    pub(super) fn find(&mut self, place: &Place) -> Result<Option<Described>> {
        let answer = self.session.ask(Call::new("GET", &place.path()))?.answer;
        match answer.status {
            200..=299 => describe(&answer.body).map(Some),
            404 => Ok(None),
            _ => Err(ServiceError::of(&answer).failure()),
        }
    }

    /// A page of a query.
    pub(super) fn page(&mut self, asked: &Asked, from: Option<&str>) -> Result<Rows> {
        let path = format!("{}/docs", asked.place.path());
        let most = asked.page_items.to_string();
        let mut headers = vec![
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-max-item-count", most.as_str()),
            ("x-ms-documentdb-query-enablecrosspartition", "True"),
        ];
        headers.extend(asked.key.as_deref().map(|key| (KEY_HEADER, key)));
        headers.extend(from.map(|from| (CONTINUATION, from)));
        if asked.wants_metrics {
            headers.push(("x-ms-documentdb-populatequerymetrics", "True"));
            headers.push(("x-ms-cosmos-populateindexmetrics", "True"));
        }
        let answer = self.session.expect(Call {
            headers: &headers,
            content_type: "application/query+json",
            body: asked.body.as_bytes(),
            ..Call::new("POST", &path)
        })?;
        let page: Page = read(&answer.body)?;
        let next = answer.header(CONTINUATION).map(str::to_owned);
        Ok(Rows { rows: page.documents, next, answer })
    }

    /// How many items a container has.
    pub(super) fn count(&mut self, place: &Place) -> Result<u64> {
        let asked = Asked::all(place, "SELECT VALUE COUNT(1) FROM c");
        let (mut count, mut from) = (0, None);
        loop {
            let page = self.page(&asked, from.as_deref())?;
            let numbers = page.rows.iter().filter_map(|row| row.get().parse::<u64>().ok());
            count += numbers.sum::<u64>();
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(count),
            }
        }
    }

    /// An item; none if there is none.
    pub(super) fn item(&mut self, place: &Place, key: &str, id: &str) -> Result<Option<Item>> {
        let path = format!("{}/docs/{}", place.path(), percent_encode(id));
        let call = Call { headers: &[(KEY_HEADER, key)], ..Call::new("GET", &path) };
        let answer = self.session.ask(call)?.answer;
        match answer.status {
            200..=299 => Item::parse(&answer.body).map(Some).map_err(Failure::failed),
            404 => Ok(None),
            _ => Err(ServiceError::of(&answer).failure()),
        }
    }

    /// Writes an item: creates it, or replaces the one that is there if `upserts`.
    pub(super) fn put(
        &mut self,
        place: &Place,
        key: &str,
        body: &[u8],
        upserts: bool,
    ) -> Result<Answered> {
        let path = format!("{}/docs", place.path());
        let upsert = if upserts { "True" } else { "False" };
        let headers = [
            (KEY_HEADER, key),
            ("x-ms-documentdb-is-upsert", upsert),
            ("prefer", "return=minimal"),
        ];
        self.session.ask(Call { headers: &headers, body, ..Call::new("POST", &path) })
    }

    /// Deletes an item that may be gone already.
    pub(super) fn delete(&mut self, place: &Place, key: &str, id: &str) -> Result<()> {
        let path = format!("{}/docs/{}", place.path(), percent_encode(id));
        let call = Call { headers: &[(KEY_HEADER, key)], ..Call::new("DELETE", &path) };
        let answer = self.session.ask(call)?.answer;
        match answer.status {
            200..=299 | 404 => Ok(()),
            _ => Err(ServiceError::of(&answer).failure()),
        }
    }
}

pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::failed(format!("the answer of the service is wrong: {error}")))
}

fn describe(body: &[u8]) -> Result<Described> {
    let body: Value = read(body)?;
    let paths = body["partitionKey"]["paths"].as_array().into_iter().flatten();
    let paths: Vec<String> = paths.filter_map(Value::as_str).map(str::to_owned).collect();
    let keys = KeyPaths::parse(&paths).map_err(Failure::failed)?;
    let rid = body["_rid"].as_str().unwrap_or_default().to_owned();
    Ok(Described { body, rid, keys })
}
