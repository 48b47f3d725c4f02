//! The state of a connection: frames and commands go in, frames come out. No socket and no waiting in here.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use lazuli_net::Lease;
use tokio::time::Instant;

use super::Peer;
use super::ending::Ending;
use super::incoming::IncomingLink;
use super::outgoing::{OutgoingLink, Waiting};
use crate::frame::{self, FrameError, Kind};
use crate::limits::{FRAME_BYTES_MIN, Limits};
use crate::link::{Command, LinkId, Shared};
use crate::performative::{Begin, Disposition, Flow, Open, Performative, SENDER};
use crate::state::{DeliveryState, Error, condition};

/// What is between the two sides of a connection that is open.
pub(super) struct Machine {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: Arc<dyn Peer>,
    pub(super) sessions: HashMap<u16, Session>,
    /// Frames that wait to be written.
    pub(super) out: BytesMut,
    /// The largest frame that the client takes.
    pub(super) frame_bytes_max: usize,
    idle_timeout: Option<Duration>,
    /// Bytes of deliveries that came in and are not settled, and of those that have not come as a whole.
    pub(super) unsettled_bytes: usize,
    pub(super) partial_bytes: usize,
    /// What they hold of the memory that all connections share.
    lease: Option<(Lease, &'static str)>,
    pub(super) links: usize,
    pub(super) serial: u64,
    /// How many deliveries wait in all sessions for the client to take more.
    pub(super) waiting: usize,
    /// A disposition that the next one may be joined to.
    disposition: Option<Joined>,
    pub(super) ending: Ending,
    /// When the connection last had a link.
    used: Instant,
}

struct Joined {
    channel: u16,
    role: bool,
    first: u32,
    last: u32,
    state: DeliveryState,
}

/// One session.
pub(super) struct Session {
    pub(super) next_incoming_id: u32,
    /// How many more transfers the client may send.
    pub(super) incoming_window: u32,
    pub(super) next_outgoing_id: u32,
    /// How many more transfers the client takes.
    pub(super) remote_window: u32,
    pub(super) links: HashMap<u32, Link>,
    /// Deliveries that were sent and of which the client has said nothing, by their id.
    pub(super) unsettled: BTreeMap<u32, Sent>,
    /// Those of which it has said something that the front has not answered. Apart from the others, so that a client that
    /// repeats itself about thousands of deliveries is looked at once.
    pub(super) said: BTreeMap<u32, Sent>,
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) next_delivery_id: u32,
    /// Whether the client has ended it and is answered when all links are gone.
    pub(super) ending: bool,
}

/// A delivery that was sent and is not settled.
pub(super) struct Sent {
    pub(super) handle: u32,
    pub(super) tag: Bytes,
}

/// One link of a session.
pub(super) struct Link {
    pub(super) serial: u64,
    pub(super) phase: Phase,
    pub(super) way: Way,
    /// What the client sent when it attached the link; taken when that is answered.
    pub(super) attach: Option<Box<crate::performative::Attach>>,
}

pub(super) enum Way {
    Incoming(Box<IncomingLink>),
    Outgoing(OutgoingLink),
}

/// How far a link has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    /// The front has not answered yet.
    Wanted,
    Attached,
    /// The client has detached; it is answered when the front has let go.
    Left {
        answered: bool,
    },
    /// We have detached and wait for the client.
    Detached,
}

