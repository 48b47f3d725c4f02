//! Queues, topics and subscriptions.

use lazuli_bus_shape::{
    Address, Description, EntityKind, MessageCounts, Status, SubQueue, Subscription,
};
use serde_json::{Value, json};

use super::super::refusal::{Refusal, Result};
use super::{EntityPath, maybe_flag, maybe_number, maybe_small, maybe_text, text};
use crate::running::Running;

/// The subscriptions that one topic shows.
const SUBSCRIPTIONS_MAX: usize = 2_000;

pub(super) fn address(path: &EntityPath) -> Result<Address> {
    Ok(Address::parse(&path.entity)?)
}

async fn counts(running: &Running, account: &str, address: &Address) -> Result<MessageCounts> {
    let endpoint = running.bus.open(account, address).await?;
    Ok(running.bus.counts(&endpoint).await?)
}

/// All queues, then all topics, each by name.
pub(super) async fn list(
    running: &Running,
    account: &str,
    skip: usize,
    most: usize,
) -> Result<Value> {
    let bus = &running.bus;
    let queues = bus.entities(account, EntityKind::Queue, skip, most).await?;
    let mut shown = Vec::new();
    let mut has_more = queues.has_more;
    let mut found = queues.items;
    if !has_more && found.len() < most {
        // How many queues there are, so that what is skipped behind them are topics.
        let before = skip.saturating_sub(count_of(running, account).await?);
        let rest = most - found.len();
        let topics = bus.entities(account, EntityKind::Topic, before, rest).await?;
        has_more = topics.has_more;
        found.extend(topics.items);
    }
    for entity in &found {
        let counts = counts(running, account, &Address::entity(&entity.name)).await?;
        let kind = kind_name(entity.kind);
        let mut one = describe(&entity.name, kind, &entity.description, &counts);
        if entity.kind == EntityKind::Topic {
            let all = bus.subscriptions(account, &entity.name, 0, SUBSCRIPTIONS_MAX).await?;
            one["subscriptions"] = json!(all.items.len());
            let mut sum = [counts.active, counts.dead_letter];
            for one in &all.items {
                let address = Address::subscription(&entity.name, &one.name);
                let counts = self::counts(running, account, &address).await?;
                sum = [sum[0] + counts.active, sum[1] + counts.dead_letter];
            }
            (one["active"], one["dead_letter"]) = (json!(sum[0]), json!(sum[1]));
        }
        shown.push(one);
    }
    let next = has_more.then(|| (skip + found.len()).to_string());
    Ok(json!({ "entities": shown, "next": next }))
}

/// How many queues an account has.
async fn count_of(running: &Running, account: &str) -> Result<usize> {
    let mut count = 0;
    loop {
        let page = running.bus.entities(account, EntityKind::Queue, count, 1_000).await?;
        count += page.items.len();
        if !page.has_more {
            return Ok(count);
        }
    }
}

fn kind_name(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "queue",
        EntityKind::Topic => "topic",
    }
}

fn describe(name: &str, kind: &str, it: &Description, counts: &MessageCounts) -> Value {
    json!({
        "name": name,
        "kind": kind,
        "status": match it.status {
            Status::Active => "active",
            Status::Disabled => "disabled",
            Status::SendDisabled => "send-disabled",
            Status::ReceiveDisabled => "receive-disabled",
        },
        "partitions": it.fragments,
        "sessions": it.requires_session,
        "duplicate_window_seconds":
            it.requires_duplicate_detection.then_some(it.duplicate_window_ms / 1_000),
        "lock_seconds": it.lock_duration_ms as f64 / 1_000.0,
        "lives_seconds": it.default_ttl_ms.map(|ms| ms / 1_000),
        "max_deliveries": it.max_delivery_count,
        "forward_to": it.forward_to,
        "active": counts.active,
        "dead_letter": counts.dead_letter,
        "scheduled": counts.scheduled,
        "transfer": counts.transfer,
        "bytes": counts.bytes,
    })
}

