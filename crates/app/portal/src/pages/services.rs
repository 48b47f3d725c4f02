//! The services, and a page for each: its requests by operation and outcome, how long they take, errors, connections, bytes,
//! and whatever it tells of itself. None is named here: the admin API says which there are and what each has to tell.

use lazuli_http::uri::percent_encode;
use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Line, Lines};
use crate::figure;
use crate::layout::{fact, list, live, number_table, text, tile};
use crate::page::{Outcome, Part, Result, Visit};
use crate::shards::Colours;

pub(crate) const PATH: &str = "/portal/services";

/// The steps in which figures are kept, and how far back each goes.
const STEPS: [(&str, &str); 3] = [("10s", "10 minutes"), ("1m", "2 hours"), ("10m", "1 day")];

pub(crate) fn path(name: &str) -> String {
    format!("{PATH}/{}", percent_encode(name))
}

pub(crate) async fn index(visit: &Visit<'_>) -> Result {
    let overview = visit.api.get(&["v1", "overview"]).await?;
    let status = visit.api.get(&["v1", "status"]).await?;
    let left_out = status["not_started"].as_object();
    let body = html! {
        h1 { "Services" }
        section.card aria-label="Services" { (live("services", table(&overview))) }
        @if left_out.is_some_and(|all| !all.is_empty()) {
            section.card.warn aria-labelledby="left-out" {
                h2 #left-out { "Not started" }
                ul {
                    @for (name, reason) in left_out.into_iter().flatten() { li { strong { (name) } ": " (text(reason)) } }
                }
            }
        }
    };
    Outcome::page("Services", Part::Services, body)
}

/// All services, each with a link to its page.
pub(crate) fn table(overview: &Value) -> Markup {
    let rows = html! {
        @for service in list(&overview["services"]) {
            @let name = text(&service["name"]);
            tr {
                th.name scope="row" { a href=(path(name)) { (service["title"].as_str().unwrap_or(name)) } }
                td { @for url in list(&service["urls"]) { code { (text(url)) } " " } }
                td.number { (figure::rate(service["requests_per_second"].as_f64().unwrap_or(0.0))) }
                td.number { (figure::count(service["requests"].as_u64().unwrap_or(0))) }
                td.number { (figure::count(service["refused"].as_u64().unwrap_or(0))) }
                td.number { (figure::count(service["failed"].as_u64().unwrap_or(0))) }
            }
        }
    };
    let numbers = ["Rate", "Requests", "Refused", "Failed"];
    number_table("Services", &["Service", "Endpoint"], &numbers, rows)
}

pub(crate) async fn show(visit: &Visit<'_>, name: &str) -> Result {
    let asked = visit.query.get("step").unwrap_or_default();
    let step = STEPS.iter().find(|(step, _)| *step == asked).unwrap_or(&STEPS[0]).0;
    let front = visit.api.get_with(&["v1", "fronts", name], &[("step", step)]).await?;
    let colours = Colours::of(visit.api).await?;
    let title = text(&front["title"]);
    let body = html! {
        p.crumbs { a href=(PATH) { "Services" } }
        h1 { (title) }
        p { @for url in list(&front["urls"]) { code { (text(url)) } " " } }
        (live("counts", counts(&front)))
        section.card aria-labelledby="time" {
            h2 #time { "Over time" }
            p.actions {
                "The last"
                @for (one, words) in STEPS {
                    a.button.quiet href={ (path(name)) "?step=" (one) }
                        aria-current=[(one == step).then_some("true")] { (words) }
                }
            }
            (live("time", charts(&front)))
        }
        section.card aria-labelledby="operations" {
            h2 #operations { "Operations" }
            (live("operations", operations(list(&front["operations"]))))
        }
        @for (at, section) in list(&front["sections"]).iter().enumerate() {
            section.card aria-labelledby={ "own-" (at) } {
                h2 id={ "own-" (at) } { (text(&section["title"])) }
                (live(&format!("own-{at}"), own(section, &colours)))
            }
        }
    };
    Outcome::page(title, Part::Services, body)
}

