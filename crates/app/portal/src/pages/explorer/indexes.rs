//! A text index: its slices and their shards, its fields, a search box with scores and the query explained, and what its
//! analyzers make of a text.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use super::crumbs;
use super::place::ItemPath;
use super::stored::stored;
use crate::chart::Bars;
use crate::figure;
use crate::layout::{fact, list, number_table, table, text};
use crate::page::{Outcome, Part, Result, Visit};
use crate::shards::Colours;

/// How many documents a search shows.
const FOUND: &str = "20";
/// The most signs of a document in the list.
const DOCUMENT_CHARS_MAX: usize = 600;
/// Analyzers of the service that are offered beside those of the index.
const ANALYZERS: [&str; 8] = [
    "standard.lucene",
    "keyword",
    "simple",
    "stop",
    "whitespace",
    "pattern",
    "en.lucene",
    "de.lucene",
];

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let index = visit.api.get(&path.api(&[])).await?;
    let shards = visit.api.get(&["v1", "shards"]).await?;
    let given = |name: &str| visit.query.get(name).unwrap_or_default();
    let body = html! {
        (crumbs(&[path.list()], stored(&path.name)))
        h1 { "Index " (stored(&path.name)) }
        (facts(&index))
        section.card aria-labelledby="search" {
            h2 #search { "Search" }
            (search_box(visit, path))
            (found(visit, path).await)
        }
        section.card aria-labelledby="analyze" {
            h2 #analyze { "What an analyzer makes of a text" }
            (analyzer_box(&index, path, given("analyzer"), given("text")))
            (tokens(visit, path).await)
        }
        section.card aria-labelledby="slices" {
            h2 #slices { "Slices" }
            (slices(list(&index["slices"]), &shards))
        }
        section.card aria-labelledby="fields" {
            h2 #fields { "Fields" }
            (fields(list(&index["definition"]["fields"])))
        }
    };
    Outcome::page(format!("Index {}", path.name), Part::Explorer, body)
}

fn facts(index: &Value) -> Markup {
    let sum = |name: &str| list(&index["slices"]).iter().filter_map(|one| one[name].as_u64()).sum();
    let (documents, bytes): (u64, u64) = (sum("documents"), sum("bytes"));
    let derived = &index["text_index"];
    html! {
        dl.facts.card {
            (fact("Documents", html! { (figure::count(documents)) }))
            (fact("Stored", html! { (figure::bytes(bytes)) }))
            (fact("Text index", html! { (figure::bytes(derived["bytes"].as_u64().unwrap_or(0))) }))
            (fact("Segments", html! { (derived["segments"].as_u64().map_or("–".to_owned(), figure::count)) }))
            (fact("Partitions", html! { (index["partitions"]) }))
            (fact("Replicas", html! { (index["replicas"]) }))
            (fact("Slices to move", html! { (index["partitions_to_move"]) }))
        }
    }
}

fn search_box(visit: &Visit<'_>, path: &ItemPath) -> Markup {
    let given = |name: &str| visit.query.get(name).unwrap_or_default();
    html! {
        form.inline method="get" action=(path.link(&[], &[])) role="search" {
            div {
                label for="q" { "Search text" }
                input #q type="search" name="q" value=(given("q")) placeholder="beach \"free parking\" -noisy";
            }
            div {
                label for="syntax" { "Syntax" }
                select #syntax name="syntax" {
                    @for (word, words) in [("simple", "Simple"), ("full", "Full Lucene")] {
                        option value=(word) selected[word == given("syntax")] { (words) }
                    }
                }
            }
            div {
                label for="mode" { "Of several words" }
                select #mode name="mode" {
                    @for (word, words) in [("any", "any is enough"), ("all", "all are needed")] {
                        option value=(word) selected[word == given("mode")] { (words) }
                    }
                }
            }
            div {
                label for="filter" { "Filter" }
                input #filter name="filter" value=(given("filter")) placeholder="Rating ge 4";
            }
            button.quiet type="submit" { "Search" }
        }
    }
}

/// The results of the search box; its error where it is refused, below what was asked.
async fn found(visit: &Visit<'_>, path: &ItemPath) -> Markup {
    let Some(words) = visit.query.get("q") else {
        return html! { p.muted { "An empty text finds every document." } };
    };
    let given = |name: &str| visit.query.get(name).unwrap_or_default();
    let query = [
        ("text", words),
        ("syntax", given("syntax")),
        ("mode", given("mode")),
        ("filter", given("filter")),
        ("limit", FOUND),
    ];
    let found = match visit.api.get_with(&path.api(&["search"]), &query).await {
        Ok(found) => found,
        Err(refused) => return html! { p.notice.bad role="alert" { (refused.message) } },
    };
    let results = list(&found["results"]);
    let best = results.iter().filter_map(|one| one["score"].as_f64()).fold(0.0, f64::max);
    let rows = html! {
        @for one in results {
            @let score = one["score"].as_f64().unwrap_or(0.0);
            tr {
                td.number { (format!("{score:.4}")) (share(score, best)) }
                td.key { code { (stored(&short(&one["document"]))) } }
            }
        }
    };
    html! {
        p { (figure::count(found["count"].as_u64().unwrap_or(0))) " documents. The text became this query:" }
        pre.preview tabindex="0" { (stored(text(&found["query"]))) }
        p.muted { "A document's score is the sum over the terms of this query that it has: more for rare terms, \
            for terms that it has often, and for short fields (BM25), times the boost behind a ^." }
        @if !results.is_empty() { (table("Results", &["Score", "Document"], rows)) }
    }
}

