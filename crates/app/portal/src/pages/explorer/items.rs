//! A container of documents: queries over its items with what they cost, one item as JSON, and new ones.

use std::collections::BTreeSet;

use bytes::Bytes;
use lazuli_http::date::format_rfc1123;
use lazuli_http::{Body, HeaderMap, Method, StatusCode};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::place::ItemPath;
use super::stored::{stored, whole};
use super::{crumbs, header, next, required, sure, tell};
use crate::figure;
use crate::layout::{csrf, fact, list, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};

/// How many rows a page shows.
const ROWS_SHOWN: &str = "50";
const COLUMNS_MAX: usize = 20;
const VALUE_CHARS_MAX: usize = 120;
/// What the service adds to items.
const SYSTEM: [&str; 5] = ["_rid", "_self", "_etag", "_ts", "_attachments"];
const ALL: &str = "SELECT * FROM c";

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let given = |name: &str| visit.query.get(name).unwrap_or_default();
    let (query, key, shape) = (given("query"), given("key"), given("as"));
    let asked = [("query", query), ("key", key), ("after", given("after")), ("limit", ROWS_SHOWN)];
    let described = visit.api.get(&path.api(&[])).await?;
    // A query that is refused is shown with its error, to be mended.
    let found = visit.api.get_with(&path.api(&["items"]), &asked).await;
    let again = |name: &'static str, value: &str| {
        let fields = [("query", query), ("key", key), ("as", shape), (name, value)];
        path.link(&[], &fields)
    };
    let body = html! {
        (crumbs(&[path.list()], stored(&path.name)))
        h1 { "Container " (stored(&path.name)) }
        p { a.button.quiet href=(path.link(&["ranges"], &[])) { "Storage and throughput" } }
        form.card method="get" action=(path.link(&[], &[])) role="search" {
            label for="query" { "Query" }
            textarea #query name="query" rows="4" spellcheck="false" {
                (if query.is_empty() { ALL } else { query })
            }
            label for="key" { "Partition key, as JSON; empty asks all" }
            input #key name="key" value=(key) placeholder="[\"ann\"]" autocomplete="off";
            label for="as" { "Rows as" }
            select #as name="as" {
                option value="table" selected[shape != "json"] { "Table" }
                option value="json" selected[shape == "json"] { "JSON" }
            }
            div.actions { button type="submit" { "Run" } }
        }
        @match &found {
            Err(refused) => {
                div.notice.bad role="alert" { p { (refused.message) } }
            }
            Ok(found) => {
                (costs(found))
                section.card aria-label="Rows" {
                    @if list(&found["rows"]).is_empty() { p.muted { "No row on this page." } }
                    @else if shape == "json" { (as_json(list(&found["rows"]))) }
                    @else { (as_table(path, &described, list(&found["rows"]))) }
                    (next(found["next"].as_str().map(|next| again("after", next))))
                }
            }
        }
        (insertion(visit, path, &described))
    };
    Outcome::page(format!("Container {}", path.name), Part::Explorer, body)
}

/// What a page of a query cost, and how it was answered.
fn costs(found: &Value) -> Markup {
    let (rows, read) = (list(&found["rows"]).len() as u64, figure_of(&found["items_read"]));
    let used = list(&found["indexes"]["UtilizedIndexes"]["SingleIndexes"]);
    let names: Vec<&str> = used.iter().map(|one| text(&one["IndexSpec"])).collect();
    html! {
        dl.facts.card aria-label="What this page cost" {
            (fact("Request units", html! { (format!("{:.2}", found["units"].as_f64().unwrap_or(0.0))) }))
            (fact("Rows", html! { (figure::count(rows)) }))
            (fact("Items read", html! { (figure::count(read)) }))
            (fact("Bytes read", html! { (figure::bytes(figure_of(&found["bytes_read"]))) }))
            (fact("Indexes used", html! {
                @if names.is_empty() { "none: items were looked at one by one" }
                @else { (stored(&names.join(", "))) }
            }))
        }
    }
}

fn figure_of(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn as_json(rows: &[Value]) -> Markup {
    let text: Vec<String> = rows.iter().map(|row| format!("{row:#}")).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Rows as JSON" {
            pre { (whole(&text.join("\n"))) }
        }
    }
}

fn as_table(path: &ItemPath, described: &Value, rows: &[Value]) -> Markup {
    let names: BTreeSet<&str> = rows
        .iter()
        .filter_map(Value::as_object)
        .flatten()
        .map(|(name, _)| name.as_str())
        .filter(|name| *name != "id" && !SYSTEM.contains(name))
        .collect();
    let shown: Vec<&str> = names.iter().copied().take(COLUMNS_MAX).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Rows as a table" {
            table {
                caption.hidden { "Rows" }
                thead {
                    tr {
                        th scope="col" { "id" }
                        @for name in &shown { th scope="col" { (stored(name)) } }
                        @if rows.iter().any(|row| !row.is_object()) { th scope="col" { "value" } }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            th.key scope="row" { (id_cell(path, described, row)) }
                            @for name in &shown { td.key { (value(&row[*name])) } }
                            @if !row.is_object() { td.key { (value(row)) } }
                        }
                    }
                }
            }
        }
        @if names.len() > shown.len() {
            p.muted { "These are the first " (shown.len()) " of " (names.len()) " properties." }
        }
    }
}

/// The id of a row, with a link if the row is a whole item.
fn id_cell(path: &ItemPath, described: &Value, row: &Value) -> Markup {
    let id = text(&row["id"]);
    if row["_rid"].is_string() && row["id"].is_string() {
        let key = key_of(described, row).to_string();
        let to = path.link(&["item"], &[("id", id), ("key", &key)]);
        return html! { a href=(to) { (stored(id)) } };
    }
    html! { @if row["id"].is_string() { (stored(id)) } }
}

