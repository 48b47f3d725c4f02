//! Shards: where they are, what they hold, what is asked of them, and what can be done to them.

mod change;
mod place;

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::Bars;
use crate::figure;
use crate::layout::{list, live, number_table, state, text};
use crate::page::{Outcome, Part, Result, Visit};
use crate::shards::Colours;
pub(crate) use place::ShardsPage;
use place::{ShardAction, link};

/// The one table of these pages. A form that was sent makes the change that its page describes.
pub(crate) async fn show(visit: &Visit<'_>, page: &ShardsPage, sent: bool) -> Result {
    match page {
        ShardsPage::List => all(visit).await,
        ShardsPage::Add if sent => change::add(visit).await,
        ShardsPage::Add => change::preview_add(visit).await,
        ShardsPage::One(name, action) if sent => change::make(visit, name, *action).await,
        ShardsPage::One(name, action) => change::preview(visit, name, *action).await,
    }
}

async fn all(visit: &Visit<'_>) -> Result {
    let shards = visit.api.get(&["v1", "shards"]).await?;
    let overview = visit.api.get(&["v1", "overview"]).await?;
    let colours = Colours::read(&shards);
    let rows: Vec<Shard<'_>> = list(&shards["shards"])
        .iter()
        .map(|shard| {
            let of = |sums: &&Value| sums["name"] == shard["name"];
            Shard { shard, sums: list(&overview["shards"]).iter().find(of) }
        })
        .collect();
    let bars = |title, figure, print| bars(title, &rows, &colours, figure, print);
    let body = html! {
        h1 { "Shards" }
        div.columns {
            section.card aria-labelledby="storage" {
                h2 #storage { "Storage per shard" }
                (live("storage", bars("Storage per shard", |one| one.sum("bytes"), figure::bytes)))
            }
            section.card aria-labelledby="requests" {
                h2 #requests { "Requests per shard" }
                (live("requests", bars("Requests per shard", |one| one.requests(), figure::count)))
            }
        }
        section.card aria-labelledby="shards" {
            h2 #shards { "All shards" }
            (live("shards", table(&rows, &colours)))
        }
        (change::new_shard())
    };
    Outcome::page("Shards", Part::Shards, body)
}

/// What the API says of one shard in two places.
struct Shard<'a> {
    shard: &'a Value,
    sums: Option<&'a Value>,
}

impl Shard<'_> {
    fn name(&self) -> &str {
        text(&self.shard["name"])
    }

    fn sum(&self, name: &str) -> u64 {
        self.sums.and_then(|sums| sums[name].as_u64()).unwrap_or(0)
    }

    fn requests(&self) -> u64 {
        self.sum("reads").saturating_add(self.sum("writes"))
    }

    /// The changes that make sense in its state.
    fn actions(&self) -> &'static [(ShardAction, &'static str)] {
        const REMOVE: (ShardAction, &str) = (ShardAction::Remove, "Remove");
        match self.shard["state"] == "draining" {
            true => &[(ShardAction::Fill, "Fill again"), REMOVE],
            false => &[(ShardAction::Drain, "Drain"), REMOVE],
        }
    }
}

fn bars(
    title: &str,
    rows: &[Shard<'_>],
    colours: &Colours,
    figure: fn(&Shard<'_>) -> u64,
    print: fn(u64) -> String,
) -> Markup {
    let values: Vec<u64> = rows.iter().map(figure).collect();
    let names: Vec<String> = rows.iter().map(|one| one.name().to_owned()).collect();
    let colours: Vec<usize> = rows.iter().map(|one| colours.get(one.name())).collect();
    let (axis, values, names) = ("shards", &values, &names);
    Bars { title, axis, values, names, colours: Some(&colours), print }.draw()
}

fn table(rows: &[Shard<'_>], colours: &Colours) -> Markup {
    let body = html! {
        @for one in rows {
            tr data-shard=(one.name()) {
                th.name scope="row" { (colours.name(one.name())) }
                td {
                    (state(text(&one.shard["state"])))
                    @if let Some(error) = one.shard["error"].as_str() { " " (error) }
                }
                td { (text(&one.shard["region"])) }
                td.key { (labels(&one.shard["labels"])) }
                td.name {
                    @for (action, words) in one.actions() {
                        a href=(link(one.name(), *action)) aria-label={ (words) " " (one.name()) } { (words) } " "
                    }
                }
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
        &["Shard", "State", "Region", "Labels", "Change"],
        &["Partitions", "Items", "Storage", "Reads", "Writes", "Throttled"],
        body,
    )
}

fn labels(labels: &Value) -> String {
    let pair = |(name, value): (&String, &Value)| format!("{name}={}", text(value));
    let all: Vec<String> = labels.as_object().into_iter().flatten().map(pair).collect();
    if all.is_empty() { "–".to_owned() } else { all.join(", ") }
}
