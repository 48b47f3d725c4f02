//! `lazuli bus …`: queues, topics and subscriptions, by the admin API.

use std::io::Read;

use lazuli_console::output::{self, cell, rows};
use lazuli_console::{Failure, Result};
use lazuli_http::uri::percent_encode;
use serde_json::{Map, Value, json};

use crate::args::messaging::{BusCommand, NewEntity, NewMessage, Owner};
use crate::client::Client;

const DEAD_LETTERS: &str = "$DeadLetterQueue";

pub(crate) fn run(command: BusCommand) -> Result<()> {
    match command {
        BusCommand::List(owner) => list(&owner),
        BusCommand::Show { name, owner } => show(&name, &owner),
        BusCommand::Create { new, owner } => create(&new, &owner),
        BusCommand::Delete { name, owner } => {
            let (client, account) = found(&owner)?;
            let answer = client.delete(&entity(&account, &name, ""))?;
            output::changed(owner.target.json, &answer, || format!("deleted {name}"));
            Ok(())
        }
        BusCommand::Purge { name, owner } => {
            let (client, account) = found(&owner)?;
            let answer = client.delete(&entity(&account, &name, "/messages"))?;
            output::changed(owner.target.json, &answer, || {
                format!("deleted {} messages of {name}", cell(&answer["deleted"]))
            });
            Ok(())
        }
        BusCommand::Peek { name, dead_letters, from, limit, owner } => {
            let name = if dead_letters { format!("{name}/{DEAD_LETTERS}") } else { name };
            peek(&name, from, limit, &owner)
        }
        BusCommand::Send { message, owner } => send(&message, &owner),
        BusCommand::Resubmit { name, numbers, owner } => resubmit(&name, &numbers, &owner),
        BusCommand::Rules(owner) => rules(&owner),
        BusCommand::SetRule { name, rights, owner } => {
            let (client, account) = found(&owner)?;
            let body = json!({ "rights": rights });
            let answer = client.put(&rule(&account, &name), &body)?;
            output::changed(owner.target.json, &answer, || {
                format!(
                    "rule {name}\nprimary key: {}\nsecondary key: {}",
                    cell(&answer["primary_key"]),
                    cell(&answer["secondary_key"])
                )
            });
            Ok(())
        }
        BusCommand::DeleteRule { name, owner } => {
            let (client, account) = found(&owner)?;
            let answer = client.delete(&rule(&account, &name))?;
            output::changed(owner.target.json, &answer, || format!("deleted rule {name}"));
            Ok(())
        }
    }
}

/// The path of a rule of the whole namespace.
fn rule(account: &str, name: &str) -> String {
    format!("/v1/bus-rules/{}/{}", percent_encode(account), percent_encode(name))
}

fn rules(owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let answer = client.get(&format!("/v1/bus-rules/{}", percent_encode(&account)))?;
    if owner.target.json {
        output::json(&answer["rules"]);
        return Ok(());
    }
    let columns = ["name", "rights"];
    output::table(&columns, &rows(&answer["rules"], &columns));
    Ok(())
}

/// The server, and the account on it that a command is for.
pub(super) fn found(owner: &Owner) -> Result<(Client, String)> {
    let client = Client::find(&owner.target)?;
    if let Some(account) = &owner.account {
        return Ok((client, account.clone()));
    }
    let listed = client.get("/v1/accounts?keys=false")?;
    let first = listed["accounts"][0]["name"].as_str().map(str::to_owned);
    let first = first.ok_or_else(|| Failure::failed("the server has no account"))?;
    Ok((client, first))
}

/// The path of an entity, and of what is below it, in the admin API.
fn entity(account: &str, name: &str, rest: &str) -> String {
    format!("/v1/bus/{}/{}{rest}", percent_encode(account), percent_encode(name))
}

/// All pages of a list, gathered.
pub(super) fn pages(client: &Client, path: &str, field: &str) -> Result<Value> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let query = after.map(|after| format!("?after={}", percent_encode(&after)));
        let mut page = client.get(&format!("{path}{}", query.unwrap_or_default()))?;
        if let Some(items) = page[field].as_array_mut() {
            all.append(items);
        }
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            return Ok(Value::Array(all));
        }
    }
}

