//! Synonym maps, aliases and keys for queries: named JSON that is kept beside the indexes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use lazuli_engine::{Kind, Lsn};
use lazuli_http::{Response, StatusCode};
use lazuli_index::{Expect, IndexReason, Record, RecordKind};
use lazuli_search_engine::SynonymMap;
use serde_json::{Map, Value, json};

use crate::error::{Fault, Result};
use crate::limits::{ALIASES_MAX, NAME_CHARS_MAX, QUERY_KEYS_MAX, SYNONYM_MAPS_MAX};
use crate::{Call, Front, response};

/// What tells synonym maps and aliases apart.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) kind: RecordKind,
    what: &'static str,
    most: usize,
    check: fn(&Map<String, Value>) -> Result<()>,
}

pub(crate) const SYNONYM_MAPS: Named = Named {
    kind: RecordKind::SynonymMap,
    what: "synonym map",
    most: SYNONYM_MAPS_MAX,
    check: check_synonyms,
};

pub(crate) const ALIASES: Named =
    Named { kind: RecordKind::Alias, what: "alias", most: ALIASES_MAX, check: check_alias };

/// Bytes of chance in a key for queries: 52 characters, as those of the service have.
const KEY_BYTES: usize = 39;

fn check_synonyms(body: &Map<String, Value>) -> Result<()> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    if text("format").is_some_and(|format| format != "solr") {
        return Err(Fault::invalid("synonymMap", "The format of a synonym map must be 'solr'."));
    }
    if body.get("encryptionKey").is_some_and(|it| !it.is_null()) {
        return Err(Fault::gap("Customer-managed encryption keys"));
    }
    let rules = text("synonyms").ok_or_else(|| {
        Fault::invalid("synonymMap", "The property 'synonyms' must hold the rules, one a line.")
    })?;
    SynonymMap::parse(text("name").unwrap_or_default(), rules)?;
    Ok(())
}

fn check_alias(body: &Map<String, Value>) -> Result<()> {
    let indexes = body.get("indexes").and_then(Value::as_array);
    match indexes.map(Vec::as_slice) {
        Some([Value::String(_)]) => Ok(()),
        _ => Err(Fault::invalid("alias", "An alias must name exactly one index.")),
    }
}

/// Names as the service allows them.
fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_CHARS_MAX && name.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!(
        "A name has 1 to {NAME_CHARS_MAX} letters, digits, dashes and underscores, and begins with a letter or digit."
    );
    Err(Fault::new(StatusCode::BAD_REQUEST, "InvalidName", message))
}

fn etag(version: Lsn) -> String {
    format!("\"0x{:X}\"", version.0)
}

fn version_of(etag: &str) -> Lsn {
    let digits = etag.trim_matches('"').strip_prefix("0x").unwrap_or_default();
    Lsn(u64::from_str_radix(digits, 16).unwrap_or(0))
}

fn rendered(record: &Record) -> Result<Value> {
    let kept: Map<String, Value> = serde_json::from_slice(&record.body).map_err(Fault::internal)?;
    let mut body = Map::new();
    body.insert("@odata.etag".to_owned(), etag(record.version).into());
    body.extend(kept);
    Ok(Value::Object(body))
}

