//! Links on which a reader gets the events of one partition.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_amqp::{Attaching, Event, Outgoing, Sending, Symbol, Value};
use lazuli_log::{Hub, ReadLimit, Start};
use lazuli_net::Outcome;

use super::ownership::{LOOK_INTERVAL, Ownership};
use super::position::Position;
use super::readers::{Reader, stolen};
use super::{HubAddress, event, find, from_log};
use crate::access::Right;
use crate::error::{Fault, Result};
use crate::peer::Peer;

const EPOCH: &str = "com.microsoft:epoch";
const RUNTIME_METRIC: &str = "com.microsoft:enable-receiver-runtime-metric";
/// What one look at the log answers at most.
const LOOK_BYTES: usize = 1024 * 1024;
const LOOK_BATCHES: usize = 256;
/// How long a reader waits before it looks by itself, in case nothing wakes it.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// How long a reader waits where the log cannot be read for a while.
const AWAY: Duration = Duration::from_millis(200);

const TAKEN: &str =
    "New receiver with higher epoch is created, hence current receiver is getting disconnected.";

/// One reader of one partition.
struct Link {
    peer: Arc<Peer>,
    hub: Arc<Hub>,
    partition: u32,
    /// What it was attached to.
    path: String,
    next: u64,
    has_metrics: bool,
    reader: Reader,
    /// Where other processes have readers too.
    ownership: Option<Ownership>,
}

pub(crate) async fn serve(peer: Arc<Peer>, attaching: Attaching, address: HubAddress) {
    let opened = open(&peer, &attaching, &address).await;
    let link = match opened {
        Ok(link) => link,
        Err(fault) => {
            peer.front.metrics.observe("ReadEvents", fault.outcome(), Duration::ZERO);
            return attaching.refuse(fault.into());
        }
    };
    let mut sending = Sending::default();
    if link.has_metrics {
        sending.capabilities.push(Symbol(RUNTIME_METRIC.to_owned()));
    }
    let Some(outgoing) = attaching.send(sending) else { return };
    let mut link = link;
    carry(&mut link, outgoing).await;
    if let Some(ownership) = link.ownership.take() {
        ownership.give_up().await;
    }
}

async fn open(peer: &Arc<Peer>, attaching: &Attaching, address: &HubAddress) -> Result<Link> {
    let (Some(group), Some(_)) = (&address.group, &address.partition) else {
        return Err(Fault::argument("A reader names a consumer group and a partition."));
    };
    let (namespace, hub) = find(peer, &address.hub, &address.path, Right::Listen).await?;
    if !hub.has_group(group) {
        let path = format!("{}:{group}", hub.name);
        return Err(Fault::entity_not_found(&path));
    }
    let Some(partition) = address.partition(&hub) else {
        let text = format!("The specified partition is invalid for the hub {}.", hub.name);
        return Err(Fault::new(400, "com.microsoft:argument-out-of-range", text));
    };
    let attach = &attaching.attach;
    let epoch = attach.properties.get(EPOCH).and_then(Value::as_integer);
    let logs = &peer.front.hubs.logs;
    let start = match Position::of(attach.source.as_ref())? {
        Position::Offset(offset) => Ok(offset),
        Position::First => Err(Start::First),
        Position::End => Err(Start::End),
        Position::Time(ms) => Err(Start::Time(ms)),
    };
    let next = match start {
        Ok(offset) => offset,
        Err(start) => logs.find(&hub, partition, start).await.map_err(from_log)?.0,
    };
    let has_metrics = attach.desired_capabilities.iter().any(|one| one.0 == RUNTIME_METRIC);
    let reader = peer.front.hubs.readers.enter(hub.id(), partition, group, epoch)?;
    let ownership = Ownership::take(logs, &namespace, group, &hub, partition, epoch).await?;
    let (peer, path) = (peer.clone(), address.path.clone());
    Ok(Link { peer, hub, partition, path, next, has_metrics, reader, ownership })
}

