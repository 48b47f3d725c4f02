//! The blobs of a container, by prefix as if in folders, and a way to upload one.

use lazuli_http::{HeaderMap, Method, StatusCode};
use maud::{Markup, html};

use super::place::ItemPath;
use super::stored::stored;
use super::{crumbs, header, next, tell};
use crate::figure;
use crate::layout::{csrf, list, table, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};

/// Separates folders in the names of blobs.
const DELIMITER: &str = "/";

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let prefix = visit.query.get("prefix").unwrap_or_default();
    let after = visit.query.get("after").unwrap_or_default();
    let query = [("prefix", prefix), ("delimiter", DELIMITER), ("after", after)];
    let found = visit.api.get_with(&path.api(&["list"]), &query).await?;
    let (folders, blobs) = (list(&found["prefixes"]), list(&found["blobs"]));
    let rows = html! {
        @for folder in folders.iter().map(text) {
            tr {
                th.key scope="row" {
                    a href=(path.link(&[], &[("prefix", folder)])) { (stored(behind(folder, prefix))) }
                }
                td { "folder" } td {} td {}
            }
        }
        @for blob in blobs {
            @let name = text(&blob["name"]);
            tr {
                th.key scope="row" {
                    a href=(path.link(&["blob"], &[("name", name)])) { (stored(behind(name, prefix))) }
                }
                td { (stored(text(&blob["content_type"]))) }
                td.number { (figure::bytes(blob["bytes"].as_u64().unwrap_or(0))) }
                td { (text(&blob["changed"])) }
            }
        }
    };
    let more = found["next"].as_str();
    let more = more.map(|next| path.link(&[], &[("prefix", prefix), ("after", next)]));
    let body = html! {
        (crumbs(&[path.list()], stored(&path.name)))
        h1 { "Container " (stored(&path.name)) }
        (folders_above(path, prefix))
        section.card aria-label="Blobs" {
            @if folders.is_empty() && blobs.is_empty() { p.muted { "No blob on this page." } }
            @else { (table("Blobs", &["Name", "Type", "Size", "Changed"], rows)) }
            (next(more))
        }
        (uploading(visit, path, prefix))
    };
    Outcome::page(format!("Container {}", path.name), Part::Explorer, body)
}

/// A name without the prefix that it begins with, which stands above the list.
fn behind<'n>(name: &'n str, prefix: &str) -> &'n str {
    name.strip_prefix(prefix).filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// The folders that the prefix goes through, each a link.
fn folders_above(path: &ItemPath, prefix: &str) -> Markup {
    let ends = prefix.match_indices(DELIMITER).map(|(at, sign)| at + sign.len());
    let mut begin = 0;
    let folders: Vec<(&str, &str)> = ends
        .map(|end| {
            let folder = (&prefix[begin..end], &prefix[..end]);
            begin = end;
            folder
        })
        .collect();
    html! {
        nav.crumbs aria-label="Folders" {
            ol {
                li { a href=(path.link(&[], &[])) { "All blobs" } }
                @for (name, upto) in folders {
                    li { a href=(path.link(&[], &[("prefix", upto)])) { (stored(name)) } }
                }
            }
        }
    }
}

fn uploading(visit: &Visit<'_>, path: &ItemPath, prefix: &str) -> Markup {
    html! {
        details.card {
            summary { "Upload a blob" }
            form method="post" enctype="multipart/form-data"
                action=(path.link(&["upload"], &[("prefix", prefix)])) {
                (csrf(visit.session))
                label for="name" {
                    "Name" @if !prefix.is_empty() { ", behind " (stored(prefix)) }
                }
                input #name name="name" autocomplete="off" aria-describedby="name-hint";
                p.muted #name-hint { "Left empty, it is that of the file." }
                label { input type="checkbox" name="overwrite" value="true"; " Replace one that is there" }
                label for="file" { "File" }
                input #file type="file" name="file" required;
                button type="submit" { "Upload" }
            }
        }
    }
}

pub(super) async fn upload(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let chosen = visit.form.take_file().filter(|file| !file.name.is_empty());
    let chosen = chosen.ok_or_else(|| Fault::new(StatusCode::BAD_REQUEST, "choose a file"))?;
    let prefix = visit.query.get("prefix").unwrap_or_default();
    let own = visit.form.get("name");
    let name = format!("{prefix}{}", if own.is_empty() { &chosen.name } else { own });
    let overwrite = if visit.form.get("overwrite") == "true" { "true" } else { "false" };
    let query = [("name", name.as_str()), ("overwrite", overwrite)];
    let headers = match chosen.content_type.as_str() {
        "" => HeaderMap::new(),
        content_type => header("content-type", content_type)?,
    };
    tell(visit, Method::PUT, &path.api(&["blob"]), &query, headers, chosen.body).await?;
    let to = path.link(&["blob"], &[("name", &name)]);
    Outcome::done(to, "The blob is stored.")
}
