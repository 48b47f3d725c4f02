//! The overview: endpoints, storage, requests and jobs.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Line, Lines};
use crate::figure;
use crate::layout::{csrf, list, live, state, text, tile};
use crate::page::{Outcome, Part, Result, Visit};

/// Shown instead of a key until the keys are requested.
const MASK: &str = "********";

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let status = visit.api.get(&["v1", "status"]).await?;
    let overview = visit.api.get(&["v1", "overview"]).await?;
    let accounts = visit.api.get(&["v1", "accounts"]).await?;
    let jobs = visit.api.get(&["v1", "jobs"]).await?;
    let body = html! {
        h1 { "Overview" }
        (live("tiles", tiles(&status, &overview, &jobs)))
        @if status["unhealthy"].as_array().is_some_and(|all| !all.is_empty()) {
            (live("unhealthy", unhealthy(&status["unhealthy"])))
        }
        @if status["troubles"].as_array().is_some_and(|all| !all.is_empty()) {
            (live("troubles", troubles(&status["troubles"])))
        }
        section.card aria-labelledby="services" {
            h2 #services { "Services" }
            (live("services", super::services::table(&overview)))
        }
        div.columns {
            section.card aria-labelledby="traffic" {
                h2 #traffic { "Requests in the last minutes" }
                (live("traffic", traffic(&overview)))
            }
            section.card aria-labelledby="connect" {
                h2 #connect { "Connection strings" }
                @for account in list(&accounts["accounts"]) { (connection(visit, account, &status)) }
            }
        }
    };
    Outcome::page("Overview", Part::Overview, body)
}

fn tiles(status: &Value, overview: &Value, jobs: &Value) -> Markup {
    let stored = |name: &str| -> u64 {
        list(&overview["shards"]).iter().filter_map(|shard| shard[name].as_u64()).sum()
    };
    let asked = |name: &str| -> u64 { served(overview).filter_map(|one| one[name].as_u64()).sum() };
    let rate = |name: &str| -> f64 { served(overview).filter_map(|one| one[name].as_f64()).sum() };
    let open = |job: &&Value| job["ended_ms"].is_null();
    let under_way = list(&jobs["jobs"]).iter().filter(open).count();
    let down = status["shards_down"].as_u64().unwrap_or(0);
    html! {
        dl.tiles {
            (tile("Stored", &figure::bytes(stored("bytes")),
                &format!("{} items", figure::count(stored("items")))))
            (tile("Requests", &figure::rate(rate("requests_per_second")),
                &format!("{} since the start", figure::count(asked("requests")))))
            (tile("Errors", &figure::rate(rate("errors_per_second")),
                &format!("{} failed", figure::count(asked("failed")))))
            (tile("Shards", &figure::count(status["shards"].as_u64().unwrap_or(0)),
                &if down == 0 { "all up".to_owned() } else { format!("{down} down") }))
            (tile("Containers", &figure::count(status["maps"].as_u64().unwrap_or(0)), ""))
            (tile("Jobs under way", &under_way.to_string(), ""))
            (tile("Up for", &figure::seconds(status["uptime_s"].as_u64().unwrap_or(0)),
                &format!("version {}", status["version"].as_str().unwrap_or("?"))))
        }
    }
}

/// The services that people use. The admin API is not among them: this page asks it all the time.
fn served(overview: &Value) -> impl Iterator<Item = &Value> {
    list(&overview["services"]).iter().filter(|one| one["name"] != "admin")
}

/// The stores that do not take everything.
fn unhealthy(stores: &Value) -> Markup {
    html! {
        section.card.warn aria-labelledby="unhealthy" {
            h2 #unhealthy { "Disks" }
            ul {
                @for one in list(stores) {
                    li { strong { (text(&one["store"])) } " " (state(text(&one["state"]))) ": " (text(&one["reason"])) }
                }
            }
        }
    }
}

fn troubles(troubles: &Value) -> Markup {
    html! {
        section.card.warn aria-labelledby="troubles" {
            h2 #troubles { "Troubles" }
            ul {
                @for trouble in list(troubles) {
                    li {
                        strong { (text(&trouble["work"])) } ": "
                        (text(&trouble["error"]))
                        " (" (trouble["count"]) " times)"
                    }
                }
            }
        }
    }
}

/// All requests, and those that were refused or failed, over the last minutes.
fn traffic(overview: &Value) -> Markup {
    let step_s = overview["step_s"].as_u64().unwrap_or(1).max(1);
    let services: Vec<&Value> = served(overview).collect();
    let steps = services.iter().map(|one| list(&one["recent"]).len()).max().unwrap_or(0);
    let per_second = |at: usize, which: std::ops::Range<usize>| {
        let count = |one: &&Value| {
            which.clone().filter_map(|it| one["recent"][at][it].as_u64()).sum::<u64>()
        };
        services.iter().map(count).sum::<u64>() as f64 / step_s as f64
    };
    let requests: Vec<f64> = (0..steps).map(|at| per_second(at, 0..1)).collect();
    let errors: Vec<f64> = (0..steps).map(|at| per_second(at, 1..3)).collect();
    let lines =
        [Line { name: "Requests", values: &requests }, Line { name: "Errors", values: &errors }];
    html! {
        (Lines { title: "Requests per second", lines: &lines, step_s, print: figure::rate }.draw())
        p.muted {
            span.key-first aria-hidden="true" {} " Requests "
            span.key-second aria-hidden="true" {} " Errors: refused or failed"
        }
    }
}

/// One account: its connection string without the key, and a way to ask for it.
fn connection(visit: &Visit<'_>, account: &Value, status: &Value) -> Markup {
    let name = text(&account["name"]);
    let action = format!("/portal/accounts/{}/keys", lazuli_http::uri::percent_encode(name));
    html! {
        div.account {
            h3 { (name) }
            code { (connection_string(name, MASK, &status["endpoints"])) }
            form method="post" action=(action) {
                (csrf(visit.session))
                button type="submit" { "Show the keys of " (name) }
            }
        }
    }
}

/// What clients take to find and use an account.
pub(crate) fn connection_string(account: &str, key: &str, endpoints: &Value) -> String {
    let first = endpoints["tables"].as_str().unwrap_or_default();
    let protocol = first.split("://").next().filter(|it| !it.is_empty()).unwrap_or("http");
    let mut text =
        format!("DefaultEndpointsProtocol={protocol};AccountName={account};AccountKey={key};");
    for (name, field) in
        [("blobs", "BlobEndpoint"), ("queues", "QueueEndpoint"), ("tables", "TableEndpoint")]
    {
        if let Some(url) = endpoints[name].as_str() {
            text.push_str(&format!("{field}={url}/{account};"));
        }
    }
    text
}
