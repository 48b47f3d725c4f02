//! Attaching and detaching of links.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc::unbounded_channel;

use super::incoming::IncomingLink;
use super::machine::{Link, Machine, Phase, Way};
use super::outgoing::OutgoingLink;
use crate::limits::NAME_BYTES_MAX;
use crate::link::{Answer, Attaching, Ends, Flowing, LinkId};
use crate::performative::{Attach, Detach, Performative, RCV_FIRST, SENDER};
use crate::state::{Error, condition};

impl Machine {
    /// The client wants a link: the front is asked.
    pub(super) fn attach(&mut self, channel: u16, attach: Box<Attach>) {
        let limits = self.limits();
        let (links_max, all_max) = (limits.links_max, limits.links_of_connection_max);
        let message_bytes_max = limits.message_bytes_max;
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        if attach.handle >= links_max || self.links >= all_max || attach.name.len() > NAME_BYTES_MAX
        {
            let text = "There are too many links, or the name of one is too long.";
            return self.end(channel, Error::new(condition::RESOURCE_LIMIT, text));
        }
        let handle = attach.handle;
        if session.links.contains_key(&handle) {
            let text = format!("A link is attached with handle {handle} already.");
            return self.end(channel, Error::new(condition::HANDLE_IN_USE, text));
        }
        self.serial += 1;
        let id = LinkId { channel, handle, serial: self.serial };
        let (way, ends) = match attach.role == SENDER {
            true => {
                let (sender, receiver) = unbounded_channel();
                let link = IncomingLink {
                    deliveries: Some(sender),
                    credit_max: 0,
                    credit: 0,
                    delivery_count: attach.initial_delivery_count.unwrap_or(0),
                    message_bytes_max,
                    partial: None,
                    unsettled: HashMap::new(),
                };
                (Way::Incoming(Box::new(link)), Ends::Incoming(receiver))
            }
            false => {
                let (sender, receiver) = unbounded_channel();
                let flowing = Arc::new(Flowing::default());
                let (events, shared) = (Some(sender), flowing.clone());
                let link = OutgoingLink { events, flowing, delivery_count: 0 };
                (Way::Outgoing(link), Ends::Outgoing(receiver, shared))
            }
        };
        let kept = Some(attach.clone());
        let link = Link { serial: id.serial, phase: Phase::Wanted, way, attach: kept };
        session.links.insert(handle, link);
        self.links += 1;
        let attaching = Attaching::new(*attach, id, self.shared.clone(), ends);
        self.peer.clone().attach(attaching);
    }

    /// What the client sent when it attached the link, if that is not answered yet.
    fn wanted(&mut self, id: LinkId) -> Option<Box<Attach>> {
        self.find(id)?.attach.take()
    }

    /// The front accepts a link.
    pub(super) fn accept(&mut self, id: LinkId, answer: Answer) {
        let Some(wanted) = self.wanted(id) else { return };
        let Some(link) = self.find(id) else { return };
        let has_left = matches!(link.phase, Phase::Left { .. });
        if !has_left {
            link.phase = Phase::Attached;
        }
        let mut attach = reply(&wanted);
        if let Way::Incoming(incoming) = &mut link.way {
            incoming.credit_max = answer.credit;
            if let Some(bytes) = answer.message_bytes_max {
                incoming.message_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
            }
            // Clients that ask to settle second don't listen for what comes before, so deliveries are settled at once.
            attach.rcv_settle_mode = Some(RCV_FIRST);
        } else {
            attach.initial_delivery_count = Some(0);
        }
        attach.source = answer.source.or(wanted.source);
        attach.target = wanted.target;
        attach.max_message_size = answer.message_bytes_max.or(wanted.max_message_size);
        attach.offered_capabilities = answer.capabilities;
        attach.properties = answer.properties;
        self.write(id.channel, &Performative::Attach(Box::new(attach)));
        if !has_left {
            self.top_up(id);
        }
    }

    /// The front refuses a link: neither source nor target, and the reason in the same write.
    pub(super) fn refuse(&mut self, id: LinkId, error: Error) {
        let Some(wanted) = self.wanted(id) else { return };
        let mut attach = reply(&wanted);
        if attach.role == SENDER {
            attach.initial_delivery_count = Some(0);
        }
        self.write(id.channel, &Performative::Attach(Box::new(attach)));
        self.leave(id, Some(error));
    }

    /// The front has let go of a link.
    pub(super) fn leave(&mut self, id: LinkId, error: Option<Error>) {
        let Some(link) = self.find(id) else { return };
        match link.phase {
            Phase::Left { answered } => {
                self.forget_link(id.channel, id.handle);
                if !answered {
                    self.write_detach(id, error);
                }
                self.conclude(id.channel);
            }
            Phase::Wanted | Phase::Attached => {
                link.phase = Phase::Detached;
                match &mut link.way {
                    Way::Incoming(incoming) => incoming.deliveries = None,
                    Way::Outgoing(outgoing) => outgoing.events = None,
                }
                self.write_detach(id, error);
            }
            Phase::Detached => {}
        }
    }

    fn write_detach(&mut self, id: LinkId, error: Option<Error>) {
        self.flush_disposition();
        let detach = Detach { handle: id.handle, closed: Some(true), error };
        self.write(id.channel, &Performative::Detach(detach));
    }

    /// The client detaches a link.
    pub(super) fn detached(&mut self, channel: u16, detach: &Detach) {
        self.left_by_client(channel, detach.handle, false);
        self.conclude(channel);
    }

    /// The client has left a link, alone or with its session, in which case nothing more is said of the link.
    pub(super) fn left_by_client(&mut self, channel: u16, handle: u32, with_session: bool) {
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        let Some(link) = session.links.get_mut(&handle) else { return };
        match &mut link.phase {
            Phase::Detached => self.forget_link(channel, handle),
            Phase::Left { answered } => *answered |= with_session,
            phase => {
                *phase = Phase::Left { answered: with_session };
                // The front sees the end when it has taken what came before.
                match &mut link.way {
                    Way::Incoming(incoming) => incoming.deliveries = None,
                    Way::Outgoing(outgoing) => outgoing.events = None,
                }
            }
        }
    }

    /// Drops everything that is known of a link.
    pub(super) fn forget_link(&mut self, channel: u16, handle: u32) {
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        let Some(link) = session.links.remove(&handle) else { return };
        self.links -= 1;
        session.unsettled.retain(|_, sent| sent.handle != handle);
        session.said.retain(|_, sent| sent.handle != handle);
        let before = session.waiting.len();
        let mut dropped = 0;
        session.waiting.retain(|waiting| {
            let is_other = waiting.link.handle != handle;
            dropped += if is_other { 0 } else { waiting.cost() };
            is_other
        });
        self.waiting -= before - session.waiting.len();
        if let Way::Incoming(incoming) = &link.way {
            self.unsettled_bytes -= incoming.held_bytes();
            self.partial_bytes -= incoming.partial_bytes();
            self.let_go();
        }
        if dropped > 0 {
            self.unqueue(dropped);
        }
    }
}

/// The answer to an attach, with neither source nor target.
fn reply(wanted: &Attach) -> Attach {
    Attach {
        name: wanted.name.clone(),
        handle: wanted.handle,
        role: !wanted.role,
        snd_settle_mode: wanted.snd_settle_mode,
        rcv_settle_mode: wanted.rcv_settle_mode,
        ..Attach::default()
    }
}