pub(super) async fn show(running: &Running, path: &EntityPath) -> Result<Value> {
    let (bus, account, address) = (&running.bus, &path.account, address(path)?.owner());
    let counts = counts(running, account, &address).await?;
    if let Some(name) = &address.subscription {
        let found = bus.subscription(account, &address.entity, name).await?;
        return Ok(subscription(&found, &counts));
    }
    let entity = bus.entity(account, &address.entity).await?;
    let kind = kind_name(entity.kind);
    let mut shown = describe(&entity.name, kind, &entity.description, &counts);
    if entity.kind == EntityKind::Topic {
        let all = bus.subscriptions(account, &entity.name, 0, SUBSCRIPTIONS_MAX).await?;
        let mut subscriptions = Vec::new();
        for one in &all.items {
            let address = Address::subscription(&entity.name, &one.name);
            let counts = self::counts(running, account, &address).await?;
            subscriptions.push(subscription(one, &counts));
        }
        shown["subscriptions"] = json!(subscriptions.len());
        shown["all_subscriptions"] = json!(subscriptions);
    }
    Ok(shown)
}

fn subscription(found: &Subscription, counts: &MessageCounts) -> Value {
    let name = format!("{}/Subscriptions/{}", found.topic, found.name);
    describe(&name, "subscription", &found.description, counts)
}

/// `{"kind": …, "name": …, …}`; a subscription is named `topic/Subscriptions/name`.
pub(super) async fn create(running: &Running, account: &str, body: &Value) -> Result<Value> {
    let (kind, name) = (text(body, "kind")?, text(body, "name")?);
    let mut new = Description::queue();
    let seconds = |ms: u64| ms.saturating_mul(1_000);
    if let Some(count) = maybe_small(body, "partitions")? {
        new.fragments = count;
    }
    new.requires_session = maybe_flag(body, "sessions")?;
    if let Some(window) = maybe_number(body, "duplicate_window_seconds")? {
        (new.requires_duplicate_detection, new.duplicate_window_ms) = (true, seconds(window));
    }
    if let Some(lock) = maybe_number(body, "lock_seconds")? {
        new.lock_duration_ms = seconds(lock);
    }
    new.default_ttl_ms = maybe_number(body, "lives_seconds")?.map(seconds);
    if let Some(most) = maybe_small(body, "max_deliveries")? {
        new.max_delivery_count = most;
    }
    new.forward_to = maybe_text(body, "forward_to")?;
    let bus = &running.bus;
    let path = EntityPath { account: account.to_owned(), entity: name.to_owned() };
    let address = address(&path)?;
    match (kind, &address.subscription) {
        ("queue", None) => bus.create_entity(account, EntityKind::Queue, name, new).await.map(drop),
        ("topic", None) => bus.create_entity(account, EntityKind::Topic, name, new).await.map(drop),
        ("subscription", Some(one)) => {
            bus.create_subscription(account, &address.entity, one, new, None).await.map(drop)
        }
        ("subscription", None) => {
            let message = "a subscription is named TOPIC/Subscriptions/NAME";
            return Err(Refusal::bad_request(message));
        }
        ("queue" | "topic", Some(_)) => {
            return Err(Refusal::bad_request("this is the name of a subscription"));
        }
        _ => return Err(Refusal::bad_request("kind must be queue, topic or subscription")),
    }?;
    show(running, &path).await
}

pub(super) async fn delete(running: &Running, path: &EntityPath) -> Result<Value> {
    let address = address(path)?;
    if address.sub_queue != SubQueue::Main {
        return Err(Refusal::bad_request("dead letters are purged, not deleted"));
    }
    match &address.subscription {
        Some(name) => {
            running.bus.delete_subscription(&path.account, &address.entity, name).await?;
        }
        None => running.bus.delete_entity(&path.account, None, &address.entity).await?,
    }
    Ok(json!({ "name": path.entity, "deleted": true }))
}
