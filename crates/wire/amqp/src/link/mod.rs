//! Links as the front sees them: handles that may be used from any task. What they are told goes to the task of the
//! connection over a channel, which is the only thing that the two share on the hot path.
//!
//! Dropping a handle detaches the link. When the client has detached it, the handle yields `None` once everything before
//! that was taken, and the client gets its answer when the handle is dropped: so what a front gives up with a link (a lock
//! on a session, for example) is given up before the client can attach again.

mod outgoing;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::limits::{DELIVERY_BYTES, Limits};
use crate::performative::{Attach, SENDER};
use crate::state::{DeliveryState, Error, condition};
use crate::terminus::Terminus;
use crate::value::{Map, Symbol};
pub(crate) use outgoing::Flowing;
pub use outgoing::{Confirmer, Event, Outgoing, Said};

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
        Some(Outgoing::new(events, flowing, end))
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
