//! The front of the message bus: Service Bus over AMQP 1.0, plain, over TLS or in a WebSocket, and its administration over
//! HTTP, all on one port.
//!
//! One connection: `door` finds out what the client speaks. In AMQP every link goes through `peer`, the one place that
//! knows addresses: `cbs` takes tokens, `sender` and `receiver` carry messages, `management` answers requests,
//! `transaction` controls transactions. Each makes one call of the shape and encodes what comes back (`message`, `error`).

mod access;
mod address;
mod admin;
mod cbs;
mod door;
mod error;
mod eventhubs;
pub mod limits;
mod management;
mod message;
mod peer;
mod receiver;
mod replies;
mod request;
mod sender;
mod settle;
pub mod shown;
mod transaction;
mod websocket;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use lazuli_azure::auth::Accounts;
use lazuli_azure::auth::bearer::Tokens;
use lazuli_bus_shape::{Bus, ReadMessage};
use lazuli_http::Handler;
use lazuli_log::Logs;
use lazuli_net::{Budget, Metrics, Protocol};

use eventhubs::EventHubs;

pub use access::Published;
pub use admin::{configure, configure_hubs};
pub use limits::Limits;
pub use message::MessageReader;

/// What the front is put together from.
pub struct Parts {
    /// The hubs, which share the port with the entities of the bus.
    pub logs: Logs,
    pub accounts: Arc<Accounts>,
    /// The key that emulators publish, where it is taken.
    pub published: Option<Published>,
    pub tokens: Tokens,
    pub limits: Limits,
    pub http: lazuli_http::Limits,
    pub budget: Arc<Budget>,
    pub metrics: Arc<Metrics>,
}

/// What reads messages for the filters of the shape.
pub fn reader() -> Arc<dyn ReadMessage> {
    Arc::new(MessageReader)
}

/// The front as a protocol on a listener, and the handler of its administration.
pub fn protocol(bus: Bus, parts: Parts) -> (Arc<dyn Protocol>, Handler) {
    door::protocol(bus, parts)
}

/// What every connection shares.
pub(crate) struct Front {
    pub(crate) bus: Bus,
    pub(crate) hubs: EventHubs,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) published: Option<Published>,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
