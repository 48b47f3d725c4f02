//! The entities of a table: filter, insert, import.

use std::collections::BTreeSet;

use bytes::Bytes;
use lazuli_http::{Body, HeaderMap, Method, StatusCode};
use maud::{Markup, html};
use serde_json::Value;

use super::export::Format;
use super::place::ItemPath;
use super::stored::stored;
use super::{crumbs, next, tell};
use crate::api;
use crate::layout::{csrf, list, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};

/// How many entities a page shows.
const ENTITIES_SHOWN: &str = "50";
/// The most columns beside the keys; the page of an entity shows all it has.
const COLUMNS_MAX: usize = 20;
/// The most signs of a value in a column.
const VALUE_CHARS_MAX: usize = 120;
/// Refused lines of an import that its notice names.
const REFUSALS_NAMED: usize = 3;

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let filter = visit.query.get("filter").unwrap_or_default();
    let after = visit.query.get("after").unwrap_or_default();
    let query = [("filter", filter), ("after", after), ("limit", ENTITIES_SHOWN)];
    // A filter that is refused is shown with its error, to be mended.
    let answer = visit.api.get_with(&path.api(&["entities"]), &query).await;
    let (found, refused) = match answer {
        Ok(found) => (found, None),
        Err(refused) if filter.is_empty() => return Err(refused.into()),
        Err(refused) => (Value::Null, Some(refused)),
    };
    let entities = list(&found["entities"]);
    let more = found["next"].as_str();
    let more = more.map(|next| path.link(&[], &[("filter", filter), ("after", next)]));
    let above = [path.list()];
    let body = html! {
        (crumbs(&above, stored(&path.name)))
        h1 { "Table " (stored(&path.name)) }
        form.inline method="get" action=(path.link(&[], &[])) role="search" {
            div {
                label for="filter" { "Filter" }
                input #filter type="search" name="filter" value=(filter)
                    placeholder="PartitionKey eq 'a' and Size gt 3";
            }
            button.quiet type="submit" { "Filter" }
        }
        section.card aria-label="Entities" {
            @if let Some(refused) = &refused {
                div.notice.bad role="alert" { p { (refused.message) } }
                p.muted { "A filter compares properties with values: PartitionKey eq 'a' and (Size gt 3 or not \
                    (Done eq true)). Texts stand in single quotation marks, numbers of 64 bits end in L, dates \
                    are datetime'2024-05-01T00:00:00Z'." }
            }
            @else if entities.is_empty() && filter.is_empty() { p.muted { "There is no entity yet. Insert one \
                below, import JSON lines, or use a client: the connection strings are on the overview." } }
            @else if entities.is_empty() { p.muted { "No entity on this page meets the filter." } }
            @else { (rows(path, entities)) }
            (next(more))
            @if refused.is_none() {
                p.actions {
                    "Export"
                    @for format in Format::ALL {
                        a.button.quiet href=(path.link(&["export"], &[("filter", filter), ("format", format.word())])) download
                            aria-label={ "Export as " (format.title()) } { (format.title()) }
                    }
                }
            }
        }
        (insertion(visit, path))
        (importing(visit, path))
    };
    Outcome::page(format!("Table {}", path.name), Part::Explorer, body)
}

fn rows(path: &ItemPath, entities: &[Value]) -> Markup {
    let names: BTreeSet<&str> = entities
        .iter()
        .filter_map(Value::as_object)
        .flatten()
        .map(|(name, _)| name.as_str())
        .filter(|name| !name.contains("odata.") && !["PartitionKey", "RowKey"].contains(name))
        .collect();
    let shown: Vec<&str> = names.iter().copied().take(COLUMNS_MAX).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Entities" {
            table.rows {
                caption.hidden { "Entities" }
                thead {
                    tr {
                        th scope="col" { "PartitionKey" }
                        th scope="col" { "RowKey" }
                        @for name in &shown { th scope="col" { (stored(name)) } }
                    }
                }
                tbody {
                    @for entity in entities {
                        @let (partition, row) = (text(&entity["PartitionKey"]), text(&entity["RowKey"]));
                        @let keys = [("partition_key", partition), ("row_key", row)];
                        tr {
                            td.key { (stored(partition)) }
                            th.key scope="row" { a href=(path.link(&["entity"], &keys)) { (stored(row)) } }
                            @for name in &shown { td.key { (value(&entity[*name])) } }
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

fn insertion(visit: &Visit<'_>, path: &ItemPath) -> Markup {
    let example = "{\n  \"PartitionKey\": \"\",\n  \"RowKey\": \"\"\n}";
    html! {
        details.card {
            summary { "Insert an entity" }
            form method="post" action=(path.link(&["insert"], &[])) {
                (csrf(visit.session))
                label for="entity" { "Entity, as JSON" }
                textarea #entity name="entity" rows="8" spellcheck="false" required { (example) }
                p.muted { "Types that JSON does not tell are noted: \"Size@odata.type\": \"Edm.Int64\"." }
                button type="submit" { "Insert" }
            }
        }
    }
}

fn importing(visit: &Visit<'_>, path: &ItemPath) -> Markup {
    html! {
        details.card {
            summary { "Import a file" }
            form method="post" enctype="multipart/form-data" action=(path.link(&["import"], &[])) {
                (csrf(visit.session))
                label for="mode" { "Where an entity is there already" }
                select #mode name="mode" {
                    option value="insert" { "Refuse the line" }
                    option value="replace" { "Replace the entity" }
                    option value="merge" { "Merge into the entity" }
                }
                label for="lines" { "File of JSON lines, as Export writes it" }
                input #lines type="file" name="file" required;
                button type="submit" { "Import" }
            }
        }
    }
}

pub(super) async fn insert(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let body = Body::from(Bytes::from(visit.form.get("entity").to_owned()));
    let pieces = path.api(&["entities"]);
    tell(visit, Method::POST, &pieces, &[], HeaderMap::new(), body).await?;
    Outcome::done(path.link(&[], &[]), "The entity is inserted.")
}

pub(super) async fn import(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let chosen = visit.form.take_file().filter(|file| !file.name.is_empty());
    let chosen = chosen.ok_or_else(|| Fault::new(StatusCode::BAD_REQUEST, "choose a file"))?;
    let query = [("mode", visit.form.get("mode"))];
    let answer = visit.api.ask(Method::POST, &path.api(&["import"]), &query, chosen.body).await?;
    let done = api::read(answer).await?;
    let mut notice =
        format!("{} entities are written, {} lines refused.", done["written"], done["refused"]);
    for refusal in list(&done["refusals"]).iter().take(REFUSALS_NAMED) {
        notice.push_str(&format!(" Line {}: {}", refusal["line"], text(&refusal["message"])));
    }
    Outcome::done(path.link(&[], &[]), notice)
}