/// A score beside the best one, as a bar.
fn share(score: f64, best: f64) -> Markup {
    let thousandths = if best > 0.0 { (score / best * 1_000.0).round() as u64 } else { 0 };
    crate::layout::bar(thousandths, 1_000)
}

fn short(document: &Value) -> String {
    let whole = document.to_string();
    let begin: String = whole.chars().take(DOCUMENT_CHARS_MAX).collect();
    if begin.len() < whole.len() { format!("{begin}…") } else { begin }
}

fn analyzer_box(index: &Value, path: &ItemPath, analyzer: &str, words: &str) -> Markup {
    let own = list(&index["definition"]["analyzers"]).iter().map(|one| text(&one["name"]));
    let names: Vec<&str> = own.chain(ANALYZERS).collect();
    html! {
        form.inline method="get" action={ (path.link(&[], &[])) "#analyze" } {
            div {
                label for="analyzer" { "Analyzer" }
                input #analyzer name="analyzer" list="analyzers" required
                    value=(if analyzer.is_empty() { ANALYZERS[0] } else { analyzer });
                datalist #analyzers { @for name in names { option value=(name) {} } }
            }
            div {
                label for="text" { "Text" }
                input #text name="text" value=(words) required placeholder="The quick brown foxes";
            }
            button.quiet type="submit" { "Show the tokens" }
        }
    }
}

async fn tokens(visit: &Visit<'_>, path: &ItemPath) -> Markup {
    let (Some(analyzer), Some(words)) = (visit.query.get("analyzer"), visit.query.get("text"))
    else {
        return html! {};
    };
    let query = [("analyzer", analyzer), ("text", words)];
    let found = match visit.api.get_with(&path.api(&["analyze"]), &query).await {
        Ok(found) => found,
        Err(refused) => return html! { p.notice.bad role="alert" { (refused.message) } },
    };
    let all = list(&found["tokens"]);
    if all.is_empty() {
        return html! { p.muted { "It makes no token of this text." } };
    }
    let rows = html! {
        @for one in all {
            tr {
                th.key scope="row" { code { (stored(text(&one["token"]))) } }
                td.number { (one["position"]) }
                td.number { (one["from"]) }
                td.number { (one["to"]) }
            }
        }
    };
    number_table("Tokens", &["Token"], &["Position", "From", "To"], rows)
}

/// Documents and bytes of each slice, in the colour of its shard.
fn slices(all: &[Value], shards: &Value) -> Markup {
    let colours = Colours::read(shards);
    let named: BTreeMap<String, &str> = list(&shards["shards"])
        .iter()
        .map(|one| (one["id"].to_string(), text(&one["name"])))
        .collect();
    let shard = |one: &Value| named.get(text(&one["shard"])).copied().unwrap_or("–");
    let number = |one: &Value, name: &str| one[name].as_u64().unwrap_or(0);
    let values: Vec<u64> = all.iter().map(|one| number(one, "documents")).collect();
    let names: Vec<String> =
        all.iter().map(|one| format!("Slice {} on {}", one["slice"], shard(one))).collect();
    let paints: Vec<usize> = all.iter().map(|one| colours.get(shard(one))).collect();
    let (title, axis, print) = ("Documents per slice", "slices", figure::count);
    let bars = Bars { title, axis, values: &values, names: &names, colours: Some(&paints), print };
    let rows = html! {
        @for one in all {
            tr data-slice=(one["slice"]) {
                th scope="row" { (one["slice"]) }
                td.name { (colours.name(shard(one))) }
                td.number { (figure::count(number(one, "documents"))) }
                td.number { (figure::bytes(number(one, "bytes"))) }
            }
        }
    };
    html! {
        div.columns {
            div { (bars.draw()) }
            div { (number_table("Slices", &["Slice", "Shard"], &["Documents", "Storage"], rows)) }
        }
    }
}

fn fields(all: &[Value]) -> Markup {
    const MARKS: [&str; 6] =
        ["key", "searchable", "filterable", "sortable", "facetable", "retrievable"];
    let rows = html! {
        @for one in all {
            tr {
                th.key scope="row" { (stored(text(&one["name"]))) }
                td { (text(&one["type"])) }
                td { (MARKS.into_iter().filter(|mark| one[*mark] == true).collect::<Vec<_>>().join(", ")) }
                td { (one["analyzer"].as_str().unwrap_or("–")) }
            }
        }
    };
    table("Fields", &["Field", "Type", "Is", "Analyzer"], rows)
}
