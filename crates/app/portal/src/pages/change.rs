//! A change of a partition, in two steps: what it would do, and a button that says so; then it is done.

use lazuli_http::StatusCode;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::figure;
use crate::layout::{csrf, fact, list, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};
use crate::partitions::{Partition, path};

/// The changes of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionChange {
    Split,
    Merge,
    Move,
    Online,
    ReadOnly,
    Offline,
}

impl PartitionChange {
    pub(crate) const ALL: [Self; 6] =
        [Self::Split, Self::Merge, Self::Move, Self::Online, Self::ReadOnly, Self::Offline];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.word() == word)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Move => "move",
            Self::Online => "online",
            Self::ReadOnly => "read-only",
            Self::Offline => "offline",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Split => "Split",
            Self::Merge => "Merge",
            Self::Move => "Move",
            Self::Online => "Set online",
            Self::ReadOnly => "Set read-only",
            Self::Offline => "Set offline",
        }
    }
}

/// What a change would do.
struct Preview {
    /// The effect in words.
    effect: Markup,
    /// What is still to be chosen; a form that leads back here.
    choice: Markup,
    /// What the button says, and what it sends. None while something is to be chosen, or where it cannot be done.
    confirm: Option<(String, Vec<(&'static str, String)>)>,
}

pub(crate) async fn preview(visit: &Visit<'_>, id: u64, change: PartitionChange) -> Result {
    let shown = visit.api.get(&["v1", "partitions", &id.to_string()]).await?;
    let partition = Partition::read(&shown);
    let preview = match change {
        PartitionChange::Split => split(visit, &partition).await?,
        PartitionChange::Merge => merge(&partition, &shown["right"]),
        PartitionChange::Move => send(visit, &partition).await?,
        PartitionChange::Online | PartitionChange::ReadOnly | PartitionChange::Offline => {
            set_state(&partition, change)
        }
    };
    let title = format!("{} partition {id}", change.title());
    let body = html! {
        p.crumbs { a href=(partition.path()) { "Partition " (id) } }
        h1 { (title) }
        dl.facts.card {
            (fact("Container", html! { (partition.map) }))
            (fact("Keys", html! { (partition.keys()) }))
            (fact("Shard", html! { (partition.shard) }))
            (fact("State", html! { (partition.state) }))
            (fact("Items", html! { (figure::count(partition.items)) }))
            (fact("Stored", html! { (figure::bytes(partition.bytes)) }))
        }
        section.card aria-labelledby="effect" {
            h2 #effect { "What it does" }
            (preview.effect)
            (preview.choice)
            @if let Some((words, fields)) = &preview.confirm {
                form method="post" action={ (partition.path()) "/" (change.word()) } {
                    (csrf(visit.session))
                    @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                    div.actions {
                        button type="submit" { (words) }
                        a.button.quiet href=(partition.path()) { "Leave it as it is" }
                    }
                }
            }
        }
    };
    Outcome::page(title, Part::Containers, body)
}

pub(crate) async fn make(visit: &Visit<'_>, id: u64, change: PartitionChange) -> Result {
    let number = id.to_string();
    let post = |what: &'static str, body: Value| {
        let number = number.clone();
        async move { visit.api.post(&["v1", "partitions", &number, what], &body).await }
    };
    match change {
        PartitionChange::Split => {
            let body = match (visit.form.get("at"), visit.form.get("by")) {
                ("", by) => json!({ "by": if by.is_empty() { "size" } else { by } }),
                (at, _) => json!({ "at": at }),
            };
            let done = post("split", body).await?;
            let pieces: Vec<Partition> =
                list(&done["partitions"]).iter().map(Partition::read).collect();
            let ids: Vec<String> = pieces.iter().map(|piece| piece.id.to_string()).collect();
            let map = pieces.first().map(|piece| piece.map.clone()).unwrap_or_default();
            let words = format!("Partition {id} was split: now there are {}.", ids.join(" and "));
            Outcome::done(super::containers::path(&map), words)
        }
        PartitionChange::Merge => {
            let done = post("merge", json!({})).await?;
            let merged = Partition::read(&done["partition"]);
            let words =
                format!("Partition {id} and its neighbour are partition {} now.", merged.id);
            Outcome::done(merged.path(), words)
        }
        PartitionChange::Move => {
            let to = visit.form.get("to");
            let done = post("move", json!({ "to": to })).await?;
            let words = format!("Job {} moves partition {id} to {to}.", done["job"]);
            Outcome::done(super::jobs::PATH, words)
        }
        PartitionChange::Online | PartitionChange::ReadOnly | PartitionChange::Offline => {
            let done = post("state", json!({ "state": change.word() })).await?;
            let state = Partition::read(&done["partition"]).state;
            Outcome::done(path(id), format!("Partition {id} is {state} now."))
        }
    }
}

async fn split(visit: &Visit<'_>, one: &Partition) -> Result<Preview> {
    let by = match visit.query.get("by") {
        Some("load") => "load",
        _ => "size",
    };
    let at = visit.query.get("at").unwrap_or_default().trim().to_owned();
    let choice = html! {
        form.inline method="get" action={ (one.path()) "/split" } {
            div {
                label for="by" { "Halves of the same" }
                select #by name="by" {
                    option value="size" selected[by == "size"] { "size" }
                    option value="load" selected[by == "load"] { "load" }
                }
            }
            div {
                label for="at" { "Or at this key" }
                input #at name="at" value=(at);
            }
            button.quiet type="submit" { "Show what it does" }
        }
    };
    let (key, fields) = if at.is_empty() {
        let pieces = ["v1", "partitions", &one.id.to_string(), "middle"];
        match visit.api.get_with(&pieces, &[("by", by)]).await {
            Ok(found) => (text(&found["at"]).to_owned(), vec![("by", by.to_owned())]),
            Err(refused) => {
                let effect = html! { p.notice.bad { "It cannot be split: " (refused.message) } };
                return Ok(Preview { effect, choice, confirm: None });
            }
        }
    } else {
        (at.clone(), vec![("at", at)])
    };
    let left = Partition { to: Some(key.clone()), ..one.clone() };
    let right = Partition { from: Some(key.clone()), ..one.clone() };
    let effect = html! {
        p { "Partition " (one.id) " becomes two on " (one.shard) ", in an instant and in place; nothing is copied:" }
        ul { li { (left.keys()) } li { (right.keys()) } }
        p.muted { "Where the middle is may have moved by the time you confirm." }
    };
    let words = format!("Split partition {} at {key}", one.id);
    Ok(Preview { effect, choice, confirm: Some((words, fields)) })
}

