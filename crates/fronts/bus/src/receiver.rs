//! Links on which a client receives from a queue, a subscription, or a session of one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_amqp::performative::SND_SETTLED;
use lazuli_amqp::{
    Attaching, Confirmer, DeliveryState, Event, Map, Outgoing, Said, Sending, Value,
};
use lazuli_bus_shape::{BusOperation, Endpoint, ReceiveMode, Receiver, SessionLock, Settlement};
use lazuli_net::Outcome;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::access::Right;
use crate::error::{Fault, Result, TIMEOUT, from_core};
use crate::limits::{SESSION_WAIT, SESSION_WAIT_MAX, SETTLE_AT_ONCE_MAX, TAKE_AT_ONCE_MAX};
use crate::message::write_delivery;
use crate::peer::Peer;
use crate::{now_ms, settle};

const SESSION_FILTER: &str = "com.microsoft:session-filter";
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";
const TIMEOUT_PROPERTY: &str = "com.microsoft:timeout";
/// Ticks of 100 nanoseconds from the year 1 to the Unix epoch.
const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;
const TICKS_PER_MS: i64 = 10_000;

/// What a client wants of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// The entity without sessions.
    Messages,
    Session(String),
    NextSession,
}

/// What the tasks of one link share.
struct Link {
    peer: Arc<Peer>,
    endpoint: Endpoint,
    path: String,
    /// The id of the session that it holds.
    session_id: Option<String>,
}

impl Link {
    fn session(&self) -> Option<SessionLock> {
        self.peer.session(&self.path, self.session_id.as_deref()?)
    }
}

/// Answers a client that wants to receive from this path, and sends it messages.
pub(crate) async fn serve(peer: Arc<Peer>, mut attaching: Attaching, path: String) {
    let (endpoint, session) = match open(&peer, &mut attaching, &path).await {
        Ok(Some(opened)) => opened,
        // It left while it waited.
        Ok(None) => return,
        Err(fault) => {
            peer.front.metrics.observe("Receive", fault.outcome(), Duration::ZERO);
            return attaching.refuse(fault.into());
        }
    };
    let mode = match attaching.attach.snd_settle_mode {
        Some(SND_SETTLED) => ReceiveMode::ReceiveAndDelete,
        _ => ReceiveMode::PeekLock,
    };
    let sending = accepted(&attaching, session.as_ref());
    let session_id = session.as_ref().map(|lock| lock.session_id.clone());
    if let Some(lock) = &session {
        peer.hold_session(&path, lock.clone());
    }
    let receiver = peer.front.bus.receiver(&endpoint, mode, session);
    let link = Arc::new(Link { peer, endpoint, path, session_id });
    match attaching.send(sending) {
        Some(outgoing) => run(&link, outgoing, receiver, mode).await,
        None => release(&link).await,
    }
}

/// Finds the entity, and locks the session if one is wanted. None if the client has left.
async fn open(
    peer: &Peer,
    attaching: &mut Attaching,
    path: &str,
) -> Result<Option<(Endpoint, Option<SessionLock>)>> {
    let endpoint = peer.open(path, Right::Listen).await?;
    let wanted = wanted(attaching);
    let session_id = match &wanted {
        Wanted::Messages => return Ok(Some((endpoint, None))),
        Wanted::Session(id) => Some(id.as_str()),
        Wanted::NextSession => None,
    };
    let wait = attaching.attach.properties.integer(TIMEOUT_PROPERTY);
    let wait = wait.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let until = Instant::now() + wait.unwrap_or(SESSION_WAIT).min(SESSION_WAIT_MAX);
    let bus = &peer.front.bus;
    let mut watcher = bus.watcher(&endpoint);
    loop {
        // Run to its end, because it may lock a session.
        let accepted = bus.accept_session(&endpoint, session_id).await.map_err(from_core)?;
        if let Some(lock) = accepted {
            return Ok(Some((endpoint, Some(lock))));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let text =
                "The operation did not complete within the allotted time: no session is there.";
            return Err(Fault::new(408, TIMEOUT, text));
        }
        tokio::select! {
            biased;
            () = attaching.abandoned() => return Ok(None),
            _ = watcher.changed(left) => {}
        }
    }
}