/// The partition key of an item: an empty object stands for a value that is not there.
fn key_of(described: &Value, item: &Value) -> Value {
    let at = |path: &Value| {
        let names = text(path).split('/').skip(1).map(|name| name.trim_matches('"'));
        let found = names.fold(item, |value, name| &value[name]);
        if found.is_null() && !has(item, text(path)) { json!({}) } else { found.clone() }
    };
    list(&described["key"]).iter().map(at).collect()
}

fn has(item: &Value, path: &str) -> bool {
    let mut names = path.split('/').skip(1).map(|name| name.trim_matches('"'));
    names.try_fold(item, |value, name| value.get(name)).is_some()
}

fn value(value: &Value) -> Markup {
    let whole = match value {
        Value::Null => return html! {},
        Value::String(text) if text.is_empty() => return html! {},
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let begin: String = whole.chars().take(VALUE_CHARS_MAX).collect();
    html! { (stored(&begin)) @if begin.len() < whole.len() { "…" } }
}

fn insertion(visit: &Visit<'_>, path: &ItemPath, described: &Value) -> Markup {
    let mut example = json!({ "id": "" });
    for key in list(&described["key"]) {
        let name = text(key).trim_start_matches('/');
        if !name.contains('/') {
            example[name] = json!("");
        }
    }
    html! {
        details.card {
            summary { "Put an item" }
            form method="post" action=(path.link(&["put"], &[])) {
                (csrf(visit.session))
                label for="item" { "Item, as JSON" }
                textarea #item name="item" rows="8" spellcheck="false" required { (format!("{example:#}")) }
                p.muted { "An item with this id and partition key is replaced." }
                button type="submit" { "Put" }
            }
        }
    }
}

pub(super) async fn put(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let item = parsed(visit)?;
    write(visit, path, &item, None).await?;
    Outcome::done(path.link(&[], &[]), format!("The item {} is there.", item["id"]))
}

fn parsed(visit: &Visit<'_>) -> Result<Value> {
    let wrong = |error: serde_json::Error| {
        Fault::new(StatusCode::BAD_REQUEST, format!("this is no JSON: {error}"))
    };
    serde_json::from_str(visit.form.get("item")).map_err(wrong)
}

async fn write(visit: &Visit<'_>, path: &ItemPath, item: &Value, etag: Option<&str>) -> Result<()> {
    let described = visit.api.get(&path.api(&[])).await?;
    let body = json!({ "item": item, "key": key_of(&described, item), "etag": etag });
    let body = Body::from(Bytes::from(body.to_string()));
    tell(visit, Method::PUT, &path.api(&["item"]), &[], HeaderMap::new(), body).await
}

/// One item, as JSON that can be edited. The write fails if the item changed meanwhile.
pub(super) async fn item(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let keys = keys(visit)?;
    let mut found = visit.api.get_with(&path.api(&["item"]), &keys).await?["item"].take();
    let etag = text(&found["_etag"]).to_owned();
    let time = format_rfc1123(found["_ts"].as_i64().unwrap_or_default());
    if let Some(members) = found.as_object_mut() {
        members.retain(|name, _| !SYSTEM.contains(&name.as_str()));
    }
    let above = [path.list(), (path.name.as_str(), path.link(&[], &[]))];
    let change = path.link(&["change"], &keys);
    let body = html! {
        (crumbs(&above, html! { "Item" }))
        h1 { "Item " (stored(keys[0].1)) }
        section.card aria-label="Item" {
            dl.facts {
                (fact("Partition key", stored(keys[1].1)))
                (fact("Changed", html! { (time) }))
            }
            form method="post" action=(change) {
                (csrf(visit.session))
                input type="hidden" name="etag" value=(etag);
                input type="hidden" name="how" value="replace";
                label for="item" { "Item, as JSON" }
                textarea #item name="item" rows="16" spellcheck="false" { (format!("{found:#}")) }
                button type="submit" { "Save" }
            }
        }
        form.card method="post" action=(change) {
            (csrf(visit.session))
            input type="hidden" name="etag" value=(etag);
            input type="hidden" name="how" value="delete";
            label { input type="checkbox" name="sure" value="yes" required; " Delete this item" }
            button.danger type="submit" { "Delete" }
        }
    };
    Outcome::page("Item", Part::Explorer, body)
}

/// Only if the item still has the etag that the page showed.
pub(super) async fn change(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let keys = keys(visit)?;
    let etag = visit.form.get("etag");
    match visit.form.get("how") {
        "replace" => {
            let item = parsed(visit)?;
            write(visit, path, &item, Some(etag)).await?;
            Outcome::done(path.link(&["item"], &keys), "The item is saved.")
        }
        "delete" => {
            sure(visit)?;
            let pieces = path.api(&["item"]);
            let etag = header("if-match", etag)?;
            tell(visit, Method::DELETE, &pieces, &keys, etag, Body::empty()).await?;
            Outcome::done(path.link(&[], &[]), "The item is deleted.")
        }
        _ => Err(Fault::new(StatusCode::BAD_REQUEST, "the form does not say what to do")),
    }
}

fn keys<'v>(visit: &'v Visit<'_>) -> Result<[(&'static str, &'v str); 2]> {
    Ok([("id", required(visit, "id")?), ("key", required(visit, "key")?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_item_is_found_at_its_paths() {
        let described = json!({ "key": ["/a/b", "/n", "/none"] });
        let item = json!({ "a": { "b": "x" }, "n": null });
        assert_eq!(key_of(&described, &item), json!(["x", null, {}]));
    }
}
