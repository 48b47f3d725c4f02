//! Links on which a publisher sends to a hub or to one of its partitions.

use std::sync::Arc;
use std::time::Instant;

use lazuli_amqp::{Attaching, Delivery, DeliveryState, Incoming, Map, Receiving, Symbol, Value};
use lazuli_log::{Appended, Hub, NewBatch, Producer};
use lazuli_net::Outcome;

use super::event::{self, PRODUCER_EPOCH, PRODUCER_ID, PRODUCER_SEQUENCE};
use super::{EVENT_BYTES_MAX, HubAddress, find, from_log};
use crate::access::Right;
use crate::error::{Fault, Result};
use crate::limits::SENDER_CREDIT;
use crate::peer::Peer;

const IDEMPOTENT: &str = "com.microsoft:idempotent-producer";
/// How often events without a key are offered to another partition because one is down.
const OTHERS_MAX: u32 = 3;

/// What a publisher is.
struct Publisher {
    path: String,
    namespace: String,
    hub: Arc<Hub>,
    partition: Option<u32>,
    producer: Option<(i64, i16)>,
}

pub(crate) async fn serve(peer: Arc<Peer>, attaching: Attaching, address: HubAddress) {
    let wanted = attaching.attach.desired_capabilities.iter().any(|one| one.0 == IDEMPOTENT);
    let publisher = match open(&peer, &address, wanted, &attaching.attach.properties).await {
        Ok(publisher) => publisher,
        Err(fault) => {
            peer.front.metrics.observe("SendEvents", fault.outcome(), std::time::Duration::ZERO);
            return attaching.refuse(fault.into());
        }
    };
    let mut properties = Map::default();
    let mut capabilities = Vec::new();
    if let Some((id, epoch)) = publisher.producer {
        properties =
            properties.with(PRODUCER_ID, Value::Long(id)).with(PRODUCER_EPOCH, Value::Short(epoch));
        let sequence = attaching.attach.properties.integer(PRODUCER_SEQUENCE);
        let sequence = sequence.and_then(|it| i32::try_from(it).ok()).unwrap_or(0);
        properties = properties.with(PRODUCER_SEQUENCE, Value::Int(sequence));
        capabilities.push(Symbol(IDEMPOTENT.to_owned()));
    }
    let message_bytes_max = EVENT_BYTES_MAX;
    let receiving =
        Receiving { credit: SENDER_CREDIT, message_bytes_max, properties, capabilities };
    let Some(link) = attaching.receive(receiving) else { return };
    take(&peer, link, &publisher).await;
}

async fn open(
    peer: &Peer,
    address: &HubAddress,
    is_idempotent: bool,
    properties: &Map,
) -> Result<Publisher> {
    if address.group.is_some() {
        return Err(Fault::argument("A publisher sends to a hub or to a partition of it."));
    }
    let (namespace, hub) = find(peer, &address.hub, &address.path, Right::Send).await?;
    let partition = address.partition(&hub);
    if address.partition.is_some() && partition.is_none() {
        return Err(Fault::new(
            400,
            "com.microsoft:argument-out-of-range",
            format!("The specified partition is invalid for the hub {}.", hub.name),
        ));
    }
    let producer = match (is_idempotent, partition) {
        (false, _) => None,
        (true, None) => {
            return Err(Fault::argument("An idempotent producer names a partition."));
        }
        (true, Some(_)) => {
            let random = peer.front.hubs.logs.engine().env().random.next_u64();
            let id = properties.integer(PRODUCER_ID).filter(|id| *id >= 0);
            let epoch = properties.integer(PRODUCER_EPOCH);
            // One that comes back begins a new epoch, and puts its former self out.
            let epoch = epoch.and_then(|it| i16::try_from(it).ok()).map_or(0, |it| it.max(0));
            Some((id.unwrap_or((random >> 2) as i64), epoch))
        }
    };
    Ok(Publisher { path: address.path.clone(), namespace, hub, partition, producer })
}

async fn take(peer: &Peer, mut link: Incoming, publisher: &Publisher) {
    while let Some(delivery) = link.next().await {
        let began = Instant::now();
        let state = match send(peer, publisher, &delivery).await {
            Ok(_) => {
                peer.front.metrics.observe("SendEvents", Outcome::Ok, began.elapsed());
                DeliveryState::Accepted
            }
            Err(fault) => {
                peer.front.metrics.observe("SendEvents", fault.outcome(), began.elapsed());
                DeliveryState::rejected(fault.into())
            }
        };
        delivery.settle(state);
    }
}

async fn send(peer: &Peer, publisher: &Publisher, delivery: &Delivery) -> Result<Appended> {
    let Publisher { path, namespace, hub, partition, producer } = publisher;
    // Tokens expire while a link is open.
    peer.may(path, Right::Send)?;
    let events = event::read(&delivery.payload, delivery.format)?;
    let producer = match (producer, events.sequence) {
        (Some((id, epoch)), Some(sequence)) => {
            let sequence = i32::try_from(sequence).ok().filter(|sequence| *sequence >= 0);
            let bad = || Fault::argument("The sequence number of a producer is not negative.");
            Some(Producer { id: *id, epoch: *epoch, sequence: sequence.ok_or_else(bad)? })
        }
        _ => None,
    };
    let hubs = &peer.front.hubs;
    let batch = NewBatch::amqp(events.messages, producer);
    match (partition, events.key) {
        (Some(_), Some(_)) => {
            Err(Fault::argument("A partition key cannot be used with a publisher of a partition."))
        }
        (Some(partition), None) => hubs.logs.append(hub, *partition, batch).await.map_err(from_log),
        (None, Some(key)) => {
            hubs.logs.append_by_key(namespace, &hub.name, &key, batch).await.map_err(from_log)
        }
        (None, None) => {
            // It may have more partitions by now.
            let hub = hubs.logs.hub(namespace, &hub.name).await.map_err(from_log)?;
            let count = hub.settings.partitions.max(1);
            let mut others = 0;
            loop {
                let partition = hubs.next_turn() % count;
                let sent = hubs.logs.append(&hub, partition, batch.clone()).await;
                match sent {
                    // Without a key order does not matter: another partition takes what this one cannot. What it may
                    // have taken all the same is there twice, as with every retry of a publisher.
                    Err(error)
                        if matches!(error.kind(), lazuli_engine::Kind::Unavailable { .. })
                            && others < OTHERS_MAX.min(count - 1) =>
                    {
                        others += 1;
                    }
                    sent => return sent.map_err(from_log),
                }
            }
        }
    }
}
