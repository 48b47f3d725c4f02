//! The bus as fronts see it: messages and sessions. What is about entities is in `entities.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_engine::{BoxFuture, Engine, Error, MapReason, Result, join_all};

use crate::address::Address;
use crate::description::MessageCounts;
use crate::endpoint::Endpoint;
use crate::fragment::{Place, Woken, not_found};
use crate::limits::{RECEIVE_MESSAGES_MAX, SEND_MESSAGES_MAX, SETTLEMENTS_MAX};
use crate::message::{Delivery, LockToken, Message, Settlement, fragment_of};
use crate::peek::{self, DeleteMessages};
use crate::receive::{ReceiveDeferred, ReceiveMode};
use crate::receiver::{Receiver, Watcher};
use crate::rows::{Line, Part};
use crate::session::SessionLock;
use crate::settle::{Cancel, Renew, Settle};
use crate::shared::Shared;
use crate::{BusReason, BusSettings, ReadMessage, timers};

/// All entities of all namespaces.
#[derive(Clone)]
pub struct Bus {
    pub(crate) engine: Arc<Engine>,
    pub(crate) shared: Arc<Shared>,
}

/// A fragment, places in a request, and what came of the settlements there.
type Settled = (Place, Vec<usize>, Result<(Vec<Result<()>>, Woken)>);

/// An error of a fragment that is not there any more is one of its entity.
pub(crate) fn gone(error: Error) -> Error {
    match error.is(MapReason::MappingNotFound) {
        true => not_found(),
        false => error,
    }
}

