//! One sharded database: how rows and bytes lie on its shards, its ranges, its tables, and the jobs that move them.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use super::place::{SqlChange, change};
use crate::chart::{Bars, swatch};
use crate::figure;
use crate::layout::{csrf, fact, list, live, number_table, text};
use crate::page::{Outcome, Part, Result, Visit};

/// The most ranges of a map on the page.
const RANGES_SHOWN: usize = 500;

/// The shards of the database by their names, with their colours, which follow from their ids.
pub(super) struct Painted(BTreeMap<String, usize>);

impl Painted {
    pub(super) fn read(shown: &Value) -> Self {
        let colour = |one: &Value| one["id"].as_u64().unwrap_or(0).saturating_sub(1) as usize;
        let one = |shard: &Value| (text(&shard["name"]).to_owned(), colour(shard));
        Self(list(&shown["shards"]).iter().map(one).collect())
    }

    fn name(&self, shard: &str) -> Markup {
        let colour = self.0.get(shard).copied().unwrap_or(0);
        html! { span.shard { (swatch(colour)) (shard) } }
    }
}

pub(super) async fn show(visit: &Visit<'_>, name: &str) -> Result {
    let shown = visit.api.get(&["v1", "sql", name]).await?;
    let sizes = visit.api.get(&["v1", "sql", name, "sizes"]).await?;
    let jobs = visit.api.get(&["v1", "sql", name, "jobs"]).await?;
    let painted = Painted::read(&shown);
    let (open, over): (Vec<&Value>, Vec<&Value>) =
        list(&jobs["jobs"]).iter().partition(|job| job["ended_ms"].is_null());
    let body = html! {
        p.crumbs { a href=(Part::Sql.path()) { "Sharded SQL" } }
        h1 { (name) }
        div.columns {
            (live("bytes", bars("Storage per shard", &sizes, &painted, "bytes", figure::bytes)))
            (live("rows", bars("Rows per shard", &sizes, &painted, "rows", figure::count)))
        }
        section.card aria-labelledby="open" {
            h2 #open { "Jobs under way" }
            (live("open", html! {
                @if open.is_empty() { p.muted { "No job is under way." } }
                @for job in &open { (under_way(visit, name, job, &painted)) }
            }))
        }
        section.card aria-labelledby="shards" {
            h2 #shards { "Shards" }
            (live("shards", shards(name, &shown, &sizes, &painted)))
        }
        section.card aria-labelledby="tables" {
            h2 #tables { "Tables" }
            (live("tables", tables(&shown, &sizes, &painted)))
        }
        @for map in list(&shown["maps"]) { (ranges(name, map, &painted)) }
        (schema_change(name))
        section.card aria-labelledby="over" {
            h2 #over { "Jobs that are over" }
            (live("over", finished(&over, &painted)))
        }
    };
    Outcome::page(name, Part::Sql, body)
}

/// What all tables of a shard have together.
fn total(sizes: &Value, shard: &str, field: &str) -> u64 {
    let of = list(&sizes["shards"]).iter().find(|one| one["shard"] == shard);
    let tables = of.map(|one| list(&one["tables"])).unwrap_or_default();
    tables.iter().filter_map(|table| table[field].as_u64()).sum()
}

fn bars(
    title: &str,
    sizes: &Value,
    painted: &Painted,
    field: &str,
    print: fn(u64) -> String,
) -> Markup {
    let names: Vec<String> = painted.0.keys().cloned().collect();
    let values: Vec<u64> = names.iter().map(|name| total(sizes, name, field)).collect();
    let colours: Vec<usize> = painted.0.values().copied().collect();
    let bars = Bars {
        title,
        axis: "shards",
        values: &values,
        names: &names,
        colours: Some(&colours),
        print,
    };
    html! { section.card aria-label=(title) { h2 { (title) } (bars.draw()) } }
}

