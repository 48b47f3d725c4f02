//! Queues, topics and hubs: what waits in them, and what went wrong; one file for each page.

mod entity;
mod hub;
mod place;

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::figure;
use crate::layout::{csrf, list, live, number_table, table, text};
use crate::page::{Outcome, Part, Result, Visit};
pub(crate) use place::MessagingPage;
use place::{EntityAction, HubAction, link};

/// The most of one kind on the page of an account.
const SHOWN: &str = "500";

/// The one table of these pages.
pub(crate) async fn show(visit: &Visit<'_>, page: &MessagingPage) -> Result {
    match page {
        MessagingPage::Index => index(visit).await,
        MessagingPage::Account(account) => account_page(visit, account).await,
        MessagingPage::CreateEntity(account) => create_entity(visit, account).await,
        MessagingPage::CreateHub(account) => create_hub(visit, account).await,
        MessagingPage::Entity(account, name) => entity::show(visit, account, name).await,
        MessagingPage::ChangeEntity(account, name, action) => match action {
            EntityAction::Send => entity::send(visit, account, name).await,
            EntityAction::Resubmit => entity::resubmit(visit, account, name).await,
            EntityAction::Purge => entity::purge(visit, account, name).await,
        },
        MessagingPage::Hub(account, name) => hub::show(visit, account, name).await,
        MessagingPage::ChangeHub(account, name, action) => match action {
            HubAction::Send => hub::send(visit, account, name).await,
            HubAction::Partitions => hub::grow(visit, account, name).await,
        },
    }
}

/// Where a page is: links to all that it is in, and its own name.
fn crumbs(above: &[(&str, String)], here: Markup) -> Markup {
    html! {
        nav.crumbs aria-label="Where this is" {
            ol {
                li { a href=(Part::Messaging.path()) { "Messaging" } }
                @for (name, to) in above { li { a href=(to) { (name) } } }
                li aria-current="page" { (here) }
            }
        }
    }
}

/// A number of an answer; none is shown as a dash.
fn count(value: &Value) -> String {
    value.as_u64().map_or("–".to_owned(), figure::count)
}

async fn index(visit: &Visit<'_>) -> Result {
    let accounts = visit.api.get(&["v1", "accounts"]).await?;
    let rows = html! {
        @for account in list(&accounts["accounts"]) {
            @let name = text(&account["name"]);
            tr { th scope="row" { a href=(link(&[name])) { (name) } } }
        }
    };
    let body = html! {
        h1 { "Messaging" }
        p.muted { "Queues, topics and event hubs. An account is a namespace." }
        section.card aria-label="Accounts" { (table("Accounts", &["Account"], rows)) }
    };
    Outcome::page("Messaging", Part::Messaging, body)
}

async fn account_page(visit: &Visit<'_>, account: &str) -> Result {
    let query = [("limit", SHOWN)];
    let entities = visit.api.get_with(&["v1", "bus", account], &query).await?;
    let hubs = visit.api.get_with(&["v1", "hubs", account], &query).await?;
    let body = html! {
        (crumbs(&[], html! { (account) }))
        h1 { "Messaging of " (account) }
        section.card aria-labelledby="entities" {
            h2 #entities { "Queues and topics" }
            (live("entities", entity_rows(account, list(&entities["entities"]))))
        }
        form.inline method="post" action=(link(&[account, "create-entity"])) {
            (csrf(visit.session))
            div { label for="entity" { "New queue or topic" } input #entity name="name" required autocomplete="off"; }
            div {
                label for="kind" { "Kind" }
                select #kind name="kind" { option value="queue" { "Queue" } option value="topic" { "Topic" } }
            }
            div {
                label for="fragments" { "Partitions" }
                input #fragments name="partitions" type="number" min="1" max="64" value="1";
            }
            button type="submit" { "Create" }
        }
        section.card aria-labelledby="hubs" {
            h2 #hubs { "Event hubs" }
            (live("hubs", hub_rows(account, list(&hubs["hubs"]))))
        }
        form.inline method="post" action=(link(&[account, "create-hub"])) {
            (csrf(visit.session))
            div { label for="hub" { "New hub" } input #hub name="name" required autocomplete="off"; }
            div {
                label for="partitions" { "Partitions" }
                input #partitions name="partitions" type="number" min="1" max="1024" value="4";
            }
            button type="submit" { "Create hub" }
        }
    };
    Outcome::page(format!("Messaging of {account}"), Part::Messaging, body)
}

fn entity_rows(account: &str, entities: &[Value]) -> Markup {
    if entities.is_empty() {
        return html! { p.muted { "There is none." } };
    }
    let rows = html! {
        @for entity in entities {
            @let name = text(&entity["name"]);
            tr data-entity=(name) {
                th.key scope="row" { a href=(link(&[account, "bus", name])) { (name) } }
                td { (text(&entity["kind"])) }
                td.number { (count(&entity["partitions"])) }
                td.number { (count(&entity["active"])) }
                td.number { (count(&entity["dead_letter"])) }
                td.number { (count(&entity["scheduled"])) }
                td.number { (figure::bytes(entity["bytes"].as_u64().unwrap_or(0))) }
            }
        }
    };
    let numbers = ["Partitions", "Active", "Dead letters", "Scheduled", "Bytes"];
    number_table("Queues and topics", &["Name", "Kind"], &numbers, rows)
}

fn hub_rows(account: &str, hubs: &[Value]) -> Markup {
    if hubs.is_empty() {
        return html! { p.muted { "There is none." } };
    }
    let rows = html! {
        @for hub in hubs {
            @let name = text(&hub["name"]);
            tr data-hub=(name) {
                th.key scope="row" { a href=(link(&[account, "hubs", name])) { (name) } }
                td.number { (count(&hub["partitions"])) }
                td.number {
                    @match hub["retention_hours"].as_f64() {
                        Some(hours) => { (format!("{hours:.0} h")) }
                        None => { "for ever" }
                    }
                }
            }
        }
    };
    number_table("Event hubs", &["Name"], &["Partitions", "Retention"], rows)
}

async fn create_entity(visit: &Visit<'_>, account: &str) -> Result {
    let name = visit.form.get("name");
    let partitions = visit.form.get("partitions").parse::<u64>().ok();
    let new = json!({ "kind": visit.form.get("kind"), "name": name, "partitions": partitions });
    visit.api.post(&["v1", "bus", account], &new).await?;
    Outcome::done(link(&[account, "bus", name]), format!("{name} is there."))
}

async fn create_hub(visit: &Visit<'_>, account: &str) -> Result {
    let name = visit.form.get("name");
    let partitions = visit.form.get("partitions").parse::<u64>().ok();
    let new = json!({ "name": name, "partitions": partitions });
    visit.api.post(&["v1", "hubs", account], &new).await?;
    Outcome::done(link(&[account, "hubs", name]), format!("Hub {name} is there."))
}
