//! Adds, drains, fills and removes shards: first what that would do, then the change.

use lazuli_http::{Body, HeaderMap, Method, StatusCode};
use maud::html;
use serde_json::{Map, Value, json};

use super::place::{PATH, ShardAction, link};
use crate::figure;
use crate::layout::{csrf, list, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};
use crate::pages::confirm::Confirm;

/// What was filled in to add a shard.
const FIELDS: [&str; 4] = ["name", "region", "labels", "at"];

/// The form of a new shard on the page of all.
pub(super) fn new_shard() -> maud::Markup {
    html! {
        details.card {
            summary { "Add a shard" }
            form method="get" action={ (PATH) "/add" } {
                label for="name" { "Name" }
                input #name name="name" required autocomplete="off" placeholder="shard-0002";
                label for="region" { "Region" }
                input #region name="region" autocomplete="off" placeholder="local";
                label for="labels" { "Labels" }
                input #labels name="labels" autocomplete="off" placeholder="disk=fast, rack=7";
                button.quiet type="submit" { "Show what it does" }
            }
        }
    }
}

pub(super) async fn preview_add(visit: &Visit<'_>) -> Result {
    let given = |name: &str| visit.query.get(name).unwrap_or_default().trim().to_owned();
    let [name, region, labels, at] = FIELDS.map(given);
    let read = read_labels(&labels)?;
    let shards = visit.api.get(&["v1", "shards"]).await?;
    let all = list(&shards["shards"]);
    let is_there = all.iter().any(|one| one["name"] == name.as_str());
    let words = (!is_there && !name.is_empty()).then(|| format!("Add the shard {name}"));
    let effect = html! {
        @if is_there { p.notice.bad { "There is a shard " (name) " already." } }
        @else {
            p {
                "The shard " strong { (name) } " is made, empty, beside the " (all.len())
                " that there are. New partitions may be placed on it at once; those that there are stay where \
                    they are until they are moved."
            }
            dl.facts {
                div { dt { "Region" } dd { (if region.is_empty() { "local" } else { &region }) } }
                @for (name, value) in &read { div { dt { (name) } dd { (text(value)) } } }
            }
            form method="post" action={ (PATH) "/add" } {
                (csrf(visit.session))
                input type="hidden" name="name" value=(name);
                input type="hidden" name="region" value=(region);
                input type="hidden" name="labels" value=(labels);
                label for="at" { "Address of a PostgreSQL database that is to hold it; empty for a folder beside \
                    the others" }
                // It may have a password, which must not stand in the address of a page.
                input #at name="at" type="password" value=(at) autocomplete="off";
                div.actions {
                    button type="submit" { (words.clone().unwrap_or_default()) }
                    a.button.quiet href=(PATH) { "Leave it as it is" }
                }
            }
        }
    };
    let body = html! {
        h1 { "Add a shard" }
        section.card aria-labelledby="effect" {
            h2 #effect { "What it does" }
            (effect)
        }
    };
    Outcome::page("Add a shard", Part::Shards, body)
}

/// `a=b, c=d` as an object.
fn read_labels(labels: &str) -> Result<Map<String, Value>> {
    let mut read = Map::new();
    for pair in labels.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let wrong = || {
            let message = format!("labels are written as disk=fast, rack=7, not as {pair}");
            Fault::new(StatusCode::BAD_REQUEST, message)
        };
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        read.insert(name.trim().to_owned(), json!(value.trim()));
    }
    Ok(read)
}

pub(super) async fn add(visit: &Visit<'_>) -> Result {
    let given = |name: &str| Some(visit.form.get(name).trim()).filter(|it| !it.is_empty());
    let labels = read_labels(visit.form.get("labels"))?;
    let body = json!({
        "name": given("name"), "region": given("region"), "labels": labels, "at": given("at"),
    });
    let shard = visit.api.post(&["v1", "shards"], &body).await?;
    Outcome::done(PATH, format!("The shard {} is there.", text(&shard["name"])))
}

pub(super) async fn preview(visit: &Visit<'_>, name: &str, action: ShardAction) -> Result {
    let shards = visit.api.get(&["v1", "shards"]).await?;
    let all = list(&shards["shards"]);
    let missing = || Fault::new(StatusCode::NOT_FOUND, format!("there is no shard {name}"));
    let shard = all.iter().find(|one| one["name"] == name).ok_or_else(missing)?;
    let partitions = shard["partitions"].as_u64().unwrap_or(0);
    let held = figure::count(partitions);
    let is_draining = shard["state"] == "draining";
    let online = all.iter().filter(|one| one["state"] == "online" && one["name"] != name).count();
    let (title, effect, words) = match action {
        ShardAction::Drain => (
            format!("Drain {name}"),
            html! {
                @if is_draining { p { (name) " is being drained already." } }
                @else if online == 0 { p.notice.bad { "There is no other shard online that could take its \
                    partitions. Add one first." } }
                @else {
                    p {
                        "Its " (held) " partitions move to the " (online)
                        " other shards that are online, one after the other, while they stay in use. No new ones \
                            are placed on it. Afterwards it can be removed."
                    }
                }
            },
            (!is_draining && online > 0).then(|| format!("Drain {name}")),
        ),
        ShardAction::Fill => (
            format!("Let {name} be filled again"),
            html! {
                @if is_draining { p { (name) " may take partitions again, and those that it still has stay. Moves \
                    that are under way go on." } }
                @else { p { (name) " is not being drained." } }
            },
            is_draining.then(|| format!("Let {name} be filled again")),
        ),
        ShardAction::Remove => (
            format!("Remove {name}"),
            html! {
                @if partitions > 0 {
                    p.notice.bad { "It still has " (held) " partitions. Drain it first." }
                } @else {
                    p { (name) " has no partitions. It is taken out of the catalog, and its folder is deleted; a \
                        database is left as it is." }
                }
            },
            (partitions == 0).then(|| format!("Remove {name}")),
        ),
    };
    let confirm = Confirm {
        title,
        part: Part::Shards,
        effect,
        action: link(name, action),
        fields: &[],
        words,
        is_dangerous: action == ShardAction::Remove,
        back: PATH,
    };
    confirm.page(visit)
}

pub(super) async fn make(visit: &Visit<'_>, name: &str, action: ShardAction) -> Result {
    let (method, pieces, words): (_, &[&str], _) = match action {
        ShardAction::Drain => (Method::POST, &["v1", "shards", name, "drain"], "is being drained"),
        ShardAction::Fill => (Method::DELETE, &["v1", "shards", name, "drain"], "is filled again"),
        ShardAction::Remove => (Method::DELETE, &["v1", "shards", name], "is removed"),
    };
    let body = Body::from(bytes::Bytes::from_static(b"{}"));
    visit.api.send(method, pieces, &[], HeaderMap::new(), body).await?;
    Outcome::done(PATH, format!("The shard {name} {words}."))
}
