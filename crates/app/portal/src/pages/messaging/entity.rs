//! A queue, topic or subscription: its counts, what waits in it, its dead letters and a way to send them back.

use lazuli_http::{Body, HeaderMap, Method, StatusCode};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::place::link;
use super::{count, crumbs};
use crate::layout::{csrf, list, live, number_table, text, tile};
use crate::page::{Fault, Outcome, Part, Result, Visit};

/// How many messages of each queue are shown.
const PEEKED: &str = "32";
const DEAD_LETTERS: &str = "$DeadLetterQueue";

pub(super) async fn show(visit: &Visit<'_>, account: &str, name: &str) -> Result {
    let entity = visit.api.get(&["v1", "bus", account, name]).await?;
    let is_topic = entity["kind"] == "topic";
    let (waiting, dead) = match is_topic {
        true => (Value::Null, Value::Null),
        false => {
            let dead = format!("{name}/{DEAD_LETTERS}");
            (peek(visit, account, name).await?, peek(visit, account, &dead).await?)
        }
    };
    let body = html! {
        (crumbs(&[(account, link(&[account]))], html! { (name) }))
        h1 { (text(&entity["kind"])) " " (name) }
        (live("counts", html! {
            dl.tiles {
                (tile("Active", &count(&entity["active"]), ""))
                (tile("Dead letters", &count(&entity["dead_letter"]), ""))
                (tile("Scheduled", &count(&entity["scheduled"]), ""))
                (tile("Partitions", &count(&entity["partitions"]), ""))
            }
        }))
        @if is_topic {
            (subscriptions(account, list(&entity["all_subscriptions"])))
        } @else {
            section.card aria-labelledby="messages" {
                h2 #messages { "Messages" }
                p.muted { "The first ones. Looking at them changes nothing." }
                (live("messages", messages(list(&waiting["messages"]), None)))
            }
            section.card aria-labelledby="dead" {
                h2 #dead { "Dead letters" }
                (live("dead", messages(list(&dead["messages"]), Some((visit, account, name)))))
                @if !list(&dead["messages"]).is_empty() {
                    form method="post" action=(link(&[account, "bus", name, "resubmit"])) {
                        (csrf(visit.session))
                        button type="submit" { "Send all dead letters back" }
                    }
                }
            }
        }
        @if entity["kind"] != "subscription" { (sending(visit, account, name, &entity)) }
        @if !is_topic { (purging(visit, account, name)) }
    };
    Outcome::page(name, Part::Messaging, body)
}

async fn peek(visit: &Visit<'_>, account: &str, name: &str) -> Result<Value> {
    let pieces = ["v1", "bus", account, name, "messages"];
    Ok(visit.api.get_with(&pieces, &[("limit", PEEKED)]).await?)
}

fn subscriptions(account: &str, all: &[Value]) -> Markup {
    let rows = html! {
        @for one in all {
            @let name = text(&one["name"]);
            tr {
                th.key scope="row" { a href=(link(&[account, "bus", name])) { (name) } }
                td.number { (count(&one["active"])) }
                td.number { (count(&one["dead_letter"])) }
            }
        }
    };
    html! {
        section.card aria-labelledby="subscriptions" {
            h2 #subscriptions { "Subscriptions" }
            @if all.is_empty() { p.muted { "There is none: what is sent goes nowhere." } }
            @else { (number_table("Subscriptions", &["Name"], &["Active", "Dead letters"], rows)) }
        }
    }
}

/// Messages; dead letters with a button to send each back.
fn messages(all: &[Value], back: Option<(&Visit<'_>, &str, &str)>) -> Markup {
    html! {
        @if all.is_empty() { p.muted { "There is none." } }
        @for message in all {
            @let number = text(&message["number"]);
            article.job aria-label={ "Message " (number) } {
                pre.preview tabindex="0" { (text(&message["text"])) }
                dl.facts {
                    div { dt { "Number" } dd { (number) } }
                    div { dt { "State" } dd { (text(&message["state"])) } }
                    div { dt { "Delivered" } dd { (message["deliveries"]) " times" } }
                    @for (field, title) in [("id", "Id"), ("session", "Session"), ("label", "Label")] {
                        @if let Some(value) = message[field].as_str() {
                            div { dt { (title) } dd { (value) } }
                        }
                    }
                    @for (name, value) in message["properties"].as_object().into_iter().flatten() {
                        div { dt { (name) } dd { (text(value)) } }
                    }
                }
                @if let Some((visit, account, entity)) = back {
                    form method="post" action=(link(&[account, "bus", entity, "resubmit"])) {
                        (csrf(visit.session))
                        input type="hidden" name="number" value=(number);
                        button.quiet type="submit" { "Send " (number) " back" }
                    }
                }
            }
        }
    }
}

fn sending(visit: &Visit<'_>, account: &str, name: &str, entity: &Value) -> Markup {
    html! {
        form.card method="post" action=(link(&[account, "bus", name, "send"])) {
            (csrf(visit.session))
            label for="text" { "New message" }
            textarea #text name="text" rows="4" required {}
            @if entity["sessions"] == true {
                label for="session" { "Session" }
                input #session name="session" required autocomplete="off";
            }
            button type="submit" { "Send" }
        }
    }
}

fn purging(visit: &Visit<'_>, account: &str, name: &str) -> Markup {
    html! {
        form.card method="post" action=(link(&[account, "bus", name, "purge"])) {
            (csrf(visit.session))
            label { input type="checkbox" name="sure" value="yes" required; " Delete all messages that nobody holds" }
            button.danger type="submit" { "Purge" }
        }
    }
}

pub(super) async fn send(visit: &Visit<'_>, account: &str, name: &str) -> Result {
    // Browsers end the lines of a form with CR LF.
    let text = visit.form.get("text").replace("\r\n", "\n");
    let session = Some(visit.form.get("session")).filter(|it| !it.is_empty());
    let pieces = ["v1", "bus", account, name, "messages"];
    visit.api.post(&pieces, &json!({ "text": text, "session": session })).await?;
    Outcome::done(link(&[account, "bus", name]), "The message is sent.")
}

pub(super) async fn resubmit(visit: &Visit<'_>, account: &str, name: &str) -> Result {
    let number = Some(visit.form.get("number")).filter(|it| !it.is_empty());
    let body = json!({ "numbers": number.map(|number| [number]) });
    let answer = visit.api.post(&["v1", "bus", account, name, "resubmit"], &body).await?;
    let sent = count(&answer["resubmitted"]);
    Outcome::done(link(&[account, "bus", name]), format!("Sent back: {sent}."))
}

pub(super) async fn purge(visit: &Visit<'_>, account: &str, name: &str) -> Result {
    if visit.form.get("sure") != "yes" {
        let message = "tick the box to say that this is meant";
        return Err(Fault::new(StatusCode::BAD_REQUEST, message));
    }
    let pieces = ["v1", "bus", account, name, "messages"];
    visit.api.send(Method::DELETE, &pieces, &[], HeaderMap::new(), Body::empty()).await?;
    Outcome::done(link(&[account, "bus", name]), "What nobody holds is deleted.")
}
