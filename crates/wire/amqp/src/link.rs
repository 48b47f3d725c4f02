//! Links as the front sees them: handles that may be used from any task. What they are told goes to the task of the
//! connection over a channel, which is the only thing that the two share on the hot path.
//!
//! Dropping a handle detaches the link. When the client has detached it, the handle yields `None` once everything before
//! that was taken, and the client gets its answer when the handle is dropped: so what a front gives up with a link (a lock
//! on a session, for example) is given up before the client can attach again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::limits::{DELIVERY_BYTES, Limits};
use crate::performative::{Attach, SENDER};
use crate::state::{DeliveryState, Error, condition};
use crate::terminus::Terminus;
use crate::value::{Map, Symbol};

/// A link of a connection. The serial number tells it from others that had its handle before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId {
    pub(crate) channel: u16,
    pub(crate) handle: u32,
    pub(crate) serial: u64,
}

/// What handles ask of the task of the connection.
#[derive(Debug)]
pub(crate) enum Command {
    Accept(LinkId, Box<Answer>),
    Refuse(LinkId, Error),
    /// The front has said what became of a delivery that came in.
    Settle(LinkId, u32, DeliveryState),
    Send(LinkId, Outbound),
    /// The front answers what the client has said of a delivery that went out.
    Confirm(LinkId, u32, DeliveryState),
    /// Nothing more will be sent for the credit up to this count.
    Drained(LinkId, u32),
    /// The handle was dropped.
    Leave(LinkId, Option<Error>),
    Close(Error),
}

/// How the front accepts a link.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) credit: u32,
    pub(crate) message_bytes_max: Option<u64>,
    pub(crate) source: Option<Terminus>,
    pub(crate) properties: Map,
    pub(crate) capabilities: Vec<Symbol>,
}

/// A delivery on its way out.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) tag: Bytes,
    pub(crate) format: u32,
    pub(crate) settled: bool,
    /// The message in two pieces, so that what changes with each delivery stands before what is stored.
    pub(crate) head: Bytes,
    pub(crate) body: Bytes,
}

impl Outbound {
    /// What it counts for in memory.
    pub(crate) fn cost(&self) -> usize {
        self.head.len() + self.body.len() + DELIVERY_BYTES
    }
}

/// What all handles of a connection share with its task.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) commands: UnboundedSender<Command>,
    pub(crate) limits: Arc<Limits>,
    /// Bytes of deliveries that handles have sent and the task has not written yet.
    pub(crate) queued_bytes: AtomicUsize,
    /// Whether a link found too much queued and wants to be told when there is room.
    pub(crate) starved: AtomicBool,
}

impl Shared {
    fn tell(&self, command: Command) {
        // An error means that the connection is gone, and with it everything that was to be told.
        let _ = self.commands.send(command);
    }
}

/// The connection as the front sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ConnectionHandle(pub(crate) Arc<Shared>);

impl ConnectionHandle {
    /// Closes the connection.
    pub fn close(&self, error: Error) {
        self.0.tell(Command::Close(error));
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.commands.is_closed()
    }
}

/// A link that the client wants, to be accepted or refused, now or later and from any task. Dropping it refuses.
#[derive(Debug)]
pub struct Attaching {
    /// What the client sent.
    pub attach: Attach,
    link: LinkId,
    shared: Arc<Shared>,
    ends: Option<Ends>,
}

#[derive(Debug)]
pub(crate) enum Ends {
    Incoming(UnboundedReceiver<Delivery>),
    Outgoing(UnboundedReceiver<Event>, Arc<Flowing>),
}

/// How the front accepts a link on which the client sends.
#[derive(Clone, Debug)]
pub struct Receiving {
    /// How many deliveries may be on their way or unsettled. It is topped up as they are settled.
    pub credit: u32,
    /// The largest message; the client is told.
    pub message_bytes_max: u64,
    pub properties: Map,
    pub capabilities: Vec<Symbol>,
}

/// How the front accepts a link on which the client receives.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    /// The source if it is another one than the client named.
    pub source: Option<Terminus>,
    pub properties: Map,
    pub capabilities: Vec<Symbol>,
}

impl Attaching {
    pub(crate) fn new(attach: Attach, link: LinkId, shared: Arc<Shared>, ends: Ends) -> Self {
        Self { attach, link, shared, ends: Some(ends) }
    }

    /// Whether the client sends on this link and we receive.
    pub fn client_sends(&self) -> bool {
        self.attach.role == SENDER
    }

    /// The session that the link is in. Links of one session share the number.
    pub fn channel(&self) -> u16 {
        self.link.channel
    }

