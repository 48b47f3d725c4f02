//! Links on which a client sends to a queue or topic.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lazuli_amqp::{Attaching, Delivery, DeliveryState, Incoming, Map, Receiving};
use lazuli_bus_shape::{BusOperation, Endpoint, NewMessage};
use lazuli_net::Outcome;

use crate::access::Right;
use crate::error::{Fault, Result, from_core};
use crate::limits::{SEND_AT_ONCE_BYTES_MAX, SEND_AT_ONCE_MAX, SENDER_CREDIT};
use crate::message;
use crate::peer::Peer;

/// Where a client sends through one entity to another, in one transaction.
const DESTINATION: &str = "com.microsoft:transfer-destination-address";

/// Answers a client that wants to send to this path, and takes what it sends.
pub(crate) async fn serve(peer: Arc<Peer>, attaching: Attaching, path: String) {
    let destination = attaching.attach.properties.text(DESTINATION).map(str::to_owned);
    let endpoint = match find(&peer, &path, destination.as_deref()).await {
        Ok(endpoint) => endpoint,
        Err(fault) => {
            peer.front.metrics.observe("Send", fault.outcome(), std::time::Duration::ZERO);
            return attaching.refuse(fault.into());
        }
    };
    let receiving = Receiving {
        credit: SENDER_CREDIT,
        message_bytes_max: endpoint.description().message_bytes_max() as u64,
        properties: Map::default(),
        capabilities: Vec::new(),
    };
    let Some(link) = attaching.receive(receiving) else { return };
    take(&peer, link, &endpoint, &path, destination.is_some()).await;
}

async fn find(peer: &Peer, path: &str, destination: Option<&str>) -> Result<Endpoint> {
    let endpoint = peer.open(path, Right::Send).await?;
    match destination {
        Some(destination) => peer.open(crate::address::path(destination), Right::Send).await,
        None => Ok(endpoint),
    }
}

async fn take(peer: &Peer, mut link: Incoming, endpoint: &Endpoint, path: &str, via: bool) {
    let mut deliveries = Vec::new();
    let mut expired = std::pin::pin!(peer.expired(path, Right::Send));
    loop {
        let count = tokio::select! {
            biased;
            fault = &mut expired => return link.detach(fault.into()),
            count = link.next_many(&mut deliveries, SEND_AT_ONCE_MAX) => count,
        };
        if count == 0 {
            return;
        }
        let mut waiting = Vec::new();
        let mut bytes = 0;
        for delivery in deliveries.drain(..) {
            if let Some(DeliveryState::Transactional { transaction, .. }) = &delivery.state {
                let transaction = transaction.clone();
                send_all(peer, endpoint, std::mem::take(&mut waiting)).await;
                send_in(peer, endpoint, delivery, transaction);
                continue;
            }
            if via {
                let text = "Messages to another destination are sent in a transaction.";
                delivery.settle(DeliveryState::rejected(Fault::argument(text).into()));
                continue;
            }
            bytes += delivery.payload.len();
            match message::read(&delivery.payload, delivery.format) {
                Ok(messages) => waiting.push((delivery, messages)),
                Err(fault) => delivery.settle(DeliveryState::rejected(fault.into())),
            }
            if bytes > SEND_AT_ONCE_BYTES_MAX {
                bytes = 0;
                send_all(peer, endpoint, std::mem::take(&mut waiting)).await;
            }
        }
        send_all(peer, endpoint, waiting).await;
    }
}

/// Sends all in one call, so that they share a commit. What is refused together with others is sent alone, so that one bad
/// message costs the others nothing; what may have been stored is not sent again.
async fn send_all(peer: &Peer, endpoint: &Endpoint, mut waiting: Vec<(Delivery, Vec<NewMessage>)>) {
    if waiting.is_empty() {
        return;
    }
    let began = Instant::now();
    let is_alone = waiting.len() == 1;
    let counts: Vec<usize> = waiting.iter().map(|(_, messages)| messages.len()).collect();
    let all = match is_alone {
        // It is not needed again.
        true => std::mem::take(&mut waiting[0].1),
        false => waiting.iter().flat_map(|(_, messages)| messages.iter().cloned()).collect(),
    };
    let total = all.len();
    let sent = peer.front.bus.send_each(endpoint, all).await;
    let sent = sent.unwrap_or_else(|error| vec![Err(error); total]);
    let mut answers = sent.into_iter();
    let mut refused = Vec::new();
    for ((delivery, messages), count) in waiting.into_iter().zip(counts) {
        // All of them are taken before the first refusal is looked at.
        let own: Vec<_> = answers.by_ref().take(count).collect();
        let answer: lazuli_engine::Result<Vec<u64>> = own.into_iter().collect();
        match answer {
            Err(error) if !is_alone && !is_in_doubt(&error) => refused.push((delivery, messages)),
            answer => settle(peer, delivery, answer.map(drop).map_err(from_core), began),
        }
    }
    for one in refused {
        Box::pin(send_all(peer, endpoint, vec![one])).await;
    }
}

/// Whether a write may have been done although it failed.
fn is_in_doubt(error: &lazuli_engine::Error) -> bool {
    use lazuli_engine::Kind;
    matches!(error.kind(), Kind::Unavailable { .. } | Kind::Internal | Kind::Corrupt)
}

fn settle(peer: &Peer, delivery: Delivery, answer: Result<()>, began: Instant) {
    let outcome = answer.as_ref().map_or_else(Fault::outcome, |()| Outcome::Ok);
    peer.front.metrics.observe("Send", outcome, began.elapsed());
    delivery.settle(match answer {
        Ok(()) => DeliveryState::Accepted,
        Err(fault) => DeliveryState::rejected(fault.into()),
    });
}

/// Adds a delivery to a transaction.
fn send_in(peer: &Peer, endpoint: &Endpoint, delivery: Delivery, transaction: Bytes) {
    let read = message::read(&delivery.payload, delivery.format);
    let added = read.and_then(|messages| {
        let key = message::via_partition_key(&delivery.payload);
        let operations = messages.into_iter().map(|mut message| {
            message.partition_key = message.partition_key.or_else(|| key.clone());
            BusOperation::Send { to: endpoint.clone(), message }
        });
        peer.transactions.add(&transaction, operations.collect())
    });
    let outcome = match added {
        Ok(()) => DeliveryState::Accepted,
        Err(fault) => DeliveryState::rejected(fault.into()),
    };
    let outcome = Some(Box::new(outcome));
    delivery.settle(DeliveryState::Transactional { transaction, outcome });
}