fn wanted(attaching: &Attaching) -> Wanted {
    let filters = attaching.attach.source.as_ref().and_then(|source| source.filters());
    match filters.and_then(|filters| filters.get(SESSION_FILTER)).map(Value::undescribed) {
        None => Wanted::Messages,
        Some(filter) => match filter.as_text() {
            Some(id) => Wanted::Session(id.to_owned()),
            None => Wanted::NextSession,
        },
    }
}

/// How the link is accepted: the session that was chosen stands in the source.
fn accepted(attaching: &Attaching, session: Option<&SessionLock>) -> Sending {
    let Some(lock) = session else { return Sending::default() };
    let source = attaching.attach.source.clone();
    let source =
        source.map(|source| source.with_filter(SESSION_FILTER, lock.session_id.as_str().into()));
    let properties = Map::default().with(LOCKED_UNTIL, ticks(lock.until_ms));
    Sending { source, properties, capabilities: Vec::new() }
}

/// A moment as .NET counts it.
pub(crate) fn ticks(ms: u64) -> i64 {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    ms.saturating_mul(TICKS_PER_MS).saturating_add(UNIX_EPOCH_TICKS)
}

/// Sends messages until the client detaches the link, or its session is lost.
async fn run(link: &Arc<Link>, mut outgoing: Outgoing, mut receiver: Receiver, mode: ReceiveMode) {
    let (said, to_settle) = unbounded_channel();
    let settling = tokio::spawn(settle_all(link.clone(), outgoing.confirmer(), to_settle));
    let error = carry(link, &mut outgoing, &mut receiver, mode, &said).await;
    // What the client has said before it left is done before it hears that the link is gone.
    drop(said);
    let _ = settling.await;
    release(link).await;
    if let Err(fault) = error {
        outgoing.detach(fault.into());
    }
}

async fn carry(
    link: &Link,
    outgoing: &mut Outgoing,
    receiver: &mut Receiver,
    mode: ReceiveMode,
    said: &UnboundedSender<Said>,
) -> Result<()> {
    let mut session = link.session();
    let mut expired = std::pin::pin!(link.peer.expired(&link.path, Right::Listen));
    loop {
        let credit = outgoing.credit() as usize;
        if credit > 0 {
            if link.session_id.is_some() && link.session() != session {
                session = link.session();
                let lock = session.clone().ok_or_else(Fault::session_lock_lost)?;
                receiver.set_session(lock);
            }
            let sent = send(link, outgoing, receiver, mode, credit.min(TAKE_AT_ONCE_MAX)).await?;
            if outgoing.drain() {
                if sent > 0 {
                    // Credit is given back when nothing more is there.
                    continue;
                }
                outgoing.drained();
            }
        }
        let has_credit = outgoing.credit() > 0;
        let lost = session_end(link);
        tokio::select! {
            biased;
            fault = &mut expired => return Err(fault),
            event = outgoing.next() => match event {
                None => return Ok(()),
                Some(Event::Flow) => {}
                // The other task lives until we drop the sender.
                Some(Event::Disposition(one)) => drop(said.send(one)),
            },
            () = receiver.ready(), if has_credit => {}
            () = lost => {
                if link.session().is_none_or(|lock| lock.until_ms <= now_ms()) {
                    return Err(Fault::session_lock_lost());
                }
            }
        }
    }
}