    pub fn connection(&self) -> ConnectionHandle {
        ConnectionHandle(self.shared.clone())
    }

    /// Accepts a link on which the client sends. None if it is one on which it receives; then the link is refused.
    pub fn receive(mut self, receiving: Receiving) -> Option<Incoming> {
        let Some(Ends::Incoming(deliveries)) = self.ends.take() else {
            self.refuse_with(wrong_way());
            return None;
        };
        let answer = Answer {
            credit: receiving.credit,
            message_bytes_max: Some(receiving.message_bytes_max),
            source: None,
            properties: receiving.properties,
            capabilities: receiving.capabilities,
        };
        self.shared.tell(Command::Accept(self.link, Box::new(answer)));
        let end = LinkEnd { link: self.link, shared: self.shared.clone(), error: None };
        Some(Incoming { deliveries, end })
    }

    /// Accepts a link on which the client receives. None if it is one on which it sends; then the link is refused.
    pub fn send(mut self, sending: Sending) -> Option<Outgoing> {
        let Some(Ends::Outgoing(events, flowing)) = self.ends.take() else {
            self.refuse_with(wrong_way());
            return None;
        };
        let Sending { source, properties, capabilities } = sending;
        let answer = Answer { source, properties, capabilities, ..Answer::default() };
        self.shared.tell(Command::Accept(self.link, Box::new(answer)));
        let end = LinkEnd { link: self.link, shared: self.shared.clone(), error: None };
        Some(Outgoing { events, flowing, end, sent: 0, is_new: true })
    }

    /// Refuses the link with an error.
    pub fn refuse(mut self, error: Error) {
        self.refuse_with(error);
    }

    fn refuse_with(&mut self, error: Error) {
        self.ends = None;
        self.shared.tell(Command::Refuse(self.link, error));
    }

    /// Waits until the client gives up the link that it wants, or the connection ends.
    pub async fn abandoned(&mut self) {
        match &mut self.ends {
            Some(Ends::Outgoing(events, _)) => while events.recv().await.is_some() {},
            Some(Ends::Incoming(deliveries)) => while deliveries.recv().await.is_some() {},
            None => {}
        }
    }
}

fn wrong_way() -> Error {
    Error::new(condition::NOT_ALLOWED, "The link cannot be used in this direction.")
}

impl Drop for Attaching {
    fn drop(&mut self) {
        if self.ends.is_some() {
            self.refuse_with(Error::new(condition::INTERNAL_ERROR, "The link was not answered."));
        }
    }
}

/// The end of a link that is dropped with its handle.
#[derive(Debug)]
struct LinkEnd {
    link: LinkId,
    shared: Arc<Shared>,
    error: Option<Error>,
}

impl Drop for LinkEnd {
    fn drop(&mut self) {
        self.shared.tell(Command::Leave(self.link, self.error.take()));
    }
}

/// A link on which the client sends.
#[derive(Debug)]
pub struct Incoming {
    deliveries: UnboundedReceiver<Delivery>,
    end: LinkEnd,
}

impl Incoming {
    /// The next delivery; none when the client has detached the link or the connection has ended.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }

    /// Waits for a delivery and takes whatever has come by then, up to a count. Zero at the end.
    pub async fn next_many(&mut self, into: &mut Vec<Delivery>, count_max: usize) -> usize {
        self.deliveries.recv_many(into, count_max).await
    }

    /// Detaches the link with an error.
    pub fn detach(mut self, error: Error) {
        self.end.error = Some(error);
    }
}

/// A message that a client has sent. Dropping it without settling it releases it.
#[derive(Debug)]
pub struct Delivery {
    pub tag: Bytes,
    pub format: u32,
    /// What the client said of it when it sent it: the transaction that it belongs to.
    pub state: Option<DeliveryState>,
    /// Whether the client expects no answer.
    pub settled: bool,
    pub payload: Bytes,
    pub(crate) id: u32,
    pub(crate) link: LinkId,
    pub(crate) shared: Option<Arc<Shared>>,
}

impl Delivery {
    /// Says what became of it.
    pub fn settle(mut self, state: DeliveryState) {
        self.settle_with(state);
    }

    fn settle_with(&mut self, state: DeliveryState) {
        if let Some(shared) = self.shared.take() {
            shared.tell(Command::Settle(self.link, self.id, state));
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.settle_with(DeliveryState::Released);
    }
}

/// How much the client of an outgoing link takes, as its task and its handle share it.
#[derive(Debug, Default)]
pub(crate) struct Flowing {
    /// The count up to which may be sent, and in bit 32 whether the client wants the rest of the credit used up.
    state: AtomicU64,
    /// Whether an event is on its way that tells of a change.
    pub(crate) told: AtomicBool,
    /// Deliveries that are sent and not settled.
    unsettled: AtomicUsize,
}

const DRAIN: u64 = 1 << 32;

impl Flowing {
    pub(crate) fn set(&self, limit: u32, drain: bool) {
        let drain = if drain { DRAIN } else { 0 };
        self.state.store(u64::from(limit) | drain, Ordering::Release);
    }

