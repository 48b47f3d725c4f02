//! The entities and messages of the workload `bus`.

use std::sync::Arc;

use lazuli_bus_shape::filter::{Filter, Value};
use lazuli_bus_shape::{
    Address, Bus, BusSettings, Description, Endpoint, EntityKind, NewMessage, ReadMessage, Rule,
    SystemProperty,
};
use lazuli_engine::{Engine, Kind};
use lazuli_store::Result as StoreResult;

use super::Client;
use crate::checkers::bus::Tag;

pub(super) const NAMESPACE: &str = "sim";
pub(super) const LOCK_MS: u64 = 2_000;
/// Bodies of this many bytes are in a row of their own.
const LONG_BYTES: usize = 5_000;

/// Bodies are a tag and some letters; the only property is whether the tag is even.
struct Tagged;

impl ReadMessage for Tagged {
    fn system(&self, _: &[u8], _: SystemProperty) -> Option<String> {
        None
    }

    fn user(&self, body: &[u8]) -> StoreResult<Vec<(String, Value)>> {
        let tag = tag_of(body).unwrap_or_default();
        Ok(vec![("even".to_owned(), Value::Boolean(tag.is_multiple_of(2)))])
    }
}

pub(super) fn tag_of(body: &[u8]) -> Result<Tag, String> {
    let head = body.first_chunk::<8>();
    head.map(|head| Tag::from_be_bytes(*head)).ok_or(format!("unknown body {body:?}"))
}

pub(super) fn message(client: &Client, tag: Tag) -> NewMessage {
    let mut body = tag.to_be_bytes().to_vec();
    body.resize(if client.random.chance(100) { LONG_BYTES } else { 20 }, b'x');
    NewMessage::new(body)
}

pub(super) fn bus(engine: Arc<Engine>) -> Bus {
    Bus::new(engine, Arc::new(Tagged), BusSettings::default())
}

pub(super) async fn open(bus: &Bus, address: &str) -> StoreResult<Endpoint> {
    bus.open(NAMESPACE, &Address::parse(address)?).await
}

/// Something that exists already was made by a request whose answer was lost.
fn made<T>(result: StoreResult<T>) -> StoreResult<()> {
    match result {
        Err(error) if error.kind() == Kind::Exists => Ok(()),
        done => done.map(|_| ()),
    }
}

pub(super) async fn create(bus: Bus) -> StoreResult<()> {
    let queue = Description { lock_duration_ms: LOCK_MS, ..Description::queue() };
    let queue = Description { max_delivery_count: 20, ..queue };
    let plain = Description { fragments: 3, ..queue.clone() };
    let sessions = Description { requires_session: true, ..queue.clone() };
    let once = Description { requires_duplicate_detection: true, ..queue.clone() };
    let queues = [("plain", plain), ("sessions", sessions), ("once", once)];
    for (name, description) in queues {
        made(bus.create_entity(NAMESPACE, EntityKind::Queue, name, description).await)?;
    }
    let topic = Description::topic();
    made(bus.create_entity(NAMESPACE, EntityKind::Topic, "topic", topic).await)?;
    for (name, filter) in [("all", Filter::True), ("even", Filter::sql("even = TRUE")?)] {
        let rule = Rule { name: "rule".to_owned(), filter, action: None, created_ms: 0 };
        let description = queue.clone();
        let rule = Some(rule);
        made(bus.create_subscription(NAMESPACE, "topic", name, description, rule).await)?;
    }
    Ok(())
}
