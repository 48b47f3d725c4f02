//! Links on which the client receives: messages of the front are cut into frames within the window of the session, and
//! what the client says of them goes to the front.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::BufMut;
use tokio::sync::mpsc::UnboundedSender;

use super::OUT_BYTES_HIGH;
use super::machine::{Machine, Phase, Sent, Session, Way};
use crate::frame::{self, Kind};
use crate::link::{Event, Flowing, LinkId, Outbound, Said};
use crate::performative::{Disposition, Flow, Performative, RECEIVER, SENDER, Transfer};
use crate::state::DeliveryState;

/// What is known of such a link.
pub(super) struct OutgoingLink {
    /// To the front; none once the client has detached.
    pub(super) events: Option<UnboundedSender<Event>>,
    pub(super) flowing: Arc<Flowing>,
    pub(super) delivery_count: u32,
}

impl OutgoingLink {
    /// Tells the front that credit, drain or room may have changed, unless it was told and has not looked yet.
    fn tell_flow(&self) {
        if let Some(events) = &self.events
            && !self.flowing.told.swap(true, Ordering::AcqRel)
        {
            // An error means that the front has dropped its handle, and that command is on its way.
            let _ = events.send(Event::Flow);
        }
    }
}

/// A delivery that waits for the client to take more.
pub(super) struct Waiting {
    pub(super) link: LinkId,
    outbound: Outbound,
    /// The id, once its first frame is sent, and how many bytes are.
    begun: Option<(u32, usize)>,
}

impl Waiting {
    pub(super) fn cost(&self) -> usize {
        self.outbound.cost()
    }
}

impl Machine {
    /// The client says how much it takes on a link.
    pub(super) fn flow_of_link(&mut self, channel: u16, handle: u32, flow: &Flow) {
        let window = self.limits().window;
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        let Some(link) = session.links.get_mut(&handle) else { return };
        let mut answer = Flow { handle: Some(handle), ..Flow::default() };
        match &mut link.way {
            Way::Outgoing(outgoing) => {
                if let Some(credit) = flow.link_credit {
                    let limit = flow.delivery_count.unwrap_or(0).wrapping_add(credit);
                    outgoing.flowing.set(limit, flow.drain == Some(true));
                    outgoing.tell_flow();
                }
                let limit = flow.delivery_count.unwrap_or(0);
                let credit = limit.wrapping_add(flow.link_credit.unwrap_or(0));
                answer.delivery_count = Some(outgoing.delivery_count);
                answer.link_credit = Some(credit.wrapping_sub(outgoing.delivery_count));
            }
            Way::Incoming(incoming) => {
                answer.delivery_count = Some(incoming.delivery_count);
                answer.link_credit = Some(incoming.credit);
            }
        }
        if flow.echo == Some(true) && link.phase == Phase::Attached {
            let session_part = Self::flow_of(session, window);
            let answer = Flow {
                handle: answer.handle,
                delivery_count: answer.delivery_count,
                link_credit: answer.link_credit,
                ..session_part
            };
            self.write(channel, &Performative::Flow(answer));
        }
        self.pump(channel);
    }

    /// The front sends a message.
    pub(super) fn send(&mut self, link: LinkId, outbound: Outbound) {
        let is_there = self.find(link).is_some_and(|link| link.phase == Phase::Attached);
        let cost = outbound.cost();
        if !is_there {
            return self.unqueue(cost);
        }
        if let Some(session) = self.sessions.get_mut(&link.channel) {
            session.waiting.push_back(Waiting { link, outbound, begun: None });
            self.waiting += 1;
            self.pump(link.channel);
        }
    }

    /// Something that was queued is written or dropped: links that wait for room are told.
    pub(super) fn unqueue(&self, bytes: usize) {
        let before = self.shared.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
        if before - bytes > self.limits().outgoing_bytes_max / 2
            || !self.shared.starved.swap(false, Ordering::AcqRel)
        {
            return;
        }
        for link in self.sessions.values().flat_map(|session| session.links.values()) {
            if let Way::Outgoing(outgoing) = &link.way {
                outgoing.tell_flow();
            }
        }
    }

    /// Writes what waits in a session, as far as the client takes it and there is room.
    pub(super) fn pump(&mut self, channel: u16) {
        while self.out.len() < OUT_BYTES_HIGH {
            let Some(session) = self.sessions.get_mut(&channel) else { return };
            if session.remote_window == 0 {
                return;
            }
            let Some(mut waiting) = session.waiting.pop_front() else { return };
            let cost = waiting.cost();
            let is_done = write_frame(session, &mut waiting, &mut self.out, self.frame_bytes_max);
            match is_done {
                true => {
                    self.waiting -= 1;
                    self.unqueue(cost);
                }
                false => session.waiting.push_front(waiting),
            }
        }
    }

    /// The client says what became of deliveries.
    pub(super) fn disposed(&mut self, channel: u16, disposition: Disposition) {
        // What a client says as the sender concerns deliveries that we have settled already.
        if disposition.role != RECEIVER {
            return;
        }
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
        let settled = disposition.settled == Some(true);
        let state = disposition.state.map(Arc::new);
        for id in between(&session.unsettled, first, last) {
            let Some(sent) = session.unsettled.remove(&id) else { continue };
            tell(session, id, &sent, settled, state.clone());
            if !settled {
                session.said.insert(id, sent);
            }
        }
        // Only the first word counts until it is answered, so that a client cannot fill the memory with repetitions; but
        // that it wants no answer any more always does.
        if settled {
            for id in between(&session.said, first, last) {
                let Some(sent) = session.said.remove(&id) else { continue };
                tell(session, id, &sent, settled, state.clone());
            }
        }
    }

