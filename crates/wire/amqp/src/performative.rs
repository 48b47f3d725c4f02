//! The nine performatives of a connection, and the five of its SASL layer.

use bytes::{Bytes, BytesMut};

use crate::decode::{DecodeError, Decoder, Result};
use crate::field::composite;
use crate::state::{DeliveryState, Error};
use crate::terminus::Terminus;
use crate::value::{Map, Symbol, Value};

composite! {
    Open = 0x10 {
        container_id: String,
        hostname: Option<String>,
        max_frame_size: Option<u32>,
        channel_max: Option<u16>,
        /// Milliseconds.
        idle_time_out: Option<u32>,
        outgoing_locales: Vec<Symbol>,
        incoming_locales: Vec<Symbol>,
        offered_capabilities: Vec<Symbol>,
        desired_capabilities: Vec<Symbol>,
        properties: Map,
    }
}

composite! {
    Begin = 0x11 {
        remote_channel: Option<u16>,
        next_outgoing_id: u32,
        incoming_window: u32,
        outgoing_window: u32,
        handle_max: Option<u32>,
        offered_capabilities: Vec<Symbol>,
        desired_capabilities: Vec<Symbol>,
        properties: Map,
    }
}

/// The role of a sender in [`Attach::role`] and [`Disposition::role`].
pub const SENDER: bool = false;
/// The role of a receiver.
pub const RECEIVER: bool = true;

/// Sender settle mode: the receiver settles each delivery.
pub const SND_UNSETTLED: u8 = 0;
/// Sender settle mode: deliveries are settled when they are sent.
pub const SND_SETTLED: u8 = 1;
pub const SND_MIXED: u8 = 2;
/// Receiver settle mode: the receiver settles by itself.
pub const RCV_FIRST: u8 = 0;
/// Receiver settle mode: the receiver settles after the sender has.
pub const RCV_SECOND: u8 = 1;

composite! {
    Attach = 0x12 {
        name: String,
        handle: u32,
        role: bool,
        snd_settle_mode: Option<u8>,
        rcv_settle_mode: Option<u8>,
        source: Option<Terminus>,
        target: Option<Terminus>,
        /// Deliveries of a link that is resumed. Links are never resumed here, so it is passed over.
        unsettled: Value,
        incomplete_unsettled: Option<bool>,
        initial_delivery_count: Option<u32>,
        max_message_size: Option<u64>,
        offered_capabilities: Vec<Symbol>,
        desired_capabilities: Vec<Symbol>,
        properties: Map,
    }
}

composite! {
    Flow = 0x13 {
        next_incoming_id: Option<u32>,
        incoming_window: u32,
        next_outgoing_id: u32,
        outgoing_window: u32,
        handle: Option<u32>,
        delivery_count: Option<u32>,
        link_credit: Option<u32>,
        available: Option<u32>,
        drain: Option<bool>,
        echo: Option<bool>,
        properties: Map,
    }
}

composite! {
    Transfer = 0x14 {
        handle: u32,
        delivery_id: Option<u32>,
        delivery_tag: Option<Bytes>,
        message_format: Option<u32>,
        settled: Option<bool>,
        more: Option<bool>,
        rcv_settle_mode: Option<u8>,
        state: Option<DeliveryState>,
        resume: Option<bool>,
        aborted: Option<bool>,
        batchable: Option<bool>,
    }
}

composite! {
    Disposition = 0x15 {
        role: bool,
        first: u32,
        last: Option<u32>,
        settled: Option<bool>,
        state: Option<DeliveryState>,
        batchable: Option<bool>,
    }
}

composite! {
    Detach = 0x16 {
        handle: u32,
        closed: Option<bool>,
        error: Option<Error>,
    }
}

composite! {
    End = 0x17 {
        error: Option<Error>,
    }
}

composite! {
    Close = 0x18 {
        error: Option<Error>,
    }
}

composite! {
    SaslMechanisms = 0x40 {
        mechanisms: Vec<Symbol>,
    }
}

composite! {
    SaslInit = 0x41 {
        mechanism: Symbol,
        initial_response: Option<Bytes>,
        hostname: Option<String>,
    }
}

composite! {
    SaslOutcome = 0x44 {
        code: u8,
        additional_data: Option<Bytes>,
    }
}

/// What a frame says.
#[derive(Clone, Debug, PartialEq)]
pub enum Performative {
    Open(Open),
    Begin(Begin),
    Attach(Box<Attach>),
    Flow(Flow),
    Transfer(Transfer),
    Disposition(Disposition),
    Detach(Detach),
    End(End),
    Close(Close),
    SaslMechanisms(SaslMechanisms),
    SaslInit(SaslInit),
    SaslOutcome(SaslOutcome),
}

impl Performative {
    /// Reads one; what is left in the decoder is the payload.
    pub fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
        Ok(match decoder.descriptor()? {
            Open::CODE => Self::Open(Open::read_fields(decoder)?),
            Begin::CODE => Self::Begin(Begin::read_fields(decoder)?),
            Attach::CODE => Self::Attach(Box::new(Attach::read_fields(decoder)?)),
            Flow::CODE => Self::Flow(Flow::read_fields(decoder)?),
            Transfer::CODE => Self::Transfer(Transfer::read_fields(decoder)?),
            Disposition::CODE => Self::Disposition(Disposition::read_fields(decoder)?),
            Detach::CODE => Self::Detach(Detach::read_fields(decoder)?),
            End::CODE => Self::End(End::read_fields(decoder)?),
            Close::CODE => Self::Close(Close::read_fields(decoder)?),
            SaslMechanisms::CODE => Self::SaslMechanisms(SaslMechanisms::read_fields(decoder)?),
            SaslInit::CODE => Self::SaslInit(SaslInit::read_fields(decoder)?),
            SaslOutcome::CODE => Self::SaslOutcome(SaslOutcome::read_fields(decoder)?),
            _ => return Err(DecodeError::Expected("a performative")),
        })
    }

    pub fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Open(it) => it.write(out),
            Self::Begin(it) => it.write(out),
            Self::Attach(it) => it.write(out),
            Self::Flow(it) => it.write(out),
            Self::Transfer(it) => it.write(out),
            Self::Disposition(it) => it.write(out),
            Self::Detach(it) => it.write(out),
            Self::End(it) => it.write(out),
            Self::Close(it) => it.write(out),
            Self::SaslMechanisms(it) => it.write(out),
            Self::SaslInit(it) => it.write(out),
            Self::SaslOutcome(it) => it.write(out),
        }
    }
}
