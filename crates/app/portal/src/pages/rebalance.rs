//! The balancer: what it would do, with each shard before and after, and what it does and did.

use lazuli_http::{Body, HeaderMap, Method};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::chart::Bars;
use crate::figure;
use crate::layout::{csrf, fact, list, live, number_table, text};
use crate::page::{Outcome, Part, Result, Visit};
use crate::shards::Colours;

pub(crate) const PATH: &str = "/portal/rebalance";

/// The most actions of a plan that the page lists.
const ACTIONS_SHOWN: usize = 200;

/// What can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    Begin,
    Stop,
}

impl Balance {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Begin, Self::Stop].into_iter().find(|one| one.word() == word)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Stop => "stop",
        }
    }
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let plan = visit.api.get(&["v1", "rebalance", "plan"]).await?;
    let state = visit.api.get(&["v1", "rebalance"]).await?;
    let colours = Colours::of(visit.api).await?;
    let actions = list(&plan["actions"]);
    let is_running = !state["running"].is_null();
    let body = html! {
        h1 { "Rebalance" }
        section.card aria-labelledby="now" {
            h2 #now { "Now" }
            (live("now", now(&state)))
            @if is_running { (button(visit, Balance::Stop, "Stop after what has begun")) }
        }
        section.card aria-labelledby="plan" {
            h2 #plan { "Plan" }
            (live("plan", html! {
                (summary(&plan))
                div.columns {
                    (compared("Storage per shard", &plan, &colours, "bytes", figure::bytes))
                    (compared("Requests per shard", &plan, &colours, "requests", figure::count))
                }
                (shards(&plan, &colours))
            }))
            @if !actions.is_empty() && !is_running {
                p {
                    "It is carried out step by step while everything stays in use, and drawn anew between the \
                        steps: what happens meanwhile may change it. Jobs show each move, and it can be stopped."
                }
                (button(visit, Balance::Begin, &format!("Carry out this plan of {} actions", plan["actions_count"])))
            }
        }
        section.card aria-labelledby="actions" {
            h2 #actions { "Actions of the plan" }
            (live("actions", steps(&plan, &colours)))
        }
        section.card aria-labelledby="done" {
            h2 #done { "Done since the start" }
            (live("done", done(&state, &colours)))
        }
    };
    Outcome::page("Rebalance", Part::Rebalance, body)
}

pub(crate) async fn make(visit: &Visit<'_>, balance: Balance) -> Result {
    match balance {
        Balance::Begin => {
            visit.api.post(&["v1", "rebalance"], &json!({})).await?;
            Outcome::done(PATH, "The plan is being carried out.")
        }
        Balance::Stop => {
            let pieces = ["v1", "rebalance"];
            let (method, headers) = (Method::DELETE, HeaderMap::new());
            visit.api.send(method, &pieces, &[], headers, Body::empty()).await?;
            Outcome::done(PATH, "Nothing more is begun; what is under way ends.")
        }
    }
}

fn button(visit: &Visit<'_>, balance: Balance, words: &str) -> Markup {
    html! {
        form method="post" action={ (PATH) "/" (balance.word()) } {
            (csrf(visit.session))
            button type="submit" { (words) }
        }
    }
}

fn now(state: &Value) -> Markup {
    let running = match (state["running"].as_str(), state["stopping"] == true) {
        (None, _) => "nothing is carried out".to_owned(),
        (Some(how), false) => format!("a plan is carried out, asked for {how}"),
        (Some(_), true) => "ends with what is under way".to_owned(),
    };
    html! {
        dl.facts {
            (fact("State", html! { (running) }))
            (fact("By itself", html! { @if state["automatic"] == true { "yes" } @else { "no" } }))
            (fact("Plans drawn", html! { (state["plans"]) }))
            (fact("Under way", html! { (list(&state["underway"]).len()) }))
            (fact("Waiting", html! { (state["waiting"]) }))
        }
        @if let Some(trouble) = state["trouble"].as_str() { p.notice.bad { (trouble) } }
    }
}

fn summary(plan: &Value) -> Markup {
    let moved = plan["bytes_to_move"].as_u64().unwrap_or(0);
    html! {
        @if list(&plan["actions"]).is_empty() { p { "Everything is as even as it can be: there is nothing to do." } }
        @else {
            p {
                (plan["actions_count"]) " actions, which move " (figure::bytes(moved)) "."
                @if plan["cut_short"] == true { " More may follow." }
            }
        }
        @for note in list(&plan["left"]) {
            p.muted { "Left as it is: partition " (note["partition"]) ", " (text(&note["why"])) "." }
        }
    }
}

