//! Queues, topics and hubs in the admin API: what people list, make, look into and mend.
//!
//! Clients of these services speak AMQP and Kafka, which carry no single requests that could be asked for from within. So
//! these operations call the shapes, under the admin token and in the audit log, and check nothing but the account: names,
//! settings and limits are the shapes'.

mod entities;
mod hubs;
mod messages;
mod routes;
mod rules;

use lazuli_http::Request;
use lazuli_log::Start;
use serde_json::Value;

use super::refusal::{Refusal, Result};
use super::{body, body_up_to};
use crate::running::Running;
pub(super) use routes::ROUTES;

/// The largest body that sends a message: a text whose signs are all escaped.
const MESSAGE_BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Every operation on queues, topics and hubs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Messaging {
    ListEntities {
        account: String,
        skip: usize,
        most: usize,
    },
    CreateEntity {
        account: String,
    },
    ShowEntity(EntityPath),
    DeleteEntity(EntityPath),
    /// Messages from a number on, which stay where they are.
    Peek {
        path: EntityPath,
        from: u64,
        most: usize,
    },
    Send(EntityPath),
    /// Deletes all messages that nobody holds.
    Purge(EntityPath),
    /// Sends dead letters to where they came from.
    Resubmit(EntityPath),
    ListRules {
        account: String,
    },
    /// Makes or changes a rule of the whole namespace.
    SetRule {
        account: String,
        rule: String,
    },
    DeleteRule {
        account: String,
        rule: String,
    },
    ListHubs {
        account: String,
        after: Option<String>,
        most: usize,
    },
    CreateHub {
        account: String,
    },
    ShowHub(HubPath),
    DeleteHub(HubPath),
    SetPartitions(HubPath),
    /// Has events written to files from now on.
    SetCapture(HubPath),
    EndCapture(HubPath),
    ReadEvents {
        path: HubPath,
        partition: u32,
        from: From,
        most: usize,
    },
    SendEvent(HubPath),
    AddGroup(HubPath),
    DeleteGroup {
        path: HubPath,
        group: String,
    },
}

/// A queue, a topic, a subscription, or the dead letters of one: `topic/Subscriptions/name/$DeadLetterQueue`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntityPath {
    account: String,
    entity: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct HubPath {
    account: String,
    hub: String,
}

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Start(Start),
    Offset(u64),
}

pub(super) async fn run(running: &Running, wanted: Messaging, request: Request) -> Result<Value> {
    use Messaging as It;
    match wanted {
        It::ListEntities { account, skip, most } => {
            known(running, &account).await?;
            entities::list(running, &account, skip, most).await
        }
        It::CreateEntity { account } => {
            known(running, &account).await?;
            entities::create(running, &account, &body(request).await?).await
        }
        It::ShowEntity(path) => entities::show(running, &path).await,
        It::DeleteEntity(path) => entities::delete(running, &path).await,
        It::Peek { path, from, most } => messages::peek(running, &path, from, most).await,
        It::Send(path) => {
            let body = body_up_to(request, MESSAGE_BODY_BYTES_MAX).await?;
            messages::send(running, &path, &body).await
        }
        It::Purge(path) => messages::purge(running, &path).await,
        It::Resubmit(path) => messages::resubmit(running, &path, &body(request).await?).await,
        It::ListRules { account } => {
            known(running, &account).await?;
            rules::list(running, &account).await
        }
        It::SetRule { account, rule } => {
            known(running, &account).await?;
            rules::set(running, &account, &rule, &body(request).await?).await
        }
        It::DeleteRule { account, rule } => rules::delete(running, &account, &rule).await,
        It::ListHubs { account, after, most } => {
            known(running, &account).await?;
            hubs::list(running, &account, after.as_deref(), most).await
        }
        It::CreateHub { account } => {
            known(running, &account).await?;
            hubs::create(running, &account, &body(request).await?).await
        }
        It::ShowHub(path) => hubs::show(running, &path).await,
        It::DeleteHub(path) => hubs::delete(running, &path).await,
        It::SetPartitions(path) => {
            hubs::set_partitions(running, &path, &body(request).await?).await
        }
        It::SetCapture(path) => hubs::set_capture(running, &path, &body(request).await?).await,
        It::EndCapture(path) => hubs::end_capture(running, &path).await,
        It::ReadEvents { path, partition, from, most } => {
            hubs::read(running, &path, partition, from, most).await
        }
        It::SendEvent(path) => {
            let body = body_up_to(request, MESSAGE_BODY_BYTES_MAX).await?;
            hubs::send(running, &path, &body).await
        }
        It::AddGroup(path) => hubs::add_group(running, &path, &body(request).await?).await,
        It::DeleteGroup { path, group } => hubs::delete_group(running, &path, &group).await,
    }
}

/// Refuses accounts that there are not, so that nothing is made in their name.
async fn known(running: &Running, account: &str) -> Result<()> {
    let all = running.accounts.list().await;
    match all.iter().any(|(one, _)| one.name == account) {
        true => Ok(()),
        false => Err(Refusal::not_found("account", account, "lazuli account list")),
    }
}

/// A text of a body that must be there.
fn text<'b>(body: &'b Value, name: &str) -> Result<&'b str> {
    body[name].as_str().ok_or_else(|| Refusal::bad_request(format!("{name} must be text")))
}

/// A text of a body that may be there.
fn maybe_text(body: &Value, name: &str) -> Result<Option<String>> {
    match &body[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(Refusal::bad_request(format!("{name} must be text"))),
    }
}

/// A whole number of a body that may be there.
fn maybe_number(body: &Value, name: &str) -> Result<Option<u64>> {
    match &body[name] {
        Value::Null => Ok(None),
        value => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::bad_request(format!("{name} must be a whole number"))),
        },
    }
}

/// The same where it must fit into 32 bits.
fn maybe_small(body: &Value, name: &str) -> Result<Option<u32>> {
    let number = maybe_number(body, name)?.map(u32::try_from).transpose();
    number.map_err(|_| Refusal::bad_request(format!("{name} is too large")))
}

fn maybe_flag(body: &Value, name: &str) -> Result<bool> {
    match &body[name] {
        Value::Null => Ok(false),
        Value::Bool(is) => Ok(*is),
        _ => Err(Refusal::bad_request(format!("{name} must be true or false"))),
    }
}

/// What a message has of the application's, as texts.
fn properties(body: &Value) -> Result<Vec<(String, String)>> {
    let wrong = || Refusal::bad_request("properties must be an object of texts");
    match &body["properties"] {
        Value::Null => Ok(Vec::new()),
        Value::Object(all) => {
            let one = |(name, value): (&String, &Value)| {
                Ok((name.clone(), value.as_str().ok_or_else(wrong)?.to_owned()))
            };
            all.iter().map(one).collect()
        }
        _ => Err(wrong()),
    }
}
