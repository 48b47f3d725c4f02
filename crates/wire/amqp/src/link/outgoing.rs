//! Links on which the client receives, as the front sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Command, LinkEnd, LinkId, Outbound, Shared};
use crate::state::{DeliveryState, Error};

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
    /// Shared by all deliveries of which it was said at once.
    pub state: Option<Arc<DeliveryState>>,
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
    pub(super) fn new(
        events: UnboundedReceiver<Event>,
        flowing: Arc<Flowing>,
        end: LinkEnd,
    ) -> Self {
        Self { events, flowing, end, sent: 0, is_new: true }
    }

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
