//! Links on which the client sends: frames are put together to messages, messages go to the front, and what the front says
//! of them goes back, with new credit.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::UnboundedSender;

use super::machine::{AS_RECEIVER, Machine, Phase, Way};
use crate::limits::{DELIVERY_BYTES, TAG_BYTES_MAX};
use crate::link::{Delivery, LinkId};
use crate::performative::{Flow, Performative, Transfer};
use crate::state::{DeliveryState, Error, condition};

/// What is known of such a link.
pub(super) struct IncomingLink {
    /// To the front; none once the client has detached.
    pub(super) deliveries: Option<UnboundedSender<Delivery>>,
    /// How many deliveries may be on their way or unsettled.
    pub(super) credit_max: u32,
    /// How many of them the client may still send.
    pub(super) credit: u32,
    pub(super) delivery_count: u32,
    pub(super) message_bytes_max: usize,
    pub(super) partial: Option<Partial>,
    /// Deliveries that the front has not settled.
    pub(super) unsettled: HashMap<u32, Held>,
}

/// A delivery of which not all frames have come.
pub(super) struct Partial {
    id: u32,
    tag: Bytes,
    format: u32,
    settled: bool,
    state: Option<DeliveryState>,
    pub(super) payload: BytesMut,
}

/// A delivery that is with the front.
pub(super) struct Held {
    bytes: usize,
    /// Whether the client expects no answer.
    settled: bool,
}

impl IncomingLink {
    /// What all its deliveries at the front count for.
    pub(super) fn held_bytes(&self) -> usize {
        self.unsettled.values().map(|held| held.bytes).sum()
    }

    pub(super) fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.payload.len())
    }
}

impl Machine {
    pub(super) fn transfer(&mut self, channel: u16, transfer: Transfer, payload: &[u8]) {
        let window = self.limits().window;
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        session.next_incoming_id = session.next_incoming_id.wrapping_add(1);
        session.incoming_window = session.incoming_window.saturating_sub(1);
        let found = session.links.get(&transfer.handle);
        let found =
            found.map(|link| (link.serial, link.phase, matches!(link.way, Way::Incoming(_))));
        if session.incoming_window <= window / 2 {
            session.incoming_window = window;
            let flow = Self::flow_of(session, window);
            self.write(channel, &Performative::Flow(flow));
        }
        match found {
            // What was sent before the client knew that the link is gone is lost with it.
            Some((_, Phase::Left { .. } | Phase::Detached, _)) => {}
            Some((serial, _, true)) => {
                let id = LinkId { channel, handle: transfer.handle, serial };
                self.transfer_on(id, transfer, payload);
            }
            Some((_, _, false)) => {
                let text = "A transfer came on a link on which the client receives.";
                self.end(channel, Error::new(condition::NOT_ALLOWED, text));
            }
            None => {
                let text = format!("No link is attached with handle {}.", transfer.handle);
                self.end(channel, Error::new(condition::UNATTACHED_HANDLE, text));
            }
        }
    }

    /// Adds a frame to the delivery that is coming on a link.
    fn transfer_on(&mut self, id: LinkId, transfer: Transfer, payload: &[u8]) {
        let Some(Way::Incoming(link)) = self.find(id).map(|link| &mut link.way) else { return };
        let more = transfer.more == Some(true);
        let mut taken = 0;
        let mut partial = match link.partial.take() {
            Some(partial) => {
                taken = partial.payload.len();
                partial
            }
            None => match Partial::begin(transfer.clone()) {
                Some(partial) => partial,
                None => {
                    let text =
                        "The first transfer of a delivery has no delivery-id, or too long a tag.";
                    return self.end(id.channel, Error::new(condition::INVALID_FIELD, text));
                }
            },
        };
        if transfer.aborted == Some(true) {
            self.partial_bytes -= taken;
            return;
        }
        if partial.payload.len() + payload.len() > link.message_bytes_max {
            let limit = link.message_bytes_max;
            self.partial_bytes -= taken;
            let text =
                format!("The received message exceeds the limit of {limit} bytes of the link.");
            return self.leave(id, Some(Error::new(condition::MESSAGE_SIZE, text)));
        }
        partial.settled |= transfer.settled == Some(true);
        match transaction_of(transfer.state) {
            Ok(state) => partial.state = state.or(partial.state),
            Err(text) => {
                self.partial_bytes -= taken;
                return self.end(id.channel, Error::new(condition::INVALID_FIELD, text));
            }
        }
        if more {
            partial.payload.extend_from_slice(payload);
            link.partial = Some(partial);
            self.partial_bytes += payload.len();
            if self.partial_bytes > self.limits().partial_bytes_max || self.hold(0).is_err() {
                let text = "Too many messages are sent in pieces at the same time.";
                self.close(Some(Error::new(condition::RESOURCE_LIMIT, text)));
            }
            return;
        }
        self.partial_bytes -= taken;
        let payload = match partial.payload.is_empty() {
            // Copied, so that a message that is kept for long does not keep the buffer of the connection with it.
            true => Bytes::copy_from_slice(payload),
            false => {
                partial.payload.extend_from_slice(payload);
                std::mem::take(&mut partial.payload).freeze()
            }
        };
        self.deliver(id, partial, payload);
    }

