//! The audit log: who has changed what, the newest first.

use maud::{Markup, html};
use serde_json::Value;

use crate::figure;
use crate::layout::{list, number_table, text};
use crate::page::{Outcome, Part, Result, Visit};

const PATH: &str = "/portal/audit";
/// How many changes a page has.
const SHOWN: &str = "100";

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let before = visit.query.get("before").unwrap_or_default();
    let query = [("before", before), ("limit", SHOWN)];
    let found = visit.api.get_with(&["v1", "audit"], &query).await?;
    let changes = list(&found["changes"]);
    let body = html! {
        h1 { "Audit log" }
        p.muted { "Every change that was asked for, with the token (api) or in a session here (portal). It has \
            no keys and no stored data." }
        section.card aria-label="Changes" {
            @if changes.is_empty() { p.muted { "Nothing was changed yet. Whatever a command or a page changes is \
                written here before it is done." } }
            @else { (rows(changes)) }
            @if let Some(next) = found["next"].as_u64() {
                p { a.button.quiet href={ (PATH) "?before=" (next) } rel="next" { "Older" } }
            }
        }
    };
    Outcome::page("Audit log", Part::Audit, body)
}

fn rows(changes: &[Value]) -> Markup {
    let rows = html! {
        @for one in changes {
            @let outcome = text(&one["outcome"]);
            tr data-change=(one["number"]) {
                td.name { (figure::moment(one["time_ms"].as_u64().unwrap_or(0))) }
                td { (text(&one["via"])) @if let Some(node) = one["node"].as_str() { " " (node) } }
                th.name scope="row" { (text(&one["operation"])) }
                td.key { code { (text(&one["path"])) } }
                td.key { (parameters(&one["parameters"])) }
                td {
                    span.state.good[outcome == "done"].bad[outcome == "failed"] { (outcome) }
                    @if let Some(code) = one["code"].as_str() { " " (code) }
                }
                td.number { (one["took_ms"].as_u64().map_or("–".to_owned(), |ms| figure::micros(ms * 1_000))) }
            }
        }
    };
    let heads = ["When (UTC)", "Way", "Operation", "Path", "Parameters", "Outcome"];
    number_table("Changes", &heads, &["Took"], rows)
}

fn parameters(parameters: &Value) -> String {
    let one = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    let all: Vec<String> = parameters.as_object().into_iter().flatten().map(one).collect();
    all.join(", ")
}
