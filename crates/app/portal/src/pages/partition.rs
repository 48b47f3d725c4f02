//! One partition: what it holds, what was asked of it over the last day, its hottest keys, and what can be done to it.

use maud::{Markup, html};
use serde_json::Value;

use super::change::PartitionChange;
use crate::chart::{Line, Lines};
use crate::figure;
use crate::layout::{fact, list, live, number_table, state};
use crate::page::{Outcome, Part, Result, Visit};
use crate::partitions::Partition;
use crate::shards::Colours;

/// The steps in which the history is kept, and how far back each goes.
const STEPS: [(&str, &str); 3] = [("10s", "10 minutes"), ("1m", "2 hours"), ("10m", "1 day")];

pub(crate) async fn show(visit: &Visit<'_>, id: u64) -> Result {
    let number = id.to_string();
    let shown = visit.api.get(&["v1", "partitions", &number]).await?;
    let partition = Partition::read(&shown);
    let asked = visit.query.get("step").unwrap_or_default();
    let step = STEPS.iter().find(|(step, _)| *step == asked).unwrap_or(&STEPS[0]).0;
    let pieces = ["v1", "partitions", number.as_str(), "history"];
    let history = visit.api.get_with(&pieces, &[("step", step)]).await?;
    let colours = Colours::of(visit.api).await?;
    let body = html! {
        p.crumbs {
            a href="/portal/containers" { "Containers" } " › "
            a href=(super::containers::path(&partition.map)) { (partition.map) }
        }
        h1 { "Partition " (id) }
        (live("facts", facts(&partition, &colours)))
        section.card aria-labelledby="act" {
            h2 #act { "Change it" }
            div.actions {
                @for change in PartitionChange::ALL {
                    a.button.quiet href={ (partition.path()) "/" (change.word()) } { (change.title()) }
                }
                (super::backups::link(&partition))
            }
        }
        section.card aria-labelledby="history" {
            h2 #history { "History" }
            p.actions {
                "The last"
                @for (one, words) in STEPS {
                    a.button.quiet href={ (partition.path()) "?step=" (one) }
                        aria-current=[(one == step).then_some("true")] { (words) }
                }
            }
            (live("history", charts(&history)))
        }
        section.card aria-labelledby="hottest" {
            h2 #hottest { "Hottest keys" }
            (live("hottest", hottest(&partition)))
        }
    };
    Outcome::page(format!("Partition {id}"), Part::Containers, body)
}

fn facts(one: &Partition, colours: &Colours) -> Markup {
    html! {
        dl.facts.card {
            (fact("State", state(&one.state)))
            (fact("Shard", colours.name(&one.shard)))
            (fact("Keys", html! { (one.keys()) }))
            (fact("Epoch", html! { (one.epoch) }))
            (fact("Items", html! { (figure::count(one.items)) }))
            (fact("Stored", html! { (figure::bytes(one.bytes)) }))
            (fact("Reads", html! { (figure::count(one.reads)) }))
            (fact("Writes", html! { (figure::count(one.writes)) }))
            (fact("Throttled", html! { (figure::count(one.throttled)) }))
        }
    }
}

fn charts(history: &Value) -> Markup {
    let points = list(&history["points"]);
    if points.is_empty() {
        return html! { p.muted { "Nothing is known yet; the first figures come after ten seconds." } };
    }
    let step_s = (history["step_ms"].as_u64().unwrap_or(10_000) / 1_000).max(1);
    let series = |name: &str| -> Vec<f64> {
        points.iter().map(|point| point[name].as_f64().unwrap_or(0.0)).collect()
    };
    let per_second = |name: &str| {
        series(name).into_iter().map(|count| count / step_s as f64).collect::<Vec<_>>()
    };
    let (bytes, throttled) = (series("bytes"), per_second("throttled"));
    let (reads, writes) = (per_second("reads"), per_second("writes"));
    let (read_us, write_us) = (series("read_p99_us"), series("write_p99_us"));
    let rate: fn(f64) -> String = figure::rate;
    let size: fn(f64) -> String = |value| figure::bytes(value as u64);
    let time: fn(f64) -> String = |value| figure::micros(value as u64);
    let requests =
        [Line { name: "Reads", values: &reads }, Line { name: "Writes", values: &writes }];
    let latency =
        [Line { name: "Reads", values: &read_us }, Line { name: "Writes", values: &write_us }];
    html! {
        div.columns {
            (chart("Requests", &requests, step_s, rate))
            (chart("Size", &[Line { name: "Stored", values: &bytes }], step_s, size))
            (chart("Latency (99th percentile)", &latency, step_s, time))
            (chart("Throttled", &[Line { name: "Throttled", values: &throttled }], step_s, rate))
        }
        details #figures {
            summary { "The same in figures" }
            (figures(points, step_s))
        }
    }
}

fn chart(title: &str, lines: &[Line<'_>], step_s: u64, print: fn(f64) -> String) -> Markup {
    html! {
        div {
            h3 { (title) }
            (Lines { title, lines, step_s, print }.draw())
            @if lines.len() > 1 {
                p.muted {
                    span.key-first aria-hidden="true" {} " " (lines[0].name) " "
                    span.key-second aria-hidden="true" {} " " (lines[1].name)
                }
            }
        }
    }
}

fn figures(points: &[Value], step_s: u64) -> Markup {
    let number = |point: &Value, name: &str| point[name].as_u64().unwrap_or(0);
    let body = html! {
        @for (at, point) in points.iter().enumerate().rev() {
            tr {
                th scope="row" { (figure::seconds((points.len() - 1 - at) as u64 * step_s)) " ago" }
                td.number { (figure::bytes(number(point, "bytes"))) }
                td.number { (figure::count(number(point, "reads"))) }
                td.number { (figure::count(number(point, "writes"))) }
                td.number { (figure::micros(number(point, "read_p99_us"))) }
                td.number { (figure::micros(number(point, "write_p99_us"))) }
                td.number { (figure::count(number(point, "throttled"))) }
            }
        }
    };
    let heads = ["Size", "Reads", "Writes", "Slow read", "Slow write", "Throttled"];
    number_table("History in figures", &["When"], &heads, body)
}

fn hottest(one: &Partition) -> Markup {
    if one.hottest.is_empty() {
        return html! { p.muted { "No key stands out." } };
    }
    let body = html! {
        @for hot in &one.hottest {
            tr {
                th.key scope="row" { code { (hot.key) } }
                td.number { (figure::count(hot.at_least)) }
                td.number { (figure::count(hot.at_most)) }
                td.number { (figure::share(hot.at_least, one.requests())) }
            }
        }
    };
    let heads = ["Requests, at least", "At most", "Share, at least"];
    number_table("Hottest keys", &["Key"], &heads, body)
}