    fn deliver(&mut self, id: LinkId, partial: Partial, payload: Bytes) {
        let shared = self.shared.clone();
        let Some(Way::Incoming(link)) = self.find(id).map(|link| &mut link.way) else { return };
        link.delivery_count = link.delivery_count.wrapping_add(1);
        link.credit = link.credit.saturating_sub(1);
        let bytes = payload.len() + DELIVERY_BYTES;
        if link.unsettled.contains_key(&partial.id) {
            let text = "A delivery-id is used for two deliveries.";
            return self.end(id.channel, Error::new(condition::NOT_ALLOWED, text));
        }
        if let Err(busy) = self.hold(bytes) {
            return self.turn_away(id, &partial, busy);
        }
        let Some(Way::Incoming(link)) = self.find(id).map(|link| &mut link.way) else { return };
        link.unsettled.insert(partial.id, Held { bytes, settled: partial.settled });
        let delivery = Delivery {
            tag: partial.tag,
            format: partial.format,
            state: partial.state,
            settled: partial.settled,
            payload,
            id: partial.id,
            link: id,
            shared: Some(shared),
        };
        if let Some(front) = &link.deliveries {
            // A front that has dropped its end has told us so too, and that command is on its way.
            let _ = front.send(delivery);
        }
        self.unsettled_bytes += bytes;
    }

    /// There is no memory for a delivery: the client is told to try again.
    fn turn_away(&mut self, id: LinkId, partial: &Partial, busy: &'static str) {
        self.let_go();
        if !partial.settled {
            let error = Error::new(busy, "The server is busy. Try again later.");
            self.dispose(id.channel, AS_RECEIVER, partial.id, DeliveryState::rejected(error));
        }
        self.top_up(id);
    }

    /// The front has settled a delivery: the client is told, and gets new credit.
    pub(super) fn settle(&mut self, id: LinkId, delivery: u32, state: DeliveryState) {
        let Some(link) = self.find(id) else { return };
        let phase = link.phase;
        let Way::Incoming(incoming) = &mut link.way else { return };
        let Some(held) = incoming.unsettled.remove(&delivery) else { return };
        self.unsettled_bytes -= held.bytes;
        self.let_go();
        if phase == Phase::Detached {
            return;
        }
        if !held.settled {
            self.dispose(id.channel, AS_RECEIVER, delivery, state);
        }
        if phase == Phase::Attached {
            self.top_up(id);
        }
    }

    /// Gives new credit when half of it is used.
    pub(super) fn top_up(&mut self, id: LinkId) {
        let window = self.limits().window;
        let Some(session) = self.sessions.get_mut(&id.channel) else { return };
        let Some(link) = session.links.get_mut(&id.handle) else { return };
        let Way::Incoming(incoming) = &mut link.way else { return };
        let held = u32::try_from(incoming.unsettled.len()).unwrap_or(u32::MAX);
        let credit = incoming.credit_max.saturating_sub(held);
        if incoming.credit > incoming.credit_max / 2 || credit <= incoming.credit {
            return;
        }
        incoming.credit = credit;
        let (count, credit) = (incoming.delivery_count, incoming.credit);
        let flow = Flow {
            handle: Some(id.handle),
            delivery_count: Some(count),
            link_credit: Some(credit),
            ..Self::flow_of(session, window)
        };
        self.write(id.channel, &Performative::Flow(flow));
    }
}

/// What is kept of the state with which a client sends: its transaction. Anything else says nothing, and may be long.
fn transaction_of(state: Option<DeliveryState>) -> Result<Option<DeliveryState>, &'static str> {
    match state {
        Some(DeliveryState::Transactional { transaction, .. }) => {
            if transaction.len() > TAG_BYTES_MAX {
                return Err("The name of a transaction is too long.");
            }
            Ok(Some(DeliveryState::Transactional { transaction, outcome: None }))
        }
        _ => Ok(None),
    }
}

impl Partial {
    fn begin(transfer: Transfer) -> Option<Self> {
        let tag = transfer.delivery_tag.unwrap_or_default();
        if tag.len() > TAG_BYTES_MAX {
            return None;
        }
        Some(Self {
            id: transfer.delivery_id?,
            tag,
            format: transfer.message_format.unwrap_or_default(),
            settled: false,
            state: None,
            payload: BytesMut::new(),
        })
    }
}