impl Machine {
    pub(super) fn new(
        shared: Arc<Shared>,
        peer: Arc<dyn Peer>,
        open: &Open,
        out: BytesMut,
    ) -> Self {
        let own = shared.limits.frame_bytes_max;
        let theirs = open.max_frame_size.unwrap_or(u32::MAX).max(FRAME_BYTES_MIN);
        let idle_timeout = open.idle_time_out.filter(|idle| *idle > 0);
        Self {
            peer,
            sessions: HashMap::new(),
            out,
            frame_bytes_max: own.min(theirs) as usize,
            idle_timeout: idle_timeout.map(|idle| Duration::from_millis(idle.into())),
            unsettled_bytes: 0,
            partial_bytes: 0,
            lease: shared.limits.memory.clone().map(|(budget, busy)| (Lease::new(budget), busy)),
            links: 0,
            serial: 0,
            waiting: 0,
            disposition: None,
            ending: Ending::Open,
            used: Instant::now(),
            shared,
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(super) fn idle_timeout_of_client(&self) -> Option<Duration> {
        self.idle_timeout
    }

    /// Whether more is taken from the client now.
    pub(super) fn reads(&self) -> bool {
        self.unsettled_bytes <= self.limits().unsettled_bytes_max
    }

    /// Takes memory for this much more that has come in; the condition to refuse it with if there is none.
    pub(super) fn hold(&self, more: usize) -> Result<(), &'static str> {
        let Some((lease, busy)) = &self.lease else { return Ok(()) };
        let bytes = self.unsettled_bytes + self.partial_bytes + more;
        lease.hold(bytes as u64).map_err(|_| *busy)
    }

    /// Gives the memory back when nothing is held any more.
    pub(super) fn let_go(&self) {
        if let (Some((lease, _)), 0) = (&self.lease, self.unsettled_bytes + self.partial_bytes) {
            lease.release();
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.ending == Ending::Over
    }

    /// Handles all complete frames at the beginning of the bytes and says how many bytes they were.
    pub(super) fn frames(&mut self, input: &[u8]) -> usize {
        let mut used = 0;
        while self.ending != Ending::Over {
            let size_max = self.limits().frame_bytes_max as usize;
            let framed = match frame::split(&input[used..], size_max) {
                Ok(Some(framed)) => framed,
                Ok(None) => return used,
                Err(error) => {
                    let text = match error {
                        FrameError::TooLarge(size) => {
                            format!("A frame of {size} bytes is too large.")
                        }
                        FrameError::Malformed => "The header of a frame is malformed.".to_owned(),
                    };
                    self.close(Some(Error::new(condition::FRAMING_ERROR, text)));
                    return input.len();
                }
            };
            used += framed.size;
            if let Ending::Closed(_) = self.ending {
                if matches!(framed.read(), Ok(Some((Performative::Close(_), _)))) {
                    self.ending = Ending::Over;
                }
                continue;
            }
            if framed.kind == Kind::Sasl {
                self.close(Some(Error::new(condition::FRAMING_ERROR, "SASL is over.")));
                continue;
            }
            match framed.read() {
                Ok(None) => {}
                Ok(Some((performative, payload))) => {
                    self.performative(framed.channel, performative, payload);
                }
                Err(error) => {
                    self.close(Some(Error::new(condition::DECODE_ERROR, error.to_string())));
                }
            }
        }
        input.len()
    }

    fn performative(&mut self, channel: u16, performative: Performative, payload: &[u8]) {
        match performative {
            Performative::Begin(begin) => self.begin(channel, &begin),
            Performative::Close(_) => self.closed_by_client(),
            Performative::Open(_)
            | Performative::SaslMechanisms(_)
            | Performative::SaslInit(_)
            | Performative::SaslOutcome(_) => {
                let text = "The connection is open already.";
                self.close(Some(Error::new(condition::NOT_ALLOWED, text)));
            }
            _ if !self.sessions.contains_key(&channel) => {
                let text = format!("There is no session on channel {channel}.");
                self.close(Some(Error::new(condition::NOT_ALLOWED, text)));
            }
            Performative::Attach(attach) => self.attach(channel, attach),
            Performative::Flow(flow) => self.flow(channel, &flow),
            Performative::Transfer(transfer) => self.transfer(channel, transfer, payload),
            Performative::Disposition(disposition) => self.disposed(channel, disposition),
            Performative::Detach(detach) => self.detached(channel, &detach),
            Performative::End(_) => self.ended_by_client(channel),
        }
    }

    pub(super) fn write(&mut self, channel: u16, performative: &Performative) {
        frame::write(&mut self.out, Kind::Amqp, channel, performative);
    }

    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::Accept(link, answer) => self.accept(link, *answer),
            Command::Refuse(link, error) => self.refuse(link, error),
            Command::Settle(link, delivery, state) => self.settle(link, delivery, state),
            Command::Send(link, outbound) => self.send(link, outbound),
            Command::Confirm(link, delivery, state) => self.confirm(link, delivery, state),
            Command::Drained(link, count) => self.drained(link, count),
            Command::Leave(link, error) => self.leave(link, error),
            Command::Close(error) => self.close(Some(error)),
        }
    }

    /// The link of a handle, if it is still there.
    pub(super) fn find(&mut self, id: LinkId) -> Option<&mut Link> {
        let link = self.sessions.get_mut(&id.channel)?.links.get_mut(&id.handle)?;
        (link.serial == id.serial).then_some(link)
    }

