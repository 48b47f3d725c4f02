//! All containers, with a way to find one by its name.

use lazuli_http::uri::percent_encode;
use maud::html;

use crate::layout::{list, live, table, text};
use crate::page::{Outcome, Part, Result, Visit};

pub(crate) const PATH: &str = "/portal/containers";

/// The most containers on one page; a longer list is cut by a part of the name.
const SHOWN_MAX: usize = 500;

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let wanted = visit.query.get("name").unwrap_or_default();
    let most = SHOWN_MAX.to_string();
    let query = [("name", wanted), ("limit", most.as_str())];
    let maps = visit.api.get_with(&["v1", "maps"], &query).await?;
    let found = list(&maps["maps"]);
    let rows = html! {
        @for map in found {
            tr {
                th.key scope="row" { a href=(path(text(&map["name"]))) { (text(&map["name"])) } }
                td { (text(&map["kind"])) }
                td { (list(&map["key"]).iter().map(text).collect::<Vec<_>>().join(", ")) }
                td { (text(&map["schema"])) }
                td.number { @match map["partitions"].as_str() {
                    Some(words) => (words),
                    None => (map["partitions"]),
                } }
            }
        }
    };
    let body = html! {
        h1 { "Containers" }
        form.inline method="get" action=(PATH) role="search" {
            div {
                label for="name" { "Part of the name" }
                input #name type="search" name="name" value=(wanted);
            }
            button.quiet type="submit" { "Find" }
        }
        section.card aria-label="Containers" {
            (live("containers", html! {
                @if found.is_empty() { p.muted { "There is no such container." } }
                @else { (table("Containers", &["Container", "Map", "Key", "Schema", "Partitions"], rows)) }
                @if !maps["next"].is_null() {
                    p.muted { "These are the first " (SHOWN_MAX) "; a part of the name finds the others." }
                }
            }))
        }
    };
    Outcome::page("Containers", Part::Containers, body)
}

/// The page of a container. Its name is one escaped piece of the path.
pub(crate) fn path(name: &str) -> String {
    format!("{PATH}/{}", percent_encode(name))
}
