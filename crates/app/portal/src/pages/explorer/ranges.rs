//! Storage and throughput of a container of documents, for each of its physical partitions, and a change of throughput with
//! what it does to them.

use bytes::Bytes;
use lazuli_http::{Body, HeaderMap, Method, StatusCode};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::place::ItemPath;
use super::stored::stored;
use super::{crumbs, tell};
use crate::chart::Bars;
use crate::figure;
use crate::layout::{csrf, fact, list, live, number_table, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let found = visit.api.get(&path.api(&[])).await?;
    let wanted = visit.query.get("units").unwrap_or_default();
    let preview = match wanted {
        "" => None,
        units => {
            let query = [("units", units)];
            Some(visit.api.get_with(&path.api(&["throughput"]), &query).await?)
        }
    };
    let above = [path.list(), (path.name.as_str(), path.link(&[], &[]))];
    let ranges = list(&found["ranges"]);
    let body = html! {
        (crumbs(&above, html! { "Storage and throughput" }))
        h1 { "Storage and throughput of " (stored(&path.name)) }
        (live("facts", facts(&found)))
        div.columns {
            section.card aria-labelledby="storage" {
                h2 #storage { "Storage per physical partition" }
                (live("storage", storage(ranges)))
            }
            section.card aria-labelledby="units" {
                h2 #units { "Request units per physical partition" }
                (live("units", spent(ranges)))
            }
        }
        (throughput(visit, path, &found, wanted, preview.as_ref()))
        section.card aria-labelledby="ranges" {
            h2 #ranges { "Physical partitions" }
            (live("ranges", rows(&found)))
        }
    };
    Outcome::page(format!("Storage of {}", path.name), Part::Explorer, body)
}

fn number(value: &Value) -> u64 {
    value.as_f64().unwrap_or_default().max(0.0).round() as u64
}

fn facts(found: &Value) -> Markup {
    let ranges = list(&found["ranges"]);
    let sum = |name: &str| ranges.iter().map(|one| number(&one[name])).sum::<u64>();
    let keys: Vec<&str> = list(&found["key"]).iter().map(text).collect();
    html! {
        dl.facts.card {
            (fact("Partition key", stored(&keys.join(", "))))
            (fact("Physical partitions", html! { (figure::count(ranges.len() as u64)) }))
            (fact("Stored", html! { (figure::bytes(sum("kilobytes") * 1_024)) }))
            (fact("Items", html! { (figure::count(sum("items"))) }))
            (fact("Throughput", html! {
                @match found["throughput"].as_u64() {
                    Some(units) => {
                        (figure::count(units)) " request units a second"
                        @if found["is_autoscale"] == true { " at the most" }
                    }
                    None => "that of the database",
                }
            }))
            @if found["is_pending"] == true {
                (fact("Being split", html! { "for the throughput that was asked for" }))
            }
        }
    }
}

fn storage(ranges: &[Value]) -> Markup {
    let values: Vec<u64> = ranges.iter().map(|one| number(&one["kilobytes"]) * 1_024).collect();
    drawn("Storage per physical partition", &values, figure::bytes)
}

/// Hundredths are drawn, so that a partition with little to do is not flat.
fn spent(ranges: &[Value]) -> Markup {
    let hundredths = |one: &Value| one["units_per_second"].as_f64().unwrap_or_default() * 100.0;
    let values: Vec<u64> = ranges.iter().map(|one| hundredths(one).round() as u64).collect();
    drawn("Request units a second per physical partition", &values, |value| {
        format!("{:.1} RU/s", value as f64 / 100.0)
    })
}

fn drawn(title: &str, values: &[u64], print: fn(u64) -> String) -> Markup {
    let (total, most) = (values.iter().sum::<u64>(), values.iter().max().copied().unwrap_or(0));
    let even = total / values.len().max(1) as u64;
    let names: Vec<String> =
        (0..values.len()).map(|at| format!("Physical partition {at}")).collect();
    html! {
        (Bars { title, axis: "physical partitions", values, names: &names, colours: None, print }.draw())
        p.muted {
            span.key-even aria-hidden="true" {} " Even share " (print(even)) ". The largest has "
            (print(most)) ", " (figure::share(most, total)) " of all."
        }
    }
}

fn rows(found: &Value) -> Markup {
    let ranges = list(&found["ranges"]);
    let share = found["throughput"].as_f64().map(|units| units / ranges.len().max(1) as f64);
    let rows = html! {
        @for one in ranges {
            tr {
                th scope="row" { (text(&one["id"])) }
                td.key { (stored(text(&one["min"]))) " … " (text(&one["max"])) }
                td.number { (figure::bytes(number(&one["kilobytes"]) * 1_024)) }
                td.number { (figure::count(number(&one["items"]))) }
                td.number { (format!("{:.1}", one["units_per_second"].as_f64().unwrap_or(0.0))) }
                td.number { @if let Some(share) = share { (format!("{share:.0}")) } }
            }
        }
    };
    let figures = ["Stored", "Items", "RU/s used", "RU/s given"];
    number_table("Physical partitions", &["Partition", "Hashes"], &figures, rows)
}

fn throughput(
    visit: &Visit<'_>,
    path: &ItemPath,
    found: &Value,
    wanted: &str,
    preview: Option<&Value>,
) -> Markup {
    let Some(units) = found["throughput"].as_u64() else { return html! {} };
    let shown = if wanted.is_empty() { units.to_string() } else { wanted.to_owned() };
    html! {
        section.card aria-labelledby="throughput" {
            h2 #throughput { "Change the throughput" }
            form.inline method="get" action=(path.link(&["ranges"], &[])) {
                div {
                    label for="wanted" { "Request units a second" }
                    input #wanted name="units" type="number" min="100" step="100" value=(shown) required;
                }
                button.quiet type="submit" { "Show what it does" }
            }
            @if let Some(preview) = preview {
                p { (consequence(preview)) }
                form method="post" action=(path.link(&["throughput"], &[])) {
                    (csrf(visit.session))
                    input type="hidden" name="units" value=(wanted);
                    button type="submit" { "Change to " (wanted) }
                }
            }
        }
    }
}

/// What a throughput does to the physical partitions, as a sentence.
fn consequence(preview: &Value) -> String {
    let figure = |name: &str| preview[name].as_u64().unwrap_or_default();
    let (now, then) = (figure("ranges"), figure("ranges_then"));
    let each = figure::count(figure("units_per_range"));
    if then > now {
        return format!(
            "The container is split from {now} into {then} physical partitions, in the background. \
             Each then gives {each} request units a second."
        );
    }
    format!(
        "Nothing is split. Each of {now} physical partitions gives {each} request units a second."
    )
}

pub(super) async fn change(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let wrong = |_| Fault::new(StatusCode::BAD_REQUEST, "the throughput is a whole number");
    let units: u64 = visit.form.get("units").parse().map_err(wrong)?;
    let body = Body::from(Bytes::from(json!({ "units": units }).to_string()));
    tell(visit, Method::PUT, &path.api(&["throughput"]), &[], HeaderMap::new(), body).await?;
    Outcome::done(path.link(&["ranges"], &[]), format!("The throughput is {units} from now on."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_says_what_is_split() {
        let preview = |now: u64, then: u64| {
            consequence(&json!({ "ranges": now, "ranges_then": then, "units_per_range": 6000 }))
        };
        assert!(preview(1, 5).starts_with("The container is split from 1 into 5 physical"));
        assert!(preview(5, 5).starts_with("Nothing is split. Each of 5 physical"));
    }
}
