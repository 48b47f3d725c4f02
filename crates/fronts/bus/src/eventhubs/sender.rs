//! Links on which a publisher sends to a hub or to one of its partitions.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lazuli_amqp::{Attaching, Delivery, DeliveryState, Incoming, Map, Receiving, Symbol, Value};
use lazuli_log::{Appended, Hub, NewBatch, Producer};
use lazuli_net::Outcome;

use super::event::{self, PRODUCER_EPOCH, PRODUCER_ID, PRODUCER_SEQUENCE};
use super::{EVENT_BYTES_MAX, HubAddress, find, from_log};
use crate::access::Right;
use crate::error::{Fault, Result};
use crate::limits::{SEND_AT_ONCE_MAX, SENDER_CREDIT};
use crate::peer::Peer;

const IDEMPOTENT: &str = "com.microsoft:idempotent-producer";
/// How often events without a key are offered to another partition because one is down.
const OTHERS_MAX: u32 = 3;
/// The most bytes of deliveries that are appended as one batch.
const GATHERED_BYTES_MAX: usize = EVENT_BYTES_MAX as usize;

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
    take(&peer, link, publisher).await;
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

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    Partition(u32),
    Key(String),
    /// To any partition: availability over order.
    Any,
}

/// Deliveries that are appended together, in the order in which they came.
struct Gathered {
    way: Way,
    producer: Option<Producer>,
    messages: Vec<Bytes>,
    bytes: usize,
    deliveries: Vec<Delivery>,
}

impl Gathered {
    /// Whether another delivery fits behind these. Those of an idempotent producer have numbers of their own.
    fn takes(&self, way: &Way, producer: Option<Producer>, bytes: usize) -> bool {
        let is_free = self.producer.is_none() && producer.is_none();
        is_free && self.way == *way && self.bytes + bytes <= GATHERED_BYTES_MAX
    }
}

async fn take(peer: &Arc<Peer>, mut link: Incoming, publisher: Publisher) {
    let publisher = Arc::new(publisher);
    let mut deliveries = Vec::new();
    let mut expired = std::pin::pin!(peer.expired(&publisher.path, Right::Send));
    loop {
        let count = tokio::select! {
            biased;
            fault = &mut expired => return link.detach(fault.into()),
            count = link.next_many(&mut deliveries, SEND_AT_ONCE_MAX) => count,
        };
        if count == 0 {
            return;
        }
        let mut gathered: Vec<Gathered> = Vec::new();
        for delivery in deliveries.drain(..) {
            match sort(&publisher, &delivery) {
                Ok((way, producer, messages)) => {
                    let bytes = delivery.payload.len();
                    let mut places = gathered.iter_mut().rev();
                    match places.find(|one| one.takes(&way, producer, bytes)) {
                        Some(one) => {
                            one.messages.extend(messages);
                            one.bytes += bytes;
                            one.deliveries.push(delivery);
                        }
                        None => {
                            let deliveries = vec![delivery];
                            gathered.push(Gathered { way, producer, messages, bytes, deliveries });
                        }
                    }
                }
                Err(fault) => {
                    let none = std::time::Duration::ZERO;
                    peer.front.metrics.observe("SendEvents", fault.outcome(), none);
                    delivery.settle(DeliveryState::rejected(fault.into()));
                }
            }
        }
        append_all(peer, &publisher, gathered).await;
    }
}

/// Appends groups side by side, but those of one way one after another, so that the order of a key stays.
async fn append_all(peer: &Arc<Peer>, publisher: &Arc<Publisher>, gathered: Vec<Gathered>) {
    let mut lines: Vec<Vec<Gathered>> = Vec::new();
    for one in gathered {
        match lines.iter_mut().find(|line| line[0].way == one.way) {
            Some(line) => line.push(one),
            None => lines.push(vec![one]),
        }
    }
    let Some(first) = lines.pop() else { return };
    let others = lines.into_iter().map(|line| {
        let (peer, publisher) = (peer.clone(), publisher.clone());
        tokio::spawn(async move { append_line(&peer, &publisher, line).await })
    });
    let others: Vec<_> = others.collect();
    append_line(peer, publisher, first).await;
    for other in others {
        // A task that panicked has dropped its deliveries, which releases them.
        let _ = other.await;
    }
}

async fn append_line(peer: &Peer, publisher: &Publisher, line: Vec<Gathered>) {
    for one in line {
        let began = Instant::now();
        let Gathered { way, producer, messages, deliveries, .. } = one;
        let batch = NewBatch::amqp(messages, producer);
        let sent = append(peer, publisher, way, batch).await.map_err(from_log);
        let outcome = sent.as_ref().map_or_else(Fault::outcome, |_| Outcome::Ok);
        peer.front.metrics.observe("SendEvents", outcome, began.elapsed());
        for delivery in deliveries {
            delivery.settle(match &sent {
                Ok(_) => DeliveryState::Accepted,
                Err(fault) => DeliveryState::rejected(fault.clone().into()),
            });
        }
    }
}

/// What a delivery holds, and where it goes.
fn sort(publisher: &Publisher, delivery: &Delivery) -> Result<(Way, Option<Producer>, Vec<Bytes>)> {
    let events = event::read(&delivery.payload, delivery.format)?;
    let producer = match (publisher.producer, events.sequence) {
        (Some((id, epoch)), Some(sequence)) => {
            let sequence = i32::try_from(sequence).ok().filter(|sequence| *sequence >= 0);
            let bad = || Fault::argument("The sequence number of a producer is not negative.");
            Some(Producer { id, epoch, sequence: sequence.ok_or_else(bad)? })
        }
        _ => None,
    };
    let way = match (publisher.partition, events.key) {
        (Some(_), Some(_)) => {
            let text = "A partition key cannot be used with a publisher of a partition.";
            return Err(Fault::argument(text));
        }
        (Some(partition), None) => Way::Partition(partition),
        (None, Some(key)) => Way::Key(key),
        (None, None) => Way::Any,
    };
    Ok((way, producer, events.messages))
}

async fn append(
    peer: &Peer,
    publisher: &Publisher,
    way: Way,
    batch: NewBatch,
) -> lazuli_engine::Result<Appended> {
    let Publisher { namespace, hub, .. } = publisher;
    let hubs = &peer.front.hubs;
    match way {
        Way::Partition(partition) => hubs.logs.append(hub, partition, batch).await,
        Way::Key(key) => hubs.logs.append_by_key(namespace, &hub.name, &key, batch).await,
        Way::Any => {
            // It may have more partitions by now.
            let hub = hubs.logs.hub(namespace, &hub.name).await?;
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
                    sent => return sent,
                }
            }
        }
    }
}