/// Waits for the end of the lock on the session, if the link holds one.
async fn session_end(link: &Link) {
    match link.session() {
        Some(lock) => {
            let left = lock.until_ms.saturating_sub(now_ms());
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        None if link.session_id.is_some() => {}
        None => std::future::pending().await,
    }
}

/// Takes messages and sends them. Says how many there were.
async fn send(
    link: &Link,
    outgoing: &mut Outgoing,
    receiver: &mut Receiver,
    mode: ReceiveMode,
    most: usize,
) -> Result<usize> {
    let began = Instant::now();
    let taken = receiver.take(most).await.map_err(from_core);
    let metrics = &link.peer.front.metrics;
    let deliveries = match taken {
        Ok(deliveries) => deliveries,
        Err(fault) => {
            metrics.observe("Receive", fault.outcome(), began.elapsed());
            return Err(fault);
        }
    };
    if !deliveries.is_empty() {
        metrics.observe("Receive", Outcome::Ok, began.elapsed());
    }
    for delivery in &deliveries {
        let tag = match delivery.lock {
            Some(lock) => settle::tag(lock.token),
            None => {
                Bytes::copy_from_slice(&u128::from(delivery.message.sequence_number).to_be_bytes())
            }
        };
        let written = write_delivery(delivery);
        outgoing.send(tag, written.head, written.body, mode == ReceiveMode::ReceiveAndDelete);
    }
    Ok(deliveries.len())
}

/// Settles what the client has said, as much as there is in one call, and answers when that is durable.
async fn settle_all(link: Arc<Link>, confirmer: Confirmer, mut said: UnboundedReceiver<Said>) {
    let mut many = Vec::new();
    while said.recv_many(&mut many, SETTLE_AT_ONCE_MAX).await > 0 {
        let began = Instant::now();
        let (mut settlements, mut answers) = (Vec::new(), Vec::new());
        for one in many.drain(..) {
            match prepare(&link, &one) {
                Ok(Some((settlement, answer))) => {
                    settlements.push(settlement);
                    answers.push((one.id, answer));
                }
                Ok(None) => {}
                Err(fault) => confirmer.confirm(one.id, DeliveryState::rejected(fault.into())),
            }
            if let Some(answer) = in_transaction(&link, &one) {
                confirmer.confirm(one.id, answer);
            }
        }
        if settlements.is_empty() {
            continue;
        }
        let session = link.session();
        let bus = &link.peer.front.bus;
        let settled = bus.settle(&link.endpoint, session.as_ref(), settlements).await;
        let settled = match settled {
            Ok(settled) => settled,
            Err(error) => vec![Err(error); answers.len()],
        };
        let metrics = &link.peer.front.metrics;
        for ((id, answer), result) in answers.into_iter().zip(settled) {
            let result = result.map_err(from_core);
            let outcome = result.as_ref().map_or_else(Fault::outcome, |()| Outcome::Ok);
            metrics.observe("Settle", outcome, began.elapsed());
            let state =
                result.map_or_else(|fault| DeliveryState::rejected(fault.into()), |()| answer);
            confirmer.confirm(id, state);
        }
    }
}

/// What is to be settled, and the answer if that succeeds; none if it waits for the end of a transaction.
fn prepare(_link: &Link, said: &Said) -> Result<Option<(Settlement, DeliveryState)>> {
    let meant = settle::read(said)?;
    let token = settle::token(&said.tag).ok_or_else(Fault::lock_lost)?;
    Ok(match meant.transaction {
        Some(_) => None,
        None => Some((Settlement { token, outcome: meant.outcome }, meant.answer)),
    })
}

/// Adds what was said in a transaction to it; the answer to that.
fn in_transaction(link: &Link, said: &Said) -> Option<DeliveryState> {
    let meant = settle::read(said).ok()?;
    let (transaction, token) = (meant.transaction?, settle::token(&said.tag)?);
    let settlement = Settlement { token, outcome: meant.outcome };
    let (from, session) = (link.endpoint.clone(), link.session());
    let operation = BusOperation::Settle { from, session, settlement };
    Some(match link.peer.transactions.add(&transaction, vec![operation]) {
        Ok(()) => meant.answer,
        Err(fault) => DeliveryState::rejected(fault.into()),
    })
}

/// Gives the session back.
async fn release(link: &Link) {
    let Some(lock) = link.session() else { return };
    link.peer.forget_session(&link.path, &lock.session_id);
    // A lock that cannot be given back now ends by itself.
    let _ = link.peer.front.bus.release_session(&link.endpoint, &lock).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_count_from_the_year_one() {
        assert_eq!(ticks(0), UNIX_EPOCH_TICKS);
        assert_eq!(ticks(1), UNIX_EPOCH_TICKS + 10_000);
    }
}