    fn begin(&mut self, channel: u16, begin: &Begin) {
        let limits = self.limits();
        if channel >= limits.sessions_max || self.sessions.contains_key(&channel) {
            let text = format!("Channel {channel} is in use or too high.");
            return self.close(Some(Error::new(condition::NOT_ALLOWED, text)));
        }
        let (window, handle_max) = (limits.window, limits.links_max.saturating_sub(1));
        self.sessions.insert(
            channel,
            Session {
                next_incoming_id: begin.next_outgoing_id,
                incoming_window: window,
                next_outgoing_id: 0,
                remote_window: begin.incoming_window,
                links: HashMap::new(),
                unsettled: BTreeMap::new(),
                said: BTreeMap::new(),
                waiting: VecDeque::new(),
                next_delivery_id: 0,
                ending: false,
            },
        );
        let answer = Begin {
            remote_channel: Some(channel),
            next_outgoing_id: 0,
            incoming_window: window,
            outgoing_window: window,
            handle_max: Some(handle_max),
            ..Begin::default()
        };
        self.write(channel, &Performative::Begin(answer));
    }

    /// A flow frame of a session, to be filled in with what is said of a link.
    pub(super) fn flow_of(session: &Session, window: u32) -> Flow {
        Flow {
            next_incoming_id: Some(session.next_incoming_id),
            incoming_window: session.incoming_window,
            next_outgoing_id: session.next_outgoing_id,
            outgoing_window: window,
            ..Flow::default()
        }
    }

    fn flow(&mut self, channel: u16, flow: &Flow) {
        let window = self.limits().window;
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        let theirs = flow.next_incoming_id.unwrap_or(0).wrapping_add(flow.incoming_window);
        let left = theirs.wrapping_sub(session.next_outgoing_id);
        session.remote_window = if left > u32::MAX / 2 { 0 } else { left };
        if let Some(handle) = flow.handle {
            return self.flow_of_link(channel, handle, flow);
        }
        if flow.echo == Some(true) {
            let answer = Self::flow_of(session, window);
            self.write(channel, &Performative::Flow(answer));
        }
        self.pump(channel);
    }

    /// Says what became of a delivery: joined with the one before, if that said the same of its neighbour.
    pub(super) fn dispose(&mut self, channel: u16, role: bool, id: u32, state: DeliveryState) {
        if let Some(joined) = &mut self.disposition
            && (joined.channel, joined.role) == (channel, role)
            && joined.last.wrapping_add(1) == id
            && joined.state == state
        {
            joined.last = id;
            return;
        }
        self.flush_disposition();
        self.disposition = Some(Joined { channel, role, first: id, last: id, state });
    }

    pub(super) fn flush_disposition(&mut self) {
        let Some(joined) = self.disposition.take() else { return };
        let disposition = Disposition {
            role: joined.role,
            first: joined.first,
            last: Some(joined.last),
            settled: Some(true),
            state: Some(joined.state),
            batchable: None,
        };
        self.write(joined.channel, &Performative::Disposition(disposition));
    }

    /// All commands and frames at hand are handled: what was held back to be joined is written.
    pub(super) fn finish_turn(&mut self) {
        self.flush_disposition();
    }

    /// Sends what clients take by now. True if something was written.
    pub(super) fn pump_all(&mut self) -> bool {
        if self.waiting == 0 {
            return false;
        }
        let before = self.out.len();
        let waits = self.sessions.iter().filter(|(_, session)| !session.waiting.is_empty());
        let channels: Vec<u16> = waits.map(|(channel, _)| *channel).collect();
        for channel in channels {
            self.pump(channel);
        }
        self.out.len() > before
    }

    /// Looks at the clock. True if the connection is to be given up.
    pub(super) fn tick(&mut self, now: Instant, wrote: Instant) -> bool {
        match self.ending {
            Ending::Closing(until) if now >= until => self.answer_close(),
            Ending::Closed(until) if now >= until => return true,
            _ => {}
        }
        if self.links > 0 {
            self.used = now;
        } else if self.ending == Ending::Open && now - self.used > self.limits().unused_timeout {
            let text = "The connection was inactive for too long.";
            self.close(Some(Error::new(condition::CONNECTION_FORCED, text)));
        }
        let is_due = |idle: Duration| now - wrote >= idle / 2;
        if self.out.is_empty() && self.idle_timeout.is_some_and(is_due) {
            frame::write_empty(&mut self.out);
        }
        false
    }
}

/// The role of dispositions on deliveries that the client sent.
pub(super) const AS_RECEIVER: bool = !SENDER;