fn counts(front: &Value) -> Markup {
    let count = |name: &str| front["counts"][name].as_u64().unwrap_or(0);
    let operations = list(&front["operations"]);
    let sum = |name: &str| operations.iter().filter_map(|one| one[name].as_u64()).sum::<u64>();
    let rate: f64 = operations.iter().filter_map(|one| one["requests_per_second"].as_f64()).sum();
    let failed = format!("{} failed", figure::count(sum("failed")));
    html! {
        dl.tiles {
            (tile("Requests", &figure::rate(rate), &format!("{} since the start", figure::count(sum("requests")))))
            (tile("Refused", &figure::count(sum("refused")), &failed))
            (tile("Connections", &figure::count(count("connections_open")),
                &format!("{} since the start", figure::count(count("connections")))))
            (tile("Received", &figure::bytes(count("received_bytes")), ""))
            (tile("Sent", &figure::bytes(count("sent_bytes")), ""))
            (tile("Turned away", &figure::count(count("connections_refused")), "connections over the limit"))
            (tile("Timed out", &figure::count(count("timeouts")), &format!("{} faults of ours", count("panics"))))
        }
    }
}

/// A title, what is drawn, and how its values are written.
type Chart<'a> = (&'a str, &'a [Line<'a>], fn(f64) -> String);

fn charts(front: &Value) -> Markup {
    let recent = list(&front["recent"]);
    if recent.is_empty() {
        return html! { p.muted { "Nothing is known yet; the first figures come after " (front["step_s"]) " seconds." } };
    }
    let step_s = front["step_s"].as_u64().unwrap_or(1).max(1);
    let series = |name: &str, by: f64| -> Vec<f64> {
        recent.iter().map(|one| one[name].as_f64().unwrap_or(0.0) / by).collect()
    };
    let seconds = step_s as f64;
    let requests = series("requests", seconds);
    let (refused, failed) = (series("refused", seconds), series("failed", seconds));
    let (half, slow) = (series("p50_us", 1.0), series("p99_us", 1.0));
    let time: fn(f64) -> String = |value| figure::micros(value as u64);
    let charts: [Chart<'_>; 3] = [
        ("Requests", &[Line { name: "Requests", values: &requests }], figure::rate),
        (
            "Errors",
            &[Line { name: "Refused", values: &refused }, Line { name: "Failed", values: &failed }],
            figure::rate,
        ),
        (
            "How long they took",
            &[
                Line { name: "Half of them, at most", values: &half },
                Line { name: "99 % of them, at most", values: &slow },
            ],
            time,
        ),
    ];
    html! {
        div.columns {
            @for (title, lines, print) in charts {
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
        details #figures {
            summary { "The same in figures" }
            (figures(recent, step_s))
        }
    }
}

fn figures(recent: &[Value], step_s: u64) -> Markup {
    let number = |one: &Value, name: &str| one[name].as_u64().unwrap_or(0);
    let time = |one: &Value, name: &str| one[name].as_u64().map_or("–".to_owned(), figure::micros);
    let rows = html! {
        @for (at, one) in recent.iter().enumerate().rev() {
            tr {
                th scope="row" { (figure::seconds((recent.len() - 1 - at) as u64 * step_s)) " ago" }
                td.number { (figure::count(number(one, "requests"))) }
                td.number { (figure::count(number(one, "refused"))) }
                td.number { (figure::count(number(one, "failed"))) }
                td.number { (time(one, "p50_us")) }
                td.number { (time(one, "p99_us")) }
            }
        }
    };
    let heads = ["Requests", "Refused", "Failed", "Half took", "99 % took"];
    number_table("Over time in figures", &["When"], &heads, rows)
}

fn operations(all: &[Value]) -> Markup {
    if all.is_empty() {
        return html! { p.muted { "Nothing was asked of it since the start. The connection strings are on the \
        overview." } };
    }
    let mut sorted: Vec<&Value> = all.iter().collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(one["requests"].as_u64().unwrap_or(0)));
    let time = |one: &Value, name: &str| one[name].as_u64().map_or("–".to_owned(), figure::micros);
    let rows = html! {
        @for one in sorted {
            tr data-operation=(text(&one["name"])) {
                th.name scope="row" { (text(&one["name"])) }
                td.key { (outcomes(&one["outcomes"])) }
                td.number { (figure::rate(one["requests_per_second"].as_f64().unwrap_or(0.0))) }
                td.number { (figure::count(one["requests"].as_u64().unwrap_or(0))) }
                td.number { (figure::count(one["refused"].as_u64().unwrap_or(0))) }
                td.number { (figure::count(one["failed"].as_u64().unwrap_or(0))) }
                td.number { (time(one, "mean_us")) }
                td.number { (time(one, "p50_us")) }
                td.number { (time(one, "p99_us")) }
            }
        }
    };
    let numbers = ["Rate", "Requests", "Refused", "Failed", "Mean", "Half took", "99 % took"];
    number_table("Operations", &["Operation", "Outcomes"], &numbers, rows)
}

