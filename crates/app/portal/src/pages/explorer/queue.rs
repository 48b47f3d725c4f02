//! One queue: how many messages there are, the first of them, a way to put one, and one to remove all.

use lazuli_http::{Body, HeaderMap, Method};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::place::ItemPath;
use super::stored::{stored, whole};
use super::{crumbs, sure, tell};
use crate::layout::{csrf, list, text};
use crate::page::{Outcome, Part, Result, Visit};

/// How many messages are peeked at: as many as the service shows at once.
const PEEKED: &str = "32";

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let queue = visit.api.get(&path.api(&[])).await?;
    let pieces = path.api(&["messages"]);
    let found = visit.api.get_with(&pieces, &[("limit", PEEKED)]).await?;
    let messages = list(&found["messages"]);
    let above = [path.list()];
    let body = html! {
        (crumbs(&above, stored(&path.name)))
        h1 { "Queue " (stored(&path.name)) }
        section.card aria-labelledby="messages" {
            h2 #messages { "Messages at the front" }
            p.muted { "About " (queue["messages"]) " in all. Looking at them changes nothing." }
            @if messages.is_empty() { p.muted { "No message can be seen now." } }
            @for message in messages { (one(message)) }
        }
        form.card method="post" action=(path.link(&["put"], &[])) {
            (csrf(visit.session))
            label for="text" { "New message" }
            textarea #text name="text" rows="4" required {}
            button type="submit" { "Put" }
        }
        form.card method="post" action=(path.link(&["clear"], &[])) {
            (csrf(visit.session))
            label { input type="checkbox" name="sure" value="yes" required; " Remove all messages" }
            button.danger type="submit" { "Clear" }
        }
    };
    Outcome::page(format!("Queue {}", path.name), Part::Explorer, body)
}

fn one(message: &Value) -> Markup {
    html! {
        article.job aria-label={ "Message " (text(&message["id"])) } {
            pre.preview tabindex="0" { (whole(text(&message["text"]))) }
            dl.facts {
                div { dt { "Put" } dd { (text(&message["inserted"])) } }
                div { dt { "Expires" } dd { (text(&message["expires"])) } }
                div { dt { "Received" } dd { (message["dequeues"]) " times" } }
            }
        }
    }
}

pub(super) async fn put(visit: &Visit<'_>, path: &ItemPath) -> Result {
    // Browsers end the lines of a form with CR LF.
    let text = visit.form.get("text").replace("\r\n", "\n");
    let pieces = path.api(&["messages"]);
    visit.api.post(&pieces, &json!({ "text": text })).await?;
    Outcome::done(path.link(&[], &[]), "The message is put.")
}

pub(super) async fn clear(visit: &Visit<'_>, path: &ItemPath) -> Result {
    sure(visit)?;
    let pieces = path.api(&["messages"]);
    tell(visit, Method::DELETE, &pieces, &[], HeaderMap::new(), Body::empty()).await?;
    Outcome::done(path.link(&[], &[]), "The queue is empty.")
}