/// Sends events as the reader takes them, until it leaves or another one takes the partition.
async fn carry(link: &mut Link, mut outgoing: Outgoing) {
    let mut waiter = link.peer.front.hubs.logs.waiter();
    waiter.watch(link.hub.id(), link.partition);
    let others = link.ownership.is_some();
    let (peer, path) = (link.peer.clone(), link.path.clone());
    let mut expired = std::pin::pin!(peer.expired(&path, Right::Listen));
    loop {
        if let Some(ownership) = &mut link.ownership
            && ownership.is_lost().await
        {
            return outgoing.detach(stolen(TAKEN).into());
        }
        let (mut sent, mut has_more) = (0, false);
        let mut pause = link.peer.front.hubs.logs.poll().unwrap_or(LOOK_MAX);
        if outgoing.credit() > 0 {
            match send(link, &mut outgoing).await {
                Ok(Sent { count, came_further }) => (sent, has_more) = (count, came_further),
                // The partition is on its way to another shard, or the like: readers wait for it.
                Err(fault) if fault.status == 503 => pause = AWAY,
                Err(fault) => {
                    link.peer.front.metrics.observe("ReadEvents", fault.outcome(), AWAY);
                    return outgoing.detach(fault.into());
                }
            }
        }
        if sent == 0 && !has_more && outgoing.drain() {
            outgoing.drained();
        }
        if has_more && outgoing.credit() > 0 {
            // There may be more; what the client says meanwhile is heard below without waiting.
            pause = Duration::ZERO;
        }
        let has_credit = outgoing.credit() > 0;
        tokio::select! {
            biased;
            fault = &mut expired => return outgoing.detach(fault.into()),
            () = link.reader.stolen() => {
                return outgoing.detach(stolen(TAKEN).into());
            }
            event = outgoing.next() => match event {
                None => return,
                // Readers say of every event that they have it, which is of no interest.
                Some(Event::Flow | Event::Disposition(_)) => {}
            },
            () = waiter.woken(), if has_credit => {}
            () = tokio::time::sleep(pause), if has_credit => {}
            () = tokio::time::sleep(LOOK_INTERVAL), if others => {}
        }
    }
}

/// What one look at the log led to.
struct Sent {
    count: usize,
    /// Whether the reader stands further on: over gaps without sending it anything.
    came_further: bool,
}

/// Sends what there is and the reader takes.
async fn send(link: &mut Link, outgoing: &mut Outgoing) -> Result<Sent> {
    let began = std::time::Instant::now();
    let limit = ReadLimit { bytes: LOOK_BYTES, batches: LOOK_BATCHES };
    let logs = &link.peer.front.hubs.logs;
    let page = logs.read(&link.hub, link.partition, link.next, limit).await.map_err(from_log)?;
    let metrics = link.has_metrics.then_some(&page.state);
    let (mut count, before) = (0, link.next);
    link.next = link.next.max(page.state.first.min(page.state.next));
    for batch in &page.batches {
        let credit = outgoing.credit() as usize;
        if credit == 0 {
            break;
        }
        let turn = link.peer.front.hubs.decompressing.acquire().await;
        let events = event::write(batch, link.next, credit, metrics)?;
        drop(turn);
        let is_all = events.len() < credit;
        for event in events {
            if outgoing.credit() == 0 {
                return Ok(Sent { count, came_further: link.next > before });
            }
            let tag = Bytes::copy_from_slice(&event.offset.to_be_bytes());
            outgoing.send(tag, event.head, event.body, true);
            link.next = event.offset + 1;
            count += 1;
        }
        if is_all {
            // Compaction leaves batches that end without a record.
            link.next = link.next.max(batch.end());
        }
    }
    if count > 0 {
        link.peer.front.metrics.observe("ReadEvents", Outcome::Ok, began.elapsed());
    }
    Ok(Sent { count, came_further: link.next > before })
}
