//! The message bus: queues, topics with subscriptions and rules, sessions, dead letters and schedules (M1 to M5).
//!
//! An entity has one or more fragments. Each is a shardlet with a partition of its own in the list map of its namespace,
//! so it is moved like any other, and has its own lane. The subscriptions of a topic live in the shardlets of its
//! fragments: a message comes to all of them or to none, in one transaction. `docs/decisions/0150-bus.md` says why,
//! `docs/formats/bus.md` draws the rows.
//!
//! What clients ask for is checked here: fronts decode, make one call, and encode.

mod address;
mod apply;
mod bodies;
mod bus;
mod change;
mod config;
mod description;
mod directory;
mod dispatch;
mod endpoint;
mod entities;
pub mod filter;
mod forward;
mod fragment;
pub mod limits;
mod message;
mod namespace_rules;
mod peek;
mod place;
mod publish;
mod reason;
mod receive;
mod receiver;
mod record;
mod rows;
mod send;
mod session;
mod settle;
mod shared;
mod subscriptions;
mod timers;
mod transact;

pub use address::{Address, SubQueue, check_entity_name, check_subscription_name};
pub use bus::Bus;
pub use description::*;
pub use endpoint::Endpoint;
pub use entities::ListPage;
pub use message::*;
pub use reason::BusReason;
pub use receive::ReceiveMode;
pub use receiver::{Receiver, Watcher};
pub use session::SessionLock;
pub use transact::BusOperation;

/// The rule that a subscription gets if its creator names none: every message.
pub const DEFAULT_RULE: &str = "$Default";

/// Reads what filters ask for from the body of a message. The front that knows the encoding implements it.
pub trait ReadMessage: Send + Sync {
    /// One of the service's own properties; none if the message does not have it.
    fn system(&self, body: &[u8], property: SystemProperty) -> Option<String>;

    /// All properties of the application. What cannot be read is an error of the filter, never a panic.
    fn user(&self, body: &[u8]) -> lazuli_engine::Result<Vec<(String, filter::Value)>>;
}

/// Limits that an operator may choose (M5).
#[derive(Clone, Debug)]
pub struct BusSettings {
    /// The most queues and topics of a namespace.
    pub entities_max: usize,
    /// The most of them with more than one fragment.
    pub partitioned_max: usize,
    /// The fragments of an entity that asks for partitioning.
    pub fragments: u32,
    /// How often a receiver that waits looks for what other processes have sent.
    pub poll: std::time::Duration,
}

impl Default for BusSettings {
    fn default() -> Self {
        Self {
            entities_max: 10_000,
            partitioned_max: 10_000,
            fragments: Description::PARTITIONED,
            poll: std::time::Duration::from_millis(250),
        }
    }
}