fn shards(database: &str, shown: &Value, sizes: &Value, painted: &Painted) -> Markup {
    let error = |name: &str| {
        let of = list(&sizes["shards"]).iter().find(|one| one["shard"] == name);
        of.and_then(|one| one["error"].as_str())
    };
    let rows = html! {
        @for shard in list(&shown["shards"]) {
            @let name = text(&shard["name"]);
            @let draining = shard["draining"] == true;
            tr data-shard=(name) {
                th.name scope="row" { (painted.name(name)) }
                td {
                    @match error(name) {
                        Some(error) => { span.state.bad { "away" } " " (error) }
                        None if draining => { span.state { "draining" } }
                        None => { span.state.good { "online" } }
                    }
                }
                td { (text(&shard["region"])) }
                td {
                    @let (action, words) = if draining { (SqlChange::Fill, "Fill again") } else { (SqlChange::Drain, "Drain") };
                    a href=(change(database, action, &[("shard", name)])) aria-label={ (words) " " (name) } { (words) }
                }
                td.number { (figure::count(total(sizes, name, "rows"))) }
                td.number { (figure::bytes(total(sizes, name, "bytes"))) }
            }
        }
    };
    number_table("Shards", &["Shard", "State", "Region", "Change"], &["Rows", "Storage"], rows)
}

fn tables(shown: &Value, sizes: &Value, painted: &Painted) -> Markup {
    let all = list(&shown["tables"]);
    if all.is_empty() {
        return html! { p.muted { "No table is declared: `lazuli sql table add` does it." } };
    }
    let shards: Vec<&String> = painted.0.keys().collect();
    let rows = html! {
        @for table in all {
            @let name = format!("{}.{}", text(&table["schema"]), text(&table["name"]));
            tr data-table=(name) {
                th.name scope="row" { (name) }
                td { (text(&table["kind"])) }
                td { (place(table)) }
                @for shard in &shards { td.number { (held(sizes, shard, &name)) } }
            }
        }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Tables" {
            table {
                caption.hidden { "Tables, with rows and bytes on each shard" }
                thead { tr {
                    @for head in ["Table", "Kind", "By"] { th scope="col" { (head) } }
                    @for shard in &shards { th.number scope="col" { (painted.name(shard)) } }
                } }
                tbody { (rows) }
            }
        }
        p.muted { "Rows are as PostgreSQL estimates them." }
    }
}

fn place(table: &Value) -> String {
    let columns: Vec<&str> = list(&table["columns"]).iter().map(text).collect();
    match text(&table["kind"]) {
        "sharded" => format!("{} of map {}", columns.join(", "), text(&table["map"])),
        "single" => format!("on {}", text(&table["shard"])),
        _ => "on every shard".to_owned(),
    }
}

fn held(sizes: &Value, shard: &str, table: &str) -> Markup {
    let of = list(&sizes["shards"]).iter().find(|one| one["shard"] == shard);
    let found = of.and_then(|one| list(&one["tables"]).iter().find(|one| one["table"] == table));
    let number = |one: &Value, field: &str| one[field].as_u64().unwrap_or(0);
    html! {
        @match found {
            Some(one) => { (figure::count(number(one, "rows"))) span.muted { " · " (figure::bytes(number(one, "bytes"))) } }
            None => "–",
        }
    }
}

fn ranges(database: &str, map: &Value, painted: &Painted) -> Markup {
    let name = text(&map["name"]);
    let (head, mappings) = (format!("map-{name}"), list(&map["mappings"]));
    let rows = html! {
        @for one in mappings.iter().take(RANGES_SHOWN) {
            @let number = one["id"].to_string();
            tr data-mapping=(number) {
                th scope="row" { (number) }
                td.key { (text(&one["range"])) }
                td.name { (painted.name(text(&one["shard"]))) }
                td {
                    @let state = text(&one["state"]);
                    span.state.good[state == "online"].bad[state == "offline"] { (state) }
                    @if let Some(lock) = one["lock"].as_str() { " locked by " (lock) }
                }
                td.name {
                    @for (action, words) in [(SqlChange::Move, "Move"), (SqlChange::Split, "Split")] {
                        a href=(change(database, action, &[("mapping", &number)])) aria-label={ (words) " range " (number) } { (words) } " "
                    }
                }
                td.number { (one["epoch"]) }
            }
        }
    };
    html! {
        section.card aria-labelledby=(head) {
            h2 id=(head) { "Map " (name) }
            p.muted {
                (text(&map["kind"])) " map; " (mappings.len()) " ranges."
                @if mappings.len() > RANGES_SHOWN { " These are the first " (RANGES_SHOWN) "." }
            }
            (live(&head, html! {
                @if mappings.is_empty() { p.muted { "No key is mapped: `lazuli sql map assign` does it." } }
                @else { (number_table(&format!("Ranges of {name}"), &["Range", "Keys", "Shard", "State", "Change"], &["Epoch"], rows)) }
            }))
        }
    }
}