impl Bus {
    /// From here on the engine's sweep also ends locks, schedules and what expires in the bus.
    pub fn new(engine: Arc<Engine>, reader: Arc<dyn ReadMessage>, settings: BusSettings) -> Self {
        let shared = Arc::new(Shared::new(engine.env().clone(), reader, settings));
        timers::register(&engine, &shared);
        Self { engine, shared }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Finds an entity. Fails with [`BusReason::EntityNotFound`].
    pub async fn open(&self, namespace: &str, address: &Address) -> Result<Endpoint> {
        self.find(namespace, address).await
    }

    /// Settles messages. The answers are in the order of the settlements; one that is refused does not hinder the others.
    pub async fn settle(
        &self,
        from: &Endpoint,
        session: Option<&SessionLock>,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<Result<()>>> {
        check_count(settlements.len())?;
        let mut outcomes: Vec<Result<()>> = settlements.iter().map(|_| Ok(())).collect();
        let number = |settlement: &Settlement| settlement.token.sequence_number;
        let mut parts: Vec<BoxFuture<'_, Settled>> = Vec::new();
        for (fragment, group) in by_fragment(settlements, number) {
            let (at, settlements): (Vec<_>, Vec<_>) = group.into_iter().unzip();
            if u32::from(fragment) >= from.fragments() {
                at.into_iter().for_each(|at| outcomes[at] = Err(crate::settle::lock_lost()));
                continue;
            }
            let place = from.place(fragment)?;
            let settle = Settle {
                shared: self.shared.clone(),
                place: place.clone(),
                line: from.0.line,
                session: session.cloned(),
                settlements,
            };
            parts.push(Box::pin(async move {
                let settled = self.engine.write(place.container, &place.route, settle).await;
                (place, at, settled.map_err(gone))
            }));
        }
        for (place, at, settled) in join_all(parts).await {
            match settled {
                Ok((settled, woken)) => {
                    self.shared.fire(place.container, from.0.entity, woken);
                    at.into_iter().zip(settled).for_each(|(at, outcome)| outcomes[at] = outcome);
                }
                Err(error) => at.into_iter().for_each(|at| outcomes[at] = Err(error.clone())),
            }
        }
        Ok(outcomes)
    }

    /// Renews locks and answers until when each holds.
    pub async fn renew(
        &self,
        from: &Endpoint,
        session: Option<&SessionLock>,
        tokens: &[LockToken],
    ) -> Result<Vec<Result<u64>>> {
        check_count(tokens.len())?;
        let mut outcomes: Vec<Result<u64>> = tokens.iter().map(|_| Ok(0)).collect();
        for (fragment, group) in by_fragment(tokens.to_vec(), |token| token.sequence_number) {
            let (at, tokens): (Vec<_>, Vec<_>) = group.into_iter().unzip();
            if u32::from(fragment) >= from.fragments() {
                at.into_iter().for_each(|at| outcomes[at] = Err(crate::settle::lock_lost()));
                continue;
            }
            let place = from.place(fragment)?;
            let (shared, line) = (self.shared.clone(), from.0.line);
            let session = session.cloned();
            let renew = Renew { shared, place: place.clone(), line, session, tokens };
            let renewed = self.engine.write(place.container, &place.route, renew).await;
            for (at, outcome) in at.into_iter().zip(renewed.map_err(gone)?) {
                outcomes[at] = outcome;
            }
        }
        Ok(outcomes)
    }

    /// Deferred messages by their numbers, which are of one fragment. Fails with `MessageNotFound` if one is not there.
    pub async fn receive_deferred(
        &self,
        from: &Endpoint,
        session: Option<&SessionLock>,
        numbers: &[u64],
        mode: ReceiveMode,
    ) -> Result<Vec<Delivery>> {
        check_count(numbers.len())?;
        from.check_receives()?;
        let Some(first) = numbers.first() else { return Ok(Vec::new()) };
        let place = one_fragment(from, *first, numbers)?;
        let receive = ReceiveDeferred {
            shared: self.shared.clone(),
            place: place.clone(),
            line: from.0.line,
            session: session.cloned(),
            mode,
            numbers: numbers.to_vec(),
        };
        let received = self.engine.write(place.container, &place.route, receive).await;
        let (deliveries, woken) = received.map_err(gone)?;
        self.shared.fire(place.container, from.0.entity, woken);
        Ok(deliveries)
    }

    /// Messages in any state from a sequence number on, which stay where they are. Fragments follow one another.
    pub async fn peek(
        &self,
        from: &Endpoint,
        session: Option<&str>,
        number: u64,
        most: usize,
    ) -> Result<Vec<Message>> {
        let most = most.clamp(1, RECEIVE_MESSAGES_MAX);
        let mut messages = Vec::new();
        for place in from.places()?.into_iter().skip(fragment_of(number).into()) {
            let view = self.engine.read(place.container, &place.route, 1).await.map_err(gone)?;
            let rest = most - messages.len();
            messages.extend(peek::peek(&view, &place, from.0.line, session, number, rest).await?);
            if messages.len() >= most {
                break;
            }
        }
        Ok(messages)
    }

    /// Cancels scheduled messages. Fails with `MessageNotFound` if one is not there any more, and then cancels none of its
    /// fragment.
    pub async fn cancel_scheduled(&self, to: &Endpoint, numbers: &[u64]) -> Result<()> {
        check_count(numbers.len())?;
        for (fragment, group) in by_fragment(numbers.to_vec(), |number| *number) {
            let numbers: Vec<u64> = group.into_iter().map(|(_, number)| number).collect();
            let place = one_fragment(to, u64::from(fragment) << crate::SEQUENCE_BITS, &[])?;
            let cancel = Cancel { shared: self.shared.clone(), place: place.clone(), numbers };
            self.engine.write(place.container, &place.route, cancel).await.map_err(gone)?;
        }
        Ok(())
    }

    /// Deletes waiting messages that were enqueued before a time, and says how many.
    pub async fn delete_messages(
        &self,
        from: &Endpoint,
        session: Option<&str>,
        before_ms: u64,
        most: usize,
    ) -> Result<usize> {
        from.check_receives()?;
        let most = most.clamp(1, SEND_MESSAGES_MAX);
        let mut deleted = 0;
        for place in from.places()? {
            let mut start = Some(0);
            while let (Some(from_number), true) = (start, deleted < most) {
                let delete = DeleteMessages {
                    shared: self.shared.clone(),
                    place: place.clone(),
                    line: from.0.line,
                    session: session.map(str::to_owned),
                    before_ms,
                    with_deferred: false,
                    from: from_number,
                    most: (most - deleted).min(RECEIVE_MESSAGES_MAX),
                };
                let done = self.engine.write(place.container, &place.route, delete).await;
                let done = done.map_err(gone)?;
                deleted += done.count;
                start = done.next;
            }
        }
        Ok(deleted)
    }

    /// Deletes all messages that wait, are deferred or scheduled, and says how many.
    pub async fn purge(&self, from: &Endpoint) -> Result<u64> {
        let mut lines = vec![from.0.line];
        if from.0.line == Line::new(0, Part::Main) {
            lines.push(Line::new(0, Part::Scheduled));
        }
        let mut deleted = 0;
        for place in from.places()? {
            for line in &lines {
                let mut start = Some(0);
                while let Some(from_number) = start {
                    let delete = DeleteMessages {
                        shared: self.shared.clone(),
                        place: place.clone(),
                        line: *line,
                        session: None,
                        before_ms: u64::MAX,
                        with_deferred: true,
                        from: from_number,
                        most: RECEIVE_MESSAGES_MAX,
                    };
                    let done = self.engine.write(place.container, &place.route, delete).await;
                    let done = done.map_err(gone)?;
                    deleted += done.count as u64;
                    start = done.next;
                }
            }
        }
        Ok(deleted)
    }

    /// The counts of the entity or subscription that an endpoint belongs to.
    pub async fn counts(&self, of: &Endpoint) -> Result<MessageCounts> {
        let mut total = MessageCounts::default();
        for place in of.places()? {
            let view = self.engine.read(place.container, &place.route, 1).await.map_err(gone)?;
            let counts = peek::counts(&view, &place, of.0.line.owner).await?;
            total.active += counts.active;
            total.dead_letter += counts.dead_letter;
            total.scheduled += counts.scheduled;
            total.transfer += counts.transfer;
            total.transfer_dead_letter += counts.transfer_dead_letter;
            total.bytes += counts.bytes;
        }
        Ok(total)
    }

    pub fn receiver(
        &self,
        from: &Endpoint,
        mode: ReceiveMode,
        session: Option<SessionLock>,
    ) -> Receiver {
        Receiver::new(self, from, mode, session)
    }

    pub fn watcher(&self, of: &Endpoint) -> Watcher {
        Watcher::new(self, of)
    }
}

fn check_count(count: usize) -> Result<()> {
    if count > SETTLEMENTS_MAX {
        let message = format!("more than {SETTLEMENTS_MAX} messages in one request");
        return Err(Error::too_large(BusReason::MessageTooLarge, message));
    }
    Ok(())
}

/// Groups what is about messages by their fragments, each with its place in the request.
fn by_fragment<T>(all: Vec<T>, number: impl Fn(&T) -> u64) -> BTreeMap<u16, Vec<(usize, T)>> {
    let mut groups: BTreeMap<u16, Vec<(usize, T)>> = BTreeMap::new();
    for (at, one) in all.into_iter().enumerate() {
        groups.entry(fragment_of(number(&one))).or_default().push((at, one));
    }
    groups
}

/// The place of numbers that are all of one fragment.
fn one_fragment(of: &Endpoint, first: u64, numbers: &[u64]) -> Result<Place> {
    let fragment = fragment_of(first);
    if numbers.iter().any(|number| fragment_of(*number) != fragment) {
        let message = "the sequence numbers of one request are of one partition";
        return Err(Error::invalid(BusReason::SeveralFragments, message));
    }
    if u32::from(fragment) >= of.fragments() {
        let message = format!("there is no message {first}");
        return Err(Error::not_found(BusReason::MessageNotFound, message));
    }
    of.place(fragment)
}
