//! Shards: where they are, what they hold, what is asked of them.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::Bars;
use crate::figure;
use crate::layout::{list, live, number_table, state, text};
use crate::page::{Outcome, Part, Result, Visit};

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let shards = visit.api.get(&["v1", "shards"]).await?;
    let overview = visit.api.get(&["v1", "overview"]).await?;
    let rows: Vec<Shard<'_>> = list(&shards["shards"])
        .iter()
        .map(|shard| {
            let of = |sums: &&Value| sums["name"] == shard["name"];
            Shard { shard, sums: list(&overview["shards"]).iter().find(of) }
        })
        .collect();
    let body = html! {
        h1 { "Shards" }
        div.columns {
            section.card aria-labelledby="storage" {
                h2 #storage { "Storage per shard" }
                (live("storage", bars("Storage per shard", &rows, |one| one.sum("bytes"), figure::bytes)))
            }
            section.card aria-labelledby="requests" {
                h2 #requests { "Requests per shard" }
                (live("requests", bars("Requests per shard", &rows, |one| one.requests(), figure::count)))
            }
        }
        section.card aria-labelledby="shards" {
            h2 #shards { "All shards" }
            (live("shards", table(&rows)))
        }
    };
    Outcome::page("Shards", Part::Shards, body)
}

/// What the API says of one shard in two places.
struct Shard<'a> {
    shard: &'a Value,
    sums: Option<&'a Value>,
}

impl Shard<'_> {
    fn sum(&self, name: &str) -> u64 {
        self.sums.and_then(|sums| sums[name].as_u64()).unwrap_or(0)
    }

    fn requests(&self) -> u64 {
        self.sum("reads").saturating_add(self.sum("writes"))
    }
}

fn bars(
    title: &str,
    rows: &[Shard<'_>],
    figure: fn(&Shard<'_>) -> u64,
    print: fn(u64) -> String,
) -> Markup {
    let values: Vec<u64> = rows.iter().map(figure).collect();
    Bars { title, values: &values, print }.draw()
}

fn table(rows: &[Shard<'_>]) -> Markup {
    let body = html! {
        @for one in rows {
            tr data-shard=(text(&one.shard["name"])) {
                th scope="row" { (text(&one.shard["name"])) }
                td {
                    (state(text(&one.shard["state"])))
                    @if let Some(error) = one.shard["error"].as_str() { " " (error) }
                }
                td { (text(&one.shard["region"])) }
                td.key { (labels(&one.shard["labels"])) }
                td.number { (one.shard["partitions"]) }
                td.number { (figure::count(one.sum("items"))) }
                td.number { (figure::bytes(one.sum("bytes"))) }
                td.number { (figure::count(one.sum("reads"))) }
                td.number { (figure::count(one.sum("writes"))) }
                td.number { (figure::count(one.sum("throttled"))) }
            }
        }
    };
    number_table(
        "All shards",
        &["Shard", "State", "Region", "Labels"],
        &["Partitions", "Items", "Storage", "Reads", "Writes", "Throttled"],
        body,
    )
}

fn labels(labels: &Value) -> String {
    let pair = |(name, value): (&String, &Value)| format!("{name}={}", text(value));
    let all: Vec<String> = labels.as_object().into_iter().flatten().map(pair).collect();
    if all.is_empty() { "–".to_owned() } else { all.join(", ") }
}