    fn get(&self) -> (u32, bool) {
        let state = self.state.load(Ordering::Acquire);
        (state as u32, state & DRAIN != 0)
    }

    pub(crate) fn settled(&self) {
        self.unsettled.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What happens on a link on which the client receives.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// Credit, drain or room may have changed: look at [`Outgoing::credit`] and [`Outgoing::drain`].
    Flow,
    /// The client said something of a delivery.
    Disposition(Said),
}

/// What the client said of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Names the delivery in [`Outgoing::confirm`].
    pub id: u32,
    /// As it was sent.
    pub tag: Bytes,
    pub state: Option<DeliveryState>,
    /// Whether the client expects no answer.
    pub settled: bool,
}

/// A link on which the client receives.
#[derive(Debug)]
pub struct Outgoing {
    events: UnboundedReceiver<Event>,
    flowing: Arc<Flowing>,
    end: LinkEnd,
    sent: u32,
    is_new: bool,
}

impl Outgoing {
    /// The next event; none when the client has detached the link or the connection has ended.
    pub async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_new) {
            return Some(Event::Flow);
        }
        let event = self.events.recv().await;
        if event == Some(Event::Flow) {
            self.flowing.told.store(false, Ordering::Release);
        }
        event
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        let event = self.events.try_recv().ok();
        if event == Some(Event::Flow) {
            self.flowing.told.store(false, Ordering::Release);
        }
        event
    }

    /// How many deliveries may be sent now. An event tells when it may have grown.
    pub fn credit(&self) -> u32 {
        let limits = &self.end.shared.limits;
        if self.end.shared.queued_bytes.load(Ordering::Acquire) >= limits.outgoing_bytes_max {
            self.end.shared.starved.store(true, Ordering::Release);
            // Looked at once more, because the task may have written everything in between.
            if self.end.shared.queued_bytes.load(Ordering::Acquire) >= limits.outgoing_bytes_max {
                return 0;
            }
        }
        let unsettled = self.flowing.unsettled.load(Ordering::Relaxed);
        let room = limits.unsettled_deliveries_max.saturating_sub(unsettled);
        let credit = self.flowing.get().0.wrapping_sub(self.sent);
        // A limit behind what was sent means that the client has taken credit back.
        let credit = if credit > u32::MAX / 2 { 0 } else { credit };
        credit.min(u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// Whether the client waits for its credit to be used up or given back with [`Outgoing::drained`].
    pub fn drain(&self) -> bool {
        let (limit, drain) = self.flowing.get();
        drain && limit != self.sent
    }

    /// Sends a message. Only as many as [`Outgoing::credit`] says may be sent.
    pub fn send(&mut self, tag: Bytes, head: Bytes, body: Bytes, settled: bool) {
        self.sent = self.sent.wrapping_add(1);
        if !settled {
            self.flowing.unsettled.fetch_add(1, Ordering::Relaxed);
        }
        let outbound = Outbound { tag, format: crate::message::FORMAT, settled, head, body };
        self.end.shared.queued_bytes.fetch_add(outbound.cost(), Ordering::AcqRel);
        self.end.shared.tell(Command::Send(self.end.link, outbound));
    }

    /// Gives back the credit that is left.
    pub fn drained(&mut self) {
        let (limit, _) = self.flowing.get();
        self.sent = limit;
        self.end.shared.tell(Command::Drained(self.end.link, limit));
    }

    /// Answers what the client said of a delivery.
    pub fn confirm(&self, id: u32, state: DeliveryState) {
        self.end.shared.tell(Command::Confirm(self.end.link, id, state));
    }

    /// What answers from other tasks.
    pub fn confirmer(&self) -> Confirmer {
        Confirmer { link: self.end.link, shared: self.end.shared.clone() }
    }

    /// Detaches the link with an error.
    pub fn detach(mut self, error: Error) {
        self.end.error = Some(error);
    }
}

/// Answers dispositions of one link from any task.
#[derive(Clone, Debug)]
pub struct Confirmer {
    link: LinkId,
    shared: Arc<Shared>,
}

impl Confirmer {
    pub fn confirm(&self, id: u32, state: DeliveryState) {
        self.shared.tell(Command::Confirm(self.link, id, state));
    }
}