/// Each shard before and after the plan.
fn compared(
    title: &str,
    plan: &Value,
    colours: &Colours,
    field: &str,
    print: fn(u64) -> String,
) -> Markup {
    let shards = list(&plan["shards"]);
    let value = |one: &Value, when: &str| one[when][field].as_f64().unwrap_or(0.0) as u64;
    let (mut values, mut names, mut paints) = (Vec::new(), Vec::new(), Vec::new());
    for shard in shards {
        let name = text(&shard["shard"]);
        for when in ["before", "after"] {
            values.push(value(shard, when));
            names.push(format!("{name} {when}"));
            paints.push(colours.get(name));
        }
    }
    let axis = "shards, each before and after";
    html! {
        div {
            h3 { (title) }
            (Bars { title, axis, values: &values, names: &names, colours: Some(&paints), print }.draw())
        }
    }
}

fn shards(plan: &Value, colours: &Colours) -> Markup {
    let bytes = |one: &Value| figure::bytes(one["bytes"].as_f64().unwrap_or(0.0) as u64);
    let requests = |one: &Value| figure::count(one["requests"].as_f64().unwrap_or(0.0) as u64);
    let rows = html! {
        @for one in list(&plan["shards"]) {
            tr {
                th.name scope="row" { (colours.name(text(&one["shard"]))) }
                td { (text(&one["state"])) }
                td.number { (one["partitions"]) }
                td.number { (bytes(&one["before"])) }
                td.number { (bytes(&one["after"])) }
                td.number { (requests(&one["before"])) }
                td.number { (requests(&one["after"])) }
            }
        }
    };
    let numbers =
        ["Partitions", "Storage before", "Storage after", "Requests before", "Requests after"];
    number_table("Shards before and after", &["Shard", "State"], &numbers, rows)
}

fn steps(plan: &Value, colours: &Colours) -> Markup {
    let actions = list(&plan["actions"]);
    if actions.is_empty() {
        return html! { p.muted { "There is none." } };
    }
    let rows = html! {
        @for action in actions.iter().take(ACTIONS_SHOWN) {
            tr {
                td.number { (action["round"]) }
                td { (text(&action["kind"])) }
                td { (partition(action)) }
                td { (whereto(action, colours)) }
                td { (why(action)) }
                td.number { (figure::bytes(action["load"]["bytes"].as_f64().unwrap_or(0.0) as u64)) }
            }
        }
    };
    html! {
        (number_table("Actions", &["Round", "Kind", "Partition", "Where", "Why"], &["Storage"], rows))
        @if actions.len() > ACTIONS_SHOWN { p.muted { "These are the first " (ACTIONS_SHOWN) "." } }
    }
}

fn partition(action: &Value) -> Markup {
    let id = |value: &Value| match value.as_u64() {
        Some(id) => html! { a href=(crate::partitions::path(id)) { (id) } },
        None => html! { (text(value)) },
    };
    html! { (id(&action["partition"])) @if !action["right"].is_null() { " and " (id(&action["right"])) } }
}

fn whereto(action: &Value, colours: &Colours) -> Markup {
    match (action["from"].as_str(), action["to"].as_str()) {
        (Some(from), Some(to)) => html! { (colours.name(from)) " to " (colours.name(to)) },
        _ => colours.name(text(&action["shard"])),
    }
}

fn why(action: &Value) -> &str {
    action["why"].as_str().or_else(|| action["cut"].as_str()).unwrap_or("")
}

fn done(state: &Value, colours: &Colours) -> Markup {
    let ended = list(&state["ended"]);
    if ended.is_empty() {
        return html! { p.muted { "Nothing was done." } };
    }
    let rows = html! {
        @for one in ended.iter().take(ACTIONS_SHOWN) {
            tr {
                td.name { (figure::moment(one["ended_ms"].as_u64().unwrap_or(0))) }
                td { (text(&one["kind"])) }
                td { (partition(one)) }
                td { (whereto(one, colours)) }
                td.key { @match one["trouble"].as_str() { Some(trouble) => (trouble), None => "done" } }
            }
        }
    };
    number_table("Done", &["When", "Kind", "Partition", "Where", "Outcome"], &[], rows)
}
