//! Messages of a queue or subscription: look at them, send one, delete all, send dead letters again.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use lazuli_bus::shown::{self, Typed};
use lazuli_bus_shape::{
    Address, BusOperation, BusReason, Delivery, Endpoint, Message, MessageState, Outcome,
    ReceiveMode, Settlement,
};
use serde_json::{Map, Value, json};

use super::super::refusal::{Refusal, Result};
use super::{EntityPath, entities, maybe_number, maybe_text, properties, text};
use crate::running::Running;

/// How many dead letters are taken at once.
const RESUBMIT_AT_ONCE: usize = 100;
/// The most that one request sends again.
const RESUBMIT_MAX: usize = 10_000;

async fn open(running: &Running, path: &EntityPath) -> Result<Endpoint> {
    Ok(running.bus.open(&path.account, &entities::address(path)?).await?)
}

pub(super) async fn peek(
    running: &Running,
    path: &EntityPath,
    from: u64,
    most: usize,
) -> Result<Value> {
    let endpoint = open(running, path).await?;
    let found = running.bus.peek(&endpoint, None, from, most).await?;
    let next = found.last().filter(|_| found.len() >= most).map(|it| it.sequence_number + 1);
    let messages: Vec<Value> = found.iter().map(show).collect();
    // Numbers have more bits than some readers of JSON know.
    Ok(json!({ "messages": messages, "next": next.map(|number| number.to_string()) }))
}

fn show(message: &Message) -> Value {
    let shown = shown::message(message);
    let properties: Map<String, Value> =
        shown.properties.into_iter().map(|(name, value)| (name, json!(value))).collect();
    json!({
        "number": message.sequence_number.to_string(),
        "enqueued_ms": message.enqueued_ms,
        "expires_ms": message.expires_ms,
        "scheduled_ms": message.scheduled_ms,
        "state": match message.state {
            MessageState::Active => "active",
            MessageState::Deferred => "deferred",
            MessageState::Scheduled => "scheduled",
        },
        "deliveries": message.delivery_count,
        "id": message.message_id,
        "session": message.session_id,
        "key": message.partition_key,
        "label": shown.label,
        "dead_letter_source": message.dead_letter_source,
        "properties": properties,
        "is_text": shown.body.is_text,
        "text": shown.body.text,
    })
}

/// `{"text": …}`, and what else there is to a message.
pub(super) async fn send(running: &Running, path: &EntityPath, body: &Value) -> Result<Value> {
    let endpoint = open(running, path).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let later = maybe_number(body, "after_seconds")?.map(|it| it.saturating_mul(1_000));
    let typed = Typed {
        text: text(body, "text")?.to_owned(),
        id: maybe_text(body, "id")?
            .or_else(|| Some(running.engine.env().ids.next_id().to_string())),
        label: maybe_text(body, "label")?,
        session_id: maybe_text(body, "session")?,
        partition_key: maybe_text(body, "key")?,
        scheduled_ms: later.map(|later| now.saturating_add(later)),
        properties: properties(body)?,
    };
    let numbers = running.bus.send(&endpoint, vec![shown::typed(typed)]).await?;
    Ok(json!({ "number": numbers.first().map(u64::to_string) }))
}

pub(super) async fn purge(running: &Running, path: &EntityPath) -> Result<Value> {
    let endpoint = open(running, path).await?;
    Ok(json!({ "deleted": running.bus.purge(&endpoint).await? }))
}

/// Sends dead letters to the queue or topic that they came from: those with the numbers of the body, or all. Each is taken from
/// the dead letters and sent in one transaction; where that cannot be, because both are not on one shard or the message
/// has no key, it is sent first, so that none is lost.
pub(super) async fn resubmit(running: &Running, path: &EntityPath, body: &Value) -> Result<Value> {
    let wanted = numbers(body)?;
    let owner = entities::address(path)?.owner();
    let dead = running.bus.open(&path.account, &owner.clone().dead_letter()).await?;
    // Nothing can be sent to one subscription alone.
    let target = match &owner.subscription {
        Some(_) => Address::entity(&owner.entity),
        None => owner,
    };
    let target = running.bus.open(&path.account, &target).await?;
    let mut receiver = running.bus.receiver(&dead, ReceiveMode::PeekLock, None);
    let (mut sent, mut passed) = (0_usize, Vec::new());
    while sent + passed.len() < RESUBMIT_MAX {
        let deliveries = receiver.take(RESUBMIT_AT_ONCE).await?;
        if deliveries.is_empty() {
            break;
        }
        for delivery in deliveries {
            let number = delivery.message.sequence_number;
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&number)) {
                passed.push(delivery);
                continue;
            }
            send_again(running, &dead, &target, &delivery).await?;
            sent += 1;
        }
        if wanted.as_ref().is_some_and(|wanted| sent >= wanted.len()) {
            break;
        }
    }
    let give_back = |delivery: Delivery| {
        let token = delivery.lock?.token;
        Some(Settlement { token, outcome: Outcome::Release })
    };
    let passed: Vec<Settlement> = passed.into_iter().filter_map(give_back).collect();
    if !passed.is_empty() {
        running.bus.settle(&dead, None, passed).await?;
    }
    Ok(json!({ "resubmitted": sent }))
}

async fn send_again(
    running: &Running,
    dead: &Endpoint,
    target: &Endpoint,
    delivery: &Delivery,
) -> Result<()> {
    let Some(lock) = delivery.lock else { return Ok(()) };
    let mut message = shown::again(&delivery.message);
    if target.description().requires_duplicate_detection {
        // The queue knows its id already, and would drop it.
        let id = message.message_id.unwrap_or_default();
        message.message_id = Some(format!("{id}-again-{}", delivery.message.sequence_number));
    }
    let settlement = Settlement { token: lock.token, outcome: Outcome::Complete };
    let operations = vec![
        BusOperation::Settle { from: dead.clone(), session: None, settlement: settlement.clone() },
        BusOperation::Send { to: target.clone(), message: message.clone() },
    ];
    match running.bus.transact(operations).await {
        Err(error)
            if error.is(BusReason::TransactionSpans) || error.is(BusReason::TransactionKey) =>
        {
            running.bus.send(target, vec![message]).await?;
            let settled = running.bus.settle(dead, None, vec![settlement]).await?;
            settled.into_iter().collect::<lazuli_engine::Result<Vec<()>>>()?;
            Ok(())
        }
        done => Ok(done?),
    }
}

/// The numbers of a body, as texts or numbers; none means all.
fn numbers(body: &Value) -> Result<Option<BTreeSet<u64>>> {
    let wrong = || Refusal::bad_request("numbers must be a list of sequence numbers");
    let list = match &body["numbers"] {
        Value::Null => return Ok(None),
        Value::Array(list) => list,
        _ => return Err(wrong()),
    };
    let number = |one: &Value| one.as_u64().or_else(|| one.as_str()?.parse().ok());
    list.iter().map(|one| number(one).ok_or_else(wrong)).collect::<Result<_>>().map(Some)
}