impl Front {
    pub(crate) async fn has_record(
        &self,
        account: &str,
        kind: RecordKind,
        name: &str,
    ) -> Result<bool> {
        match self.indexes.record(account, kind, name).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == Kind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) async fn create(
    front: &Front,
    call: &Call,
    named: Named,
    body: Value,
) -> Result<Response> {
    let name = body["name"].as_str().unwrap_or_default().to_owned();
    let record = keep(front, call, named, &name, body, Expect::Nothing).await?;
    Ok(response::resource(StatusCode::CREATED, &etag(record.1.version), &rendered(&record.1)?))
}

pub(crate) async fn put(
    front: &Front,
    call: &Call,
    named: Named,
    name: &str,
    body: Value,
) -> Result<Response> {
    if body["name"].as_str().is_some_and(|own| own != name) {
        return Err(Fault::bad_request("The name in the address and in the body differ."));
    }
    let condition = &call.options.condition;
    let expect = match &condition.if_match {
        Some(etag) if etag == "*" => Expect::Any,
        Some(etag) => Expect::Version(version_of(etag)),
        None if condition.if_absent => Expect::Nothing,
        None => Expect::Anything,
    };
    let kept = keep(front, call, named, name, body, expect).await;
    let (is_new, record) = kept.map_err(|fault| match condition.if_absent {
        true if fault.status == StatusCode::CONFLICT => Fault::precondition(),
        _ => fault,
    })?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    match is_new || call.options.wants_body {
        true => Ok(response::resource(status, &etag(record.version), &rendered(&record)?)),
        false => Ok(response::empty(StatusCode::NO_CONTENT).with("etag", etag(record.version))),
    }
}

async fn keep(
    front: &Front,
    call: &Call,
    named: Named,
    name: &str,
    body: Value,
    expect: Expect,
) -> Result<(bool, Record)> {
    check_name(name)?;
    let Value::Object(mut body) = body else {
        return Err(Fault::invalid(named.what, "It must be a JSON object."));
    };
    body.retain(|property, _| !property.starts_with("@odata."));
    body.insert("name".to_owned(), name.into());
    (named.check)(&body)?;
    let (account, kind) = (&call.sender.account, named.kind);
    if named.kind == RecordKind::Alias {
        let index = body["indexes"][0].as_str().unwrap_or_default();
        front.indexes.index(account, index).await.map_err(|error| match error.kind() {
            Kind::NotFound => Fault::no_index(index),
            _ => error.into(),
        })?;
        if front.indexes.index(account, name).await.is_ok() {
            return Err(Fault::exists(named.what, name));
        }
    }
    if !front.has_record(account, kind, name).await?
        && front.indexes.records(account, kind).await?.len() >= named.most
    {
        let message = format!("The quota of {} of this kind has been exceeded.", named.most);
        return Err(Fault::quota(message));
    }
    let text = Bytes::from(Value::Object(body).to_string());
    let put = front.indexes.put_record(account, kind, name, text.clone(), expect).await;
    let (is_new, version) = put.map_err(|error| match error.kind() {
        Kind::Exists => Fault::exists(named.what, name),
        _ => error.into(),
    })?;
    Ok((is_new, Record { name: name.to_owned(), body: text, version }))
}

fn missing(named: Named, name: &str) -> Fault {
    Fault::not_found(format!("No {} with the name '{name}' was found in the service.", named.what))
}

pub(crate) async fn read(front: &Front, call: &Call, named: Named, name: &str) -> Result<Response> {
    let found = front.indexes.record(&call.sender.account, named.kind, name).await;
    let record = found.map_err(|error| match error.is(IndexReason::RecordNotFound) {
        true => missing(named, name),
        false => error.into(),
    })?;
    Ok(response::resource(StatusCode::OK, &etag(record.version), &rendered(&record)?))
}

pub(crate) async fn list(front: &Front, call: &Call, named: Named) -> Result<Response> {
    let records = front.indexes.records(&call.sender.account, named.kind).await?;
    let all = records.iter().map(rendered).collect::<Result<Vec<_>>>()?;
    Ok(response::json(StatusCode::OK, &json!({ "value": all })))
}

pub(crate) async fn delete(
    front: &Front,
    call: &Call,
    named: Named,
    name: &str,
) -> Result<Response> {
    let condition = call.options.condition.if_match.as_deref();
    let expect = match condition {
        None | Some("*") => Expect::Anything,
        Some(etag) => Expect::Version(version_of(etag)),
    };
    let (account, kind) = (&call.sender.account, named.kind);
    if !front.indexes.delete_record(account, kind, name, expect).await? {
        return Err(missing(named, name));
    }
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// Keys for queries, each with its name and its text.
pub(crate) async fn list_keys(front: &Front, call: &Call) -> Result<Response> {
    let records = front.indexes.records(&call.sender.account, RecordKind::QueryKey).await?;
    let keys = records
        .iter()
        .map(|record| json!({ "name": record.name, "key": String::from_utf8_lossy(&record.body) }));
    Ok(response::json(StatusCode::OK, &json!({ "value": keys.collect::<Vec<_>>() })))
}

/// Makes a key for queries under a name.
pub(crate) async fn create_key(front: &Front, call: &Call, body: Value) -> Result<Response> {
    let name = body["name"].as_str().unwrap_or_default();
    check_name(name)?;
    let (account, kind) = (&call.sender.account, RecordKind::QueryKey);
    if front.indexes.records(account, kind).await?.len() >= QUERY_KEYS_MAX {
        return Err(Fault::quota(format!("There may be {QUERY_KEYS_MAX} query keys.")));
    }
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(Fault::internal)?;
    let key = URL_SAFE_NO_PAD.encode(bytes);
    let text = Bytes::from(key.clone());
    let made = front.indexes.put_record(account, kind, name, text, Expect::Nothing).await;
    made.map_err(|error| match error.kind() {
        Kind::Exists => Fault::exists("query key", name),
        _ => error.into(),
    })?;
    front.query_keys.forget();
    Ok(response::json(StatusCode::CREATED, &json!({ "name": name, "key": key })))
}

pub(crate) async fn delete_key(front: &Front, call: &Call, name: &str) -> Result<Response> {
    let (account, kind) = (&call.sender.account, RecordKind::QueryKey);
    let deleted = front.indexes.delete_record(account, kind, name, Expect::Anything).await?;
    front.query_keys.forget();
    match deleted {
        true => Ok(response::empty(StatusCode::NO_CONTENT)),
        false => Err(Fault::not_found(format!("No query key has the name '{name}'."))),
    }
}