fn schema_change(database: &str) -> Markup {
    html! {
        details.card {
            summary { "Change the schema on all shards" }
            form method="get" action=(change(database, SqlChange::Ddl, &[])) {
                label for="statement" { "Statement" }
                textarea #statement name="statement" rows="4" spellcheck="false" required {}
                button.quiet type="submit" { "Show what it does" }
            }
        }
    }
}

fn under_way(visit: &Visit<'_>, database: &str, job: &Value, painted: &Painted) -> Markup {
    let number = job["job"].as_u64().unwrap_or(0);
    let figure = |name: &str| job[name].as_u64().unwrap_or(0);
    html! {
        article.job aria-labelledby={ "job-" (number) } data-job=(number) {
            h3 id={ "job-" (number) } {
                "Job " (number) ": " (what(job))
                @if let (Some(from), Some(to)) = (job["from"].as_str(), job["to"].as_str()) {
                    " from " (painted.name(from)) " to " (painted.name(to))
                }
            }
            @if job["kind"] == "move" {
                progress max=(figure("rows_expected").max(figure("rows")).max(1)) value=(figure("rows"))
                    aria-label={ "Rows copied by job " (number) } {}
                dl.facts {
                    (fact("Step", html! { span.state { (text(&job["step"])) } }))
                    (fact("Copied", html! { (figure::count(figure("rows"))) " of " (figure::count(figure("rows_expected"))) " rows" }))
                    (fact("Rate", html! { (figure::rate(job["rows_per_second"].as_f64().unwrap_or(0.0))) }))
                    (fact("Changes caught up", html! { (figure::count(figure("changes"))) }))
                    (fact("Left", html! { (job["eta_s"].as_f64().map_or("–".to_owned(), |left| figure::seconds(left as u64))) }))
                }
            }
            @if let Some(trouble) = job["trouble"].as_str() { p.notice.bad { (trouble) } }
            form method="post" action=(change(database, SqlChange::Cancel, &[])) {
                (csrf(visit.session))
                input type="hidden" name="job" value=(number);
                button.quiet type="submit" { "Cancel job " (number) }
            }
        }
    }
}

fn what(job: &Value) -> String {
    match text(&job["kind"]) {
        "move" => format!("range {} of {}", job["mapping"], text(&job["map"])),
        "ddl" => text(&job["statement"]).to_owned(),
        other => other.to_owned(),
    }
}

fn finished(jobs: &[&Value], painted: &Painted) -> Markup {
    if jobs.is_empty() {
        return html! { p.muted { "No job is over yet." } };
    }
    let time = |job: &Value| job["pause_us"].as_u64().map_or("–".to_owned(), figure::micros);
    let rows = html! {
        @for job in jobs {
            tr data-job=(job["job"]) {
                th scope="row" { (job["job"]) }
                td.key { (what(job)) }
                td.name { @if let Some(from) = job["from"].as_str() { (painted.name(from)) } }
                td.name { @if let Some(to) = job["to"].as_str() { (painted.name(to)) } }
                td {
                    span.state.good[job["outcome"] == "done"] { (outcome(&job["outcome"])) }
                    @if let Some(trouble) = job["trouble"].as_str() { " " (trouble) }
                }
                td.name { (figure::moment(job["ended_ms"].as_u64().unwrap_or(0))) }
                td.number { (figure::count(job["rows"].as_u64().unwrap_or(0))) }
                td.number { (time(job)) }
            }
        }
    };
    let heads = ["Job", "What", "From", "To", "Outcome", "Ended (UTC)"];
    number_table("Jobs that are over", &heads, &["Rows", "Writes paused"], rows)
}

fn outcome(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
