//! An event hub: its partitions with their rates, how far its consumers are behind, and a way to add partitions.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::place::link;
use super::{count, crumbs};
use crate::figure;
use crate::layout::{csrf, list, live, number_table, text};
use crate::page::{Outcome, Part, Result, Visit};

pub(super) async fn show(visit: &Visit<'_>, account: &str, name: &str) -> Result {
    let hub = visit.api.get(&["v1", "hubs", account, name]).await?;
    let partitions = hub["partitions"].as_u64().unwrap_or(1);
    let body = html! {
        (crumbs(&[(account, link(&[account]))], html! { (name) }))
        h1 { "Hub " (name) }
        section.card aria-labelledby="partitions" {
            h2 #partitions { "Partitions" }
            (live("partitions", partition_rows(list(&hub["all_partitions"]))))
        }
        section.card aria-labelledby="consumers" {
            h2 #consumers { "Consumer groups" }
            (live("consumers", consumer_rows(list(&hub["consumers"]))))
            @if !list(&hub["groups"]).is_empty() {
                p.muted {
                    "Named for readers over AMQP: "
                    (list(&hub["groups"]).iter().map(text).collect::<Vec<_>>().join(", "))
                }
            }
        }
        form.card method="post" action=(link(&[account, "hubs", name, "send"])) {
            (csrf(visit.session))
            label for="text" { "New event" }
            textarea #text name="text" rows="3" required {}
            label for="key" { "Key" }
            input #key name="key" autocomplete="off";
            button type="submit" { "Send" }
        }
        form.inline method="post" action=(link(&[account, "hubs", name, "partitions"])) {
            (csrf(visit.session))
            div {
                label for="count" { "Partitions; they only grow" }
                input #count name="count" type="number" min=(partitions) max="1024" value=(partitions);
            }
            button type="submit" { "Set" }
        }
    };
    Outcome::page(format!("Hub {name}"), Part::Messaging, body)
}

fn rate(value: &Value) -> String {
    value.as_f64().map_or("–".to_owned(), |rate| format!("{rate:.1}"))
}

fn partition_rows(partitions: &[Value]) -> Markup {
    let rows = html! {
        @for one in partitions {
            tr data-partition=(one["partition"]) {
                th scope="row" {
                    @match one["map_partition"].as_u64() {
                        Some(id) => { a href={ "/portal/partitions/" (id) } { (one["partition"]) } }
                        None => { (one["partition"]) }
                    }
                }
                td.number { (count(&one["first"])) }
                td.number { (count(&one["next"])) }
                td.number { (figure::bytes(one["bytes"].as_u64().unwrap_or(0))) }
                td.number { (rate(&one["appends_per_second"])) }
                td.number { (rate(&one["reads_per_second"])) }
            }
        }
    };
    let numbers = ["First", "Next", "Bytes", "Appends/s", "Reads/s"];
    number_table("Partitions of the hub", &["Partition"], &numbers, rows)
}

fn consumer_rows(consumers: &[Value]) -> Markup {
    if consumers.is_empty() {
        return html! { p.muted { "No group has committed an offset." } };
    }
    let rows = html! {
        @for one in consumers {
            @let partitions = one["partitions"].as_object();
            @let each = partitions.into_iter().flatten().map(|(partition, lag)| format!("{partition}: {lag}"));
            tr data-group=(text(&one["group"])) {
                th.key scope="row" { (text(&one["group"])) }
                td { (each.collect::<Vec<_>>().join(", ")) }
                td.number { (count(&one["lag"])) }
            }
        }
    };
    number_table("Consumer groups", &["Group", "Behind, by partition"], &["Behind"], rows)
}

pub(super) async fn send(visit: &Visit<'_>, account: &str, name: &str) -> Result {
    let text = visit.form.get("text").replace("\r\n", "\n");
    let key = Some(visit.form.get("key")).filter(|it| !it.is_empty());
    let pieces = ["v1", "hubs", account, name, "events"];
    let sent = visit.api.post(&pieces, &json!({ "text": text, "key": key })).await?;
    let (partition, offset) = (&sent["partition"], &sent["offset"]);
    let notice = format!("Sent to partition {partition} at offset {offset}.");
    Outcome::done(link(&[account, "hubs", name]), notice)
}

pub(super) async fn grow(visit: &Visit<'_>, account: &str, name: &str) -> Result {
    let count = visit.form.get("count").parse::<u64>().ok();
    let pieces = ["v1", "hubs", account, name, "partitions"];
    let hub = visit.api.put(&pieces, &json!({ "count": count })).await?;
    let notice = format!("The hub has {} partitions.", hub["partitions"]);
    Outcome::done(link(&[account, "hubs", name]), notice)
}
