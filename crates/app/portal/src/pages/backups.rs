//! Backups and restores: a partition as a file, and a file into a container again.

use lazuli_http::{Body, Method, StatusCode};
use maud::{Markup, html};
use serde_json::Value;

use super::explorer::file;
use crate::api;
use crate::figure;
use crate::layout::{csrf, list, live, number_table, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};
use crate::partitions::{Partition, path};

pub(crate) const PATH: &str = "/portal/backups";

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let restores = visit.api.get(&["v1", "restores"]).await?;
    let body = html! {
        h1 { "Backups" }
        section.card aria-labelledby="take" {
            h2 #take { "Take one" }
            p {
                "A backup is one partition at one moment, with a checksum. Its page has the button: "
                a href=(Part::Containers.path()) { "find the container" } ", then the partition. Whole "
                "containers and accounts are backed up by " code { "lazuli backup" } "."
            }
        }
        section.card aria-labelledby="restore" {
            h2 #restore { "Restore one" }
            form method="post" enctype="multipart/form-data" action=(PATH) {
                (csrf(visit.session))
                label for="into" { "Into the container; empty for the one that it is of" }
                input #into name="into" autocomplete="off" placeholder="tables/devstoreaccount1/copy";
                label {
                    input type="checkbox" name="replace" value="true";
                    " Delete what is there in its range of keys"
                }
                p.muted { "Without the tick it is refused where its range holds anything. The file is checked as \
                    a whole before anything is changed." }
                label for="file" { "File" }
                input #file type="file" name="file" required;
                button type="submit" { "Restore" }
            }
        }
        section.card aria-labelledby="restores" {
            h2 #restores { "Restores since the start" }
            (live("restores", restored(list(&restores["restores"]))))
        }
    };
    Outcome::page("Backups", Part::Backups, body)
}

fn restored(all: &[Value]) -> Markup {
    if all.is_empty() {
        return html! { p.muted { "Nothing was restored." } };
    }
    let rows = html! {
        @for one in all {
            @let phase = text(&one["phase"]);
            tr data-restore=(one["restore"]) {
                th scope="row" { (one["restore"]) }
                td.key { (text(&one["map"])) }
                td.key { (text(&one["backup_of"]["map"])) ", " (figure::moment(one["backup_of"]["taken_ms"].as_u64().unwrap_or(0))) }
                td {
                    span.state.good[phase == "done"].bad[phase == "failed"] { (phase) }
                    @if let Some(error) = one["error"]["message"].as_str() { " " (error) }
                }
                td.number { (figure::count(one["rows"].as_u64().unwrap_or(0))) }
                td.number { (figure::bytes(one["bytes"].as_u64().unwrap_or(0))) }
                td.number { (figure::bytes(one["bytes_expected"].as_u64().unwrap_or(0))) }
            }
        }
    };
    let numbers = ["Rows", "Bytes", "Of"];
    number_table("Restores", &["Restore", "Into", "Backup of", "Phase"], &numbers, rows)
}

/// A partition as a file.
pub(crate) async fn take(visit: &Visit<'_>, id: u64) -> Result {
    let number = id.to_string();
    let pieces = ["v1", "partitions", &number, "backup"];
    let answer = visit.api.ask(Method::GET, &pieces, &[], Body::empty()).await?;
    let disposition = format!("attachment; filename=\"partition-{id}.lazuli-backup\"");
    Ok(Outcome::File(file(answer, Some(&disposition))))
}

/// What the page of a partition says of its backup.
pub(crate) fn link(partition: &Partition) -> Markup {
    html! { a.button.quiet href={ (path(partition.id)) "/backup" } download { "Back it up" } }
}

pub(crate) async fn restore(visit: &Visit<'_>) -> Result {
    let chosen = visit.form.take_file().filter(|file| !file.name.is_empty());
    let chosen = chosen.ok_or_else(|| Fault::new(StatusCode::BAD_REQUEST, "choose a file"))?;
    let into = visit.form.get("into").trim();
    let replace = if visit.form.get("replace") == "true" { "true" } else { "false" };
    let query = [("into", into), ("replace", replace)];
    let answer = visit.api.ask(Method::POST, &["v1", "restores"], &query, chosen.body).await?;
    let begun = api::read(answer).await?;
    let words = format!("Restore {} into {} has begun.", begun["restore"], text(&begun["map"]));
    Outcome::done(PATH, words)
}