fn merge(one: &Partition, right: &Value) -> Preview {
    if right.is_null() {
        let effect =
            html! { p.notice.bad { "It is the last one: there is no neighbour on its right." } };
        return Preview { effect, choice: html! {}, confirm: None };
    }
    let right = Partition::read(right);
    let merged = Partition { to: right.to.clone(), ..one.clone() };
    let same = one.shard == right.shard;
    let effect = html! {
        p {
            "Partition " (one.id) " and its neighbour on the right, partition " (right.id)
            " (" (figure::bytes(right.bytes)) "), become one: " (merged.keys()) "."
        }
        @if !same {
            p.notice.bad {
                "They are on different shards. Move partition " (right.id) " to " (one.shard) " first."
            }
        }
    };
    let words = format!("Merge partition {} with partition {}", one.id, right.id);
    Preview { effect, choice: html! {}, confirm: same.then(|| (words, Vec::new())) }
}

async fn send(visit: &Visit<'_>, one: &Partition) -> Result<Preview> {
    let shards = visit.api.get(&["v1", "shards"]).await?;
    let others: Vec<&Value> =
        list(&shards["shards"]).iter().filter(|shard| text(&shard["name"]) != one.shard).collect();
    if others.is_empty() {
        let effect =
            html! { p.notice.bad { "There is no other shard. `lazuli shard add` makes one." } };
        return Ok(Preview { effect, choice: html! {}, confirm: None });
    }
    let to = visit.query.get("to").unwrap_or_default();
    let choice = html! {
        form.inline method="get" action={ (one.path()) "/move" } {
            div {
                label for="to" { "To the shard" }
                select #to name="to" {
                    @for shard in &others {
                        option value=(text(&shard["name"])) selected[text(&shard["name"]) == to] {
                            (text(&shard["name"])) " (" (text(&shard["region"])) ", "
                            (shard["partitions"]) " partitions)"
                        }
                    }
                }
            }
            button.quiet type="submit" { "Show what it does" }
        }
    };
    if to.is_empty() {
        let effect = html! { p { "Choose where it is to go. It stays in use while it moves." } };
        return Ok(Preview { effect, choice, confirm: None });
    }
    if !others.iter().any(|shard| text(&shard["name"]) == to) {
        return Err(Fault::new(StatusCode::NOT_FOUND, format!("there is no other shard {to}")));
    }
    let effect = html! {
        p {
            "A job copies " (figure::bytes(one.bytes)) " (" (figure::count(one.items)) " items) from "
            (one.shard) " to " (to) " while partition " (one.id)
            " stays in use. At the end writes pause for a moment; requests that meet the pause wait and go on."
        }
    };
    let words = format!("Move partition {} to {to}", one.id);
    Ok(Preview { effect, choice, confirm: Some((words, vec![("to", to.to_owned())])) })
}

fn set_state(one: &Partition, change: PartitionChange) -> Preview {
    let word = change.word();
    let effect = match change {
        _ if one.state == word => html! { p { "Partition " (one.id) " is " (word) " already." } },
        PartitionChange::Offline => html! {
            p { "Reads and writes of " (figure::count(one.items)) " items are refused until it is online again." }
        },
        PartitionChange::ReadOnly => html! {
            p { "Reads go on; writes of " (figure::count(one.items)) " items are refused until it is online again." }
        },
        _ => html! { p { "Reads and writes are served again." } },
    };
    let words = format!("{} partition {}", change.title(), one.id);
    let confirm = (one.state != word).then(|| (words, Vec::new()));
    Preview { effect, choice: html! {}, confirm }
}
