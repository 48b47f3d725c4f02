//! The tables, containers or queues of an account.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::place::{Kind, link};
use super::stored::stored;
use super::{crumbs, next};
use crate::figure;
use crate::layout::{csrf, list, number_table, table, text};
use crate::page::{Outcome, Part, Result, Visit};
use crate::partitions::{Partition, of_map};

/// Of how many items of a list it is told what they hold.
const MEASURED_MAX: usize = 50;

pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Tables => "Tables",
        Kind::Blobs => "Blobs",
        Kind::Queues => "Queues",
        Kind::Documents => "Documents",
        Kind::Indexes => "Indexes",
    }
}

/// What one of them is called, and the field of the answer that they are in.
fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Tables => ("Table", "tables"),
        Kind::Blobs => ("Container", "containers"),
        Kind::Queues => ("Queue", "queues"),
        Kind::Documents => ("Container", "collections"),
        Kind::Indexes => ("Index", "indexes"),
    }
}

pub(super) async fn show(visit: &Visit<'_>, kind: Kind, account: &str) -> Result {
    let after = visit.query.get("after").unwrap_or_default();
    let pieces = ["v1", "explorer", kind.word(), account];
    // Not all kinds come in pages.
    let query: &[(&str, &str)] = if after.is_empty() { &[] } else { &[("after", after)] };
    let found = visit.api.get_with(&pieces, query).await?;
    let (word, field) = words(kind);
    let items = list(&found[field]);
    let figures = figures(visit, kind, account, items).await?;
    let rows = html! {
        @for (item, held) in items.iter().zip(&figures) {
            @let name = text(&item["name"]);
            tr {
                th.key scope="row" { a href=(link(&[kind.word(), account, name], &[])) { (stored(name)) } }
                @if let Some(held) = held { (held) }
            }
        }
    };
    let more = found["next"].as_str().map(|next| link(&[kind.word(), account], &[("after", next)]));
    let body = html! {
        (crumbs(&[], html! { (account) ": " (title(kind)) }))
        h1 { (title(kind)) " of " (account) }
        section.card aria-label=(title(kind)) {
            @if items.is_empty() { p.muted { (begin(kind)) } }
            @else if figures.iter().all(Option::is_none) { (table(title(kind), &[word], rows)) }
            @else { (number_table(title(kind), &[word], heads(kind), rows)) }
            (next(more))
        }
        @if kind != Kind::Indexes { form.inline method="post" action=(link(&["create", kind.word(), account], &[])) {
            (csrf(visit.session))
            div {
                label for="new" { "New " (word.to_lowercase()) }
                input #new name="name" required autocomplete="off"
                    placeholder=[(kind == Kind::Documents).then_some("database/container")];
            }
            @if kind == Kind::Documents {
                div {
                    label for="key" { "Partition key" }
                    input #key name="key" required autocomplete="off" placeholder="/customer";
                }
                div {
                    label for="throughput" { "Request units a second" }
                    input #throughput name="throughput" type="number" min="400" step="100" value="400";
                }
            }
            button type="submit" { "Create" }
        } }
    };
    Outcome::page(format!("{} of {account}", title(kind)), Part::Explorer, body)
}

/// How to begin where there is nothing yet.
fn begin(kind: Kind) -> &'static str {
    match kind {
        Kind::Tables => {
            "There is no table yet. Create one below, or import a CSV file: lazuli table import --create."
        }
        Kind::Blobs => {
            "There is no container yet. Create one below; then files are uploaded on its page or by lazuli blob cp."
        }
        Kind::Queues => {
            "There is no queue yet. Create one below; then messages are put on its page or by lazuli queue put."
        }
        Kind::Documents => {
            "There is no container yet. Create one below with the path of its partition key."
        }
        Kind::Indexes => {
            "There is no index yet. lazuli search create FILE makes one of a definition, and lazuli search load \
                fills it."
        }
    }
}

fn heads(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Indexes => &["Documents", "Storage"],
        _ => &["Items", "Storage", "Reads", "Writes"],
    }
}

/// What each of these holds, as cells of a table: of an index its documents, of a table what its partitions hold and were
/// asked for. Nothing where several of them share a map.
async fn figures(
    visit: &Visit<'_>,
    kind: Kind,
    account: &str,
    items: &[Value],
) -> Result<Vec<Option<Markup>>> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let mut all = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let name = text(&item["name"]);
        all.push(match kind {
            Kind::Indexes => Some(html! {
                td.number { (figure::count(number(&item["documents"]))) }
                td.number { (figure::bytes(number(&item["bytes"]))) }
            }),
            Kind::Tables | Kind::Documents if at < MEASURED_MAX => {
                let map = format!("{}/{account}/{name}", kind.word());
                of_map(visit.api, &map).await.ok().map(|(partitions, _)| {
                    let sum = |of: fn(&Partition) -> u64| partitions.iter().map(of).sum::<u64>();
                    html! {
                        td.number { (figure::count(sum(|one| one.items))) }
                        td.number { (figure::bytes(sum(|one| one.bytes))) }
                        td.number { (figure::count(sum(|one| one.reads))) }
                        td.number { (figure::count(sum(|one| one.writes))) }
                    }
                })
            }
            Kind::Tables | Kind::Blobs | Kind::Queues | Kind::Documents => None,
        });
    }
    Ok(all)
}

pub(super) async fn create(visit: &Visit<'_>, kind: Kind, account: &str) -> Result {
    let name = visit.form.get("name");
    let mut new = json!({ "name": name });
    if kind == Kind::Documents {
        new["key"] = json!(visit.form.get("key"));
        new["throughput"] = json!(visit.form.get("throughput").parse::<u64>().ok());
    }
    visit.api.post(&["v1", "explorer", kind.word(), account], &new).await?;
    let to = link(&[kind.word(), account, name], &[]);
    Outcome::done(to, format!("{} {name} is there.", words(kind).0))
}
