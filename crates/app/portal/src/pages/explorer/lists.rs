//! The tables, containers or queues of an account.

use maud::html;
use serde_json::json;

use super::place::{Kind, link};
use super::stored::stored;
use super::{crumbs, next};
use crate::layout::{csrf, list, table, text};
use crate::page::{Outcome, Part, Result, Visit};

pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Tables => "Tables",
        Kind::Blobs => "Blobs",
        Kind::Queues => "Queues",
        Kind::Documents => "Documents",
    }
}

/// What one of them is called, and the field of the answer that they are in.
fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Tables => ("Table", "tables"),
        Kind::Blobs => ("Container", "containers"),
        Kind::Queues => ("Queue", "queues"),
        Kind::Documents => ("Container", "collections"),
    }
}

pub(super) async fn show(visit: &Visit<'_>, kind: Kind, account: &str) -> Result {
    let after = visit.query.get("after").unwrap_or_default();
    let pieces = ["v1", "explorer", kind.word(), account];
    let found = visit.api.get_with(&pieces, &[("after", after)]).await?;
    let (word, field) = words(kind);
    let items = list(&found[field]);
    let rows = html! {
        @for item in items {
            @let name = text(&item["name"]);
            tr { th.key scope="row" { a href=(link(&[kind.word(), account, name], &[])) { (stored(name)) } } }
        }
    };
    let more = found["next"].as_str().map(|next| link(&[kind.word(), account], &[("after", next)]));
    let body = html! {
        (crumbs(&[], html! { (account) ": " (title(kind)) }))
        h1 { (title(kind)) " of " (account) }
        section.card aria-label=(title(kind)) {
            @if items.is_empty() { p.muted { "There is none." } }
            @else { (table(title(kind), &[word], rows)) }
            (next(more))
        }
        form.inline method="post" action=(link(&["create", kind.word(), account], &[])) {
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
        }
    };
    Outcome::page(format!("{} of {account}", title(kind)), Part::Explorer, body)
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
