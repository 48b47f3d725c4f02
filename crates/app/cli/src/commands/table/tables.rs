//! `lazuli table list|create|delete`.

use std::sync::Arc;

use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

use super::check_table;
use crate::args::service::Service;
use crate::commands::remote::place::{Place, Protocol};
use crate::commands::remote::session::{Ask, Refusal, Session};
use crate::failure::{Failure, Result};
use crate::output;

/// Asks for a table with hashed keys. Services other than Lazuli do not know it.
const MAP_HEADER: &str = "x-lazuli-map";
const CONTINUATION: &str = "x-ms-continuation-NextTableName";

fn session(service: &Service) -> Result<Session> {
    Session::new(Arc::new(Place::find(service, Protocol::Tables)?))
}

pub(super) fn list(service: &Service) -> Result<()> {
    let mut session = session(service)?;
    let mut names: Vec<Value> = Vec::new();
    let mut query = String::new();
    loop {
        let answer = session.expect(Ask { query: &query, ..Ask::new("GET", "/Tables") })?;
        let page: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| Failure::failed("the service answered with something else than JSON"))?;
        let tables = page["value"].as_array().into_iter().flatten();
        names.extend(tables.map(|table| table["TableName"].clone()));
        match answer.header(CONTINUATION) {
            Some(next) => query = format!("NextTableName={}", percent_encode(next)),
            None => break,
        }
    }
    if service.target.json {
        output::json(&json!({ "tables": names }));
    } else {
        names.iter().for_each(|name| output::line(&output::cell(name)));
    }
    Ok(())
}

pub(super) fn create(name: &str, hashed: bool, service: &Service) -> Result<()> {
    check_table(name)?;
    let body = json!({ "TableName": name }).to_string();
    let hash = [(MAP_HEADER, "hash")];
    let headers = if hashed { &hash[..] } else { &[] };
    let ask = Ask { body: body.as_bytes(), headers, ..Ask::new("POST", "/Tables") };
    session(service)?.expect(ask)?;
    let answer = json!({ "table": name, "hashed": hashed });
    output::changed(service.target.json, &answer, || {
        let how = if hashed { ", its partition keys spread by their hash" } else { "" };
        format!("created table {name}{how}")
    });
    Ok(())
}

/// Creates a table unless it is there.
pub(super) fn ensure(session: &mut Session, name: &str) -> Result<()> {
    let body = json!({ "TableName": name }).to_string();
    let ask = Ask { body: body.as_bytes(), ..Ask::new("POST", "/Tables") };
    let answer = session.ask(ask)?.answer;
    let refusal = Refusal::of(&answer);
    match answer.status {
        200..=299 => Ok(()),
        409 if refusal.code == "TableAlreadyExists" => Ok(()),
        _ => Err(refusal.failure()),
    }
}

pub(super) fn delete(name: &str, service: &Service) -> Result<()> {
    check_table(name)?;
    let path = format!("/Tables('{name}')");
    session(service)?.expect(Ask::new("DELETE", &path))?;
    output::changed(service.target.json, &json!({ "table": name }), || {
        format!("deleted table {name}")
    });
    Ok(())
}