fn outcomes(outcomes: &Value) -> String {
    let one = |(outcome, count): (&String, &Value)| {
        format!("{outcome}: {}", figure::count(count.as_u64().unwrap_or(0)))
    };
    let all: Vec<String> = outcomes.as_object().into_iter().flatten().map(one).collect();
    all.join(", ")
}

/// What a service tells of itself: figures, or a table.
fn own(section: &Value, colours: &Colours) -> Markup {
    if let Some(figures) = section["figures"].as_array() {
        return html! {
            dl.facts { @for one in figures { (fact(text(&one["name"]), cell(&one["value"], colours))) } }
        };
    }
    let rows = list(&section["rows"]);
    let columns: Vec<&str> = list(&section["columns"]).iter().map(text).collect();
    // A column is one of numbers if its cells are.
    let is_number = |at: usize| rows.first().is_some_and(|row| is_number(&row[at]));
    html! {
        @if rows.is_empty() { p.muted { "There is none." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label=(text(&section["title"])) {
                table {
                    caption.hidden { (text(&section["title"])) }
                    thead { tr {
                        @for (at, name) in columns.iter().enumerate() { th.number[is_number(at)] scope="col" { (name) } }
                    } }
                    tbody {
                        @for row in rows {
                            tr {
                                @for (at, value) in list(row).iter().enumerate() {
                                    @if at == 0 { th.key scope="row" { (cell(value, colours)) } }
                                    @else { td.number[is_number(at)] { (cell(value, colours)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if !text(&section["note"]).is_empty() { p.muted { (text(&section["note"])) } }
    }
}

fn is_number(cell: &Value) -> bool {
    cell.as_object().is_some_and(|cell| !cell.contains_key("text") && !cell.contains_key("shard"))
}

/// A figure as its unit says.
fn cell(cell: &Value, colours: &Colours) -> Markup {
    let number = |name: &str| cell[name].as_u64();
    if let Some(words) = cell["text"].as_str() {
        return html! { (super::explorer::stored(words)) };
    }
    if let Some(shard) = cell["shard"].as_str() {
        return colours.name(shard);
    }
    let written = number("count").map(figure::count);
    let written = written.or_else(|| number("bytes").map(figure::bytes));
    let written = written.or_else(|| number("micros").map(figure::micros));
    let written = written.or_else(|| number("seconds").map(figure::seconds));
    let written = written.or_else(|| cell["rate"].as_f64().map(figure::rate));
    let part = |share: f64| format!("{:.1} %", share * 100.0);
    let written = written.or_else(|| cell["share"].as_f64().map(part));
    html! { (written.unwrap_or_else(|| "–".to_owned())) }
}
