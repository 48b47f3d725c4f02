//! One blob: a preview, its properties, metadata and tags, the whole of it as a file, and its end.

use bytes::Bytes;
use lazuli_http::{Body, HeaderMap, Method};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::place::ItemPath;
use super::stored::{stored, whole};
use super::{crumbs, file as sent, header, required, sure, tell};
use crate::figure;
use crate::layout::{csrf, text};
use crate::page::{Outcome, Part, Result, Visit};

/// The properties that are shown, with the names that people know.
const PROPERTIES: [(&str, &str); 13] = [
    ("kind", "Kind"),
    ("content_type", "Content type"),
    ("content_encoding", "Content encoding"),
    ("content_language", "Content language"),
    ("content_disposition", "Content disposition"),
    ("cache_control", "Cache control"),
    ("content_md5", "MD5"),
    ("created", "Created"),
    ("changed", "Changed"),
    ("etag", "ETag"),
    ("tier", "Tier"),
    ("lease", "Lease"),
    ("copy_status", "Copy"),
];

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let name = required(visit, "name")?;
    let query = [("name", name)];
    let blob = visit.api.get_with(&path.api(&["blob"]), &query).await?;
    let preview = visit.api.get_with(&path.api(&["preview"]), &query).await?;
    let above = [path.list(), (path.name.as_str(), path.link(&[], &[]))];
    let body = html! {
        (crumbs(&above, stored(name)))
        h1 { "Blob " (stored(name)) }
        div.actions {
            a.button href=(path.link(&["content"], &query)) download {
                "Download " (figure::bytes(blob["bytes"].as_u64().unwrap_or(0)))
            }
        }
        section.card aria-labelledby="preview" {
            h2 #preview { "Preview" }
            (previewed(path, name, &preview))
        }
        section.card aria-labelledby="properties" {
            h2 #properties { "Properties" }
            (facts(PROPERTIES.iter().filter_map(|(field, title)| {
                Some((*title, blob[*field].as_str()?))
            })))
        }
        @if let Some(metadata) = blob["metadata"].as_object().filter(|all| !all.is_empty()) {
            section.card aria-labelledby="metadata" {
                h2 #metadata { "Metadata" }
                (facts(metadata.iter().map(|(name, value)| (name.as_str(), text(value)))))
            }
        }
        (tagging(visit, path, name, &blob["tags"]))
        form.card method="post" action=(path.link(&["delete"], &query)) {
            (csrf(visit.session))
            input type="hidden" name="etag" value=(text(&blob["etag"]));
            label { input type="checkbox" name="sure" value="yes" required; " Delete this blob and its snapshots" }
            button.danger type="submit" { "Delete" }
        }
    };
    Outcome::page(format!("Blob {name}"), Part::Explorer, body)
}

fn previewed(path: &ItemPath, name: &str, preview: &Value) -> Markup {
    let (bytes, shown) =
        (preview["bytes"].as_u64().unwrap_or(0), preview["shown"].as_u64().unwrap_or(0));
    html! {
        @match text(&preview["kind"]) {
            "image" => img.preview src=(path.link(&["image"], &[("name", name)])) alt={ "The image " (name) };,
            _ => {
                @if bytes == 0 { p.muted { "The blob is empty." } }
                @else { pre.preview tabindex="0" aria-label="The beginning of the blob" { (whole(text(&preview["text"]))) } }
                @if shown < bytes {
                    p.muted { "These are the first " (figure::bytes(shown)) " of " (figure::bytes(bytes)) "." }
                }
            }
        }
    }
}

fn facts<'f>(facts: impl Iterator<Item = (&'f str, &'f str)>) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts { div { dt { (stored(name)) } dd { (stored(value)) } } }
        }
    }
}

/// Tags are edited as lines of `key=value`.
fn tagging(visit: &Visit<'_>, path: &ItemPath, name: &str, tags: &Value) -> Markup {
    let lines: Vec<String> = tags
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    html! {
        form.card method="post" action=(path.link(&["tags"], &[("name", name)])) {
            (csrf(visit.session))
            label for="tags" { "Tags, a line for each: key=value" }
            textarea #tags name="tags" rows="4" spellcheck="false" { (lines.join("\n")) }
            button.quiet type="submit" { "Set tags" }
        }
    }
}

/// The whole blob, or the image that it is, as the admin API sends it.
pub(super) async fn file(visit: &Visit<'_>, path: &ItemPath, what: &str) -> Result {
    let query = [("name", required(visit, "name")?)];
    let answer = visit.api.ask(Method::GET, &path.api(&[what]), &query, Body::empty()).await?;
    Ok(Outcome::File(sent(answer, None)))
}

pub(super) async fn tags(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let query = [("name", required(visit, "name")?)];
    let lines = visit.form.get("tags").lines().map(str::trim).filter(|line| !line.is_empty());
    let pair = |line: &str| {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        (key.to_owned(), Value::from(value))
    };
    let tags: Map<String, Value> = lines.map(pair).collect();
    let body = Body::from(Bytes::from(json!({ "tags": tags }).to_string()));
    tell(visit, Method::PUT, &path.api(&["tags"]), &query, HeaderMap::new(), body).await?;
    Outcome::done(path.link(&["blob"], &query), "The tags are set.")
}

/// Only if the blob still has the ETag that the page showed.
pub(super) async fn delete(visit: &Visit<'_>, path: &ItemPath) -> Result {
    sure(visit)?;
    let query = [("name", required(visit, "name")?)];
    let etag = header("if-match", visit.form.get("etag"))?;
    tell(visit, Method::DELETE, &path.api(&["blob"]), &query, etag, Body::empty()).await?;
    Outcome::done(path.link(&[], &[]), "The blob is deleted.")
}
