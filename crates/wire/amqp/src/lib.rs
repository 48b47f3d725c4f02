//! AMQP 1.0 for servers: types, frames, messages, and the state machines of connections, sessions and links.
//!
//! Bytes only: this crate knows no queue and no hub. A front implements [`Container`], which lets connections in, and
//! [`Peer`], which answers the links of one connection. [`serve`] runs a connection in one task that owns the socket and all
//! state; the front works with handles from any other task:
//!
//! - [`Attaching`]: a link that a client wants. [`Attaching::receive`], [`Attaching::send`] or [`Attaching::refuse`] answers.
//! - [`Incoming`]: yields the messages that a client sends ([`Delivery`]), each settled when the front says so. Credit is
//!   topped up as deliveries are settled.
//! - [`Outgoing`]: takes messages for a client, as many as [`Outgoing::credit`] says; yields an [`Event`] when the client
//!   takes more, drains, or says something of a delivery, which [`Outgoing::confirm`] answers when the front is ready.
//!
//! Transactions are messages and states like others: a coordinator is a link whose target says so
//! ([`Terminus::is_coordinator`]), [`transaction::Request`] reads what is sent to it, and [`DeliveryState::Transactional`] says
//! in which transaction something happens.
//!
//! Everything that comes from a client is bounded by [`Limits`]; whatever it sends, it can end its own connection and
//! nothing else.

pub mod client;
mod connection;
pub mod decode;
pub mod encode;
mod field;
pub mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
mod link;
pub mod message;
pub mod performative;
pub mod sasl;
pub mod state;
mod terminus;
pub mod transaction;
pub mod value;

pub use connection::{Container, Opening, Origin, Peer, serve};
pub use decode::{DecodeError, Decoder};
pub use field::Timestamp;
pub use limits::Limits;
pub use link::{
    Attaching, Confirmer, ConnectionHandle, Delivery, Event, Incoming, Outgoing, Receiving, Said,
    Sending,
};
pub use message::{Body, Header, Properties, Sections, Writer};
pub use sasl::Credentials;
pub use state::{DeliveryState, Error, Modified, condition};
pub use terminus::Terminus;
pub use value::{Map, Symbol, Value};