fn list(owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let path = format!("/v1/bus/{}", percent_encode(&account));
    let entities = pages(&client, &path, "entities")?;
    if owner.target.json {
        output::json(&entities);
        return Ok(());
    }
    let columns =
        ["name", "kind", "partitions", "sessions", "active", "dead_letter", "scheduled", "bytes"];
    output::table(&columns, &rows(&entities, &columns));
    Ok(())
}

fn show(name: &str, owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let answer = client.get(&entity(&account, name, ""))?;
    if owner.target.json {
        output::json(&answer);
        return Ok(());
    }
    for (field, value) in answer.as_object().into_iter().flatten() {
        if field != "all_subscriptions" {
            output::line(&format!("{field:<26}{}", cell(value)));
        }
    }
    if answer["all_subscriptions"].is_array() {
        let columns = ["name", "active", "dead_letter", "scheduled", "sessions"];
        output::table(&columns, &rows(&answer["all_subscriptions"], &columns));
    }
    Ok(())
}

fn create(new: &NewEntity, owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let body = json!({
        "kind": new.kind.name(),
        "name": new.name,
        "partitions": new.partitions,
        "sessions": new.sessions,
        "duplicate_window_seconds": new.duplicate_window,
        "lock_seconds": new.lock,
        "lives_seconds": new.lives,
        "max_deliveries": new.max_deliveries,
        "forward_to": new.forward_to,
    });
    let answer = client.post(&format!("/v1/bus/{}", percent_encode(&account)), &body)?;
    output::changed(owner.target.json, &answer, || {
        let count = cell(&answer["partitions"]);
        format!("created {} {} with {count} partition(s)", new.kind.name(), new.name)
    });
    Ok(())
}

fn peek(name: &str, from: u64, limit: u64, owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let path = entity(&account, name, &format!("/messages?from={from}&limit={limit}"));
    let answer = client.get(&path)?;
    if owner.target.json {
        output::json(&answer["messages"]);
        return Ok(());
    }
    let columns = ["number", "state", "deliveries", "session", "label", "text"];
    output::table(&columns, &rows(&answer["messages"], &columns));
    for message in answer["messages"].as_array().into_iter().flatten() {
        if let Some(reason) = message["properties"]["DeadLetterReason"].as_str() {
            output::line(&format!("{}: dead letter because {reason}", cell(&message["number"])));
        }
    }
    Ok(())
}

/// What is to be sent: the text itself, or standard input.
pub(super) fn typed(text: &str) -> Result<String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    let failed = |error: std::io::Error| Failure::failed(format!("standard input: {error}"));
    std::io::stdin().read_to_string(&mut read).map_err(failed)?;
    Ok(read)
}

fn send(message: &NewMessage, owner: &Owner) -> Result<()> {
    let mut properties = Map::new();
    for pair in &message.properties {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{pair}` is not NAME=VALUE")))?;
        properties.insert(name.to_owned(), json!(value));
    }
    let body = json!({
        "text": typed(&message.text)?,
        "id": message.id,
        "label": message.label,
        "session": message.session,
        "key": message.key,
        "after_seconds": message.after,
        "properties": properties,
    });
    let (client, account) = found(owner)?;
    let answer = client.post(&entity(&account, &message.name, "/messages"), &body)?;
    output::changed(owner.target.json, &answer, || {
        format!("sent to {} as number {}", message.name, cell(&answer["number"]))
    });
    Ok(())
}

fn resubmit(name: &str, numbers: &[u64], owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let body = json!({ "numbers": (!numbers.is_empty()).then_some(numbers) });
    let name = name.trim_end_matches(DEAD_LETTERS).trim_end_matches('/');
    let answer = client.post(&entity(&account, name, "/resubmit"), &body)?;
    output::changed(owner.target.json, &answer, || {
        format!("sent {} dead letters of {name} again", cell(&answer["resubmitted"]))
    });
    Ok(())
}