    /// The front answers what the client said of a delivery.
    pub(super) fn confirm(&mut self, link: LinkId, delivery: u32, state: DeliveryState) {
        if self.find(link).is_none() {
            return;
        }
        let Some(session) = self.sessions.get_mut(&link.channel) else { return };
        if session.said.remove(&delivery).or_else(|| session.unsettled.remove(&delivery)).is_none()
        {
            return;
        }
        if let Some(Way::Outgoing(outgoing)) = session.links.get(&link.handle).map(|link| &link.way)
        {
            outgoing.flowing.settled();
            outgoing.tell_flow();
        }
        self.dispose(link.channel, SENDER, delivery, state);
    }

    /// The front gives credit back.
    pub(super) fn drained(&mut self, id: LinkId, count: u32) {
        let window = self.limits().window;
        // Everything that was sent before counts first.
        self.pump(id.channel);
        if self.find(id).is_none_or(|link| link.phase != Phase::Attached) {
            return;
        }
        let Some(session) = self.sessions.get_mut(&id.channel) else { return };
        let session_part = Self::flow_of(session, window);
        let Some(link) = session.links.get_mut(&id.handle) else { return };
        let Way::Outgoing(outgoing) = &mut link.way else { return };
        outgoing.delivery_count = count;
        let flow = Flow {
            handle: Some(id.handle),
            delivery_count: Some(count),
            link_credit: Some(0),
            available: Some(0),
            drain: Some(true),
            ..session_part
        };
        self.write(id.channel, &Performative::Flow(flow));
    }
}

/// Writes one frame of a delivery. True if it was the last.
fn write_frame(
    session: &mut Session,
    waiting: &mut Waiting,
    out: &mut bytes::BytesMut,
    frame_bytes_max: usize,
) -> bool {
    let Some(link) = session.links.get_mut(&waiting.link.handle) else { return true };
    let Way::Outgoing(outgoing) = &mut link.way else { return true };
    if link.phase != Phase::Attached || link.serial != waiting.link.serial {
        return true;
    }
    let outbound = &waiting.outbound;
    let (id, done) = match waiting.begun {
        Some(begun) => begun,
        None => {
            let id = session.next_delivery_id;
            session.next_delivery_id = id.wrapping_add(1);
            outgoing.delivery_count = outgoing.delivery_count.wrapping_add(1);
            if !outbound.settled {
                let (handle, tag) = (waiting.link.handle, outbound.tag.clone());
                session.unsettled.insert(id, Sent { handle, tag });
            }
            (id, 0)
        }
    };
    let at = frame::begin(out, Kind::Amqp, waiting.link.channel);
    let left = outbound.head.len() + outbound.body.len() - done;
    let mut transfer = Transfer {
        handle: waiting.link.handle,
        delivery_id: Some(id),
        delivery_tag: Some(outbound.tag.clone()),
        message_format: Some(outbound.format),
        settled: Some(outbound.settled),
        more: Some(false),
        ..Transfer::default()
    };
    let began = out.len();
    transfer.write(out);
    let mut room = frame_bytes_max.saturating_sub(out.len() - at);
    if room < left {
        // Written again with `more`, which takes as many bytes.
        out.truncate(began);
        transfer.more = Some(true);
        transfer.write(out);
        room = frame_bytes_max.saturating_sub(out.len() - at);
    }
    let count = left.min(room);
    put(out, &outbound.head, &outbound.body, done, count);
    frame::finish(out, at);
    session.remote_window -= 1;
    session.next_outgoing_id = session.next_outgoing_id.wrapping_add(1);
    waiting.begun = Some((id, done + count));
    count == left
}

/// Copies a range of two pieces that follow each other.
fn put(out: &mut bytes::BytesMut, head: &[u8], body: &[u8], from: usize, count: usize) {
    let of_head = head.get(from..).unwrap_or_default();
    let of_head = &of_head[..count.min(of_head.len())];
    out.put_slice(of_head);
    let from_body = (from + of_head.len()).saturating_sub(head.len());
    let rest = count - of_head.len();
    out.put_slice(&body[from_body..from_body + rest]);
}

/// The ids from the first to the last one, which go around at 2^32.
fn between(deliveries: &BTreeMap<u32, Sent>, first: u32, last: u32) -> Vec<u32> {
    if first <= last {
        return deliveries.range(first..=last).map(|(id, _)| *id).collect();
    }
    let (high, low) = (deliveries.range(first..), deliveries.range(..=last));
    high.chain(low).map(|(id, _)| *id).collect()
}

/// Hands on to the front what the client said of one delivery.
fn tell(session: &Session, id: u32, sent: &Sent, settled: bool, state: Option<Arc<DeliveryState>>) {
    let Some(link) = session.links.get(&sent.handle) else { return };
    let Way::Outgoing(outgoing) = &link.way else { return };
    if settled {
        outgoing.flowing.settled();
    }
    if let Some(events) = &outgoing.events {
        let tag = sent.tag.clone();
        let _ = events.send(Event::Disposition(Said { id, tag, state, settled }));
    }
}
