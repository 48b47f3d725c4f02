//! The Kafka front: Event Hubs for the clients of Kafka. A topic is a hub, a group of consumers a group of Kafka's.
//!
//! `connection` reads requests and writes responses, one after another for each connection, as the protocol has it; its one
//! `match` calls the operation, which reads its fields, makes one call of the shape `log` and writes the answer. Groups of
//! consumers are kept in memory by `groups`, their offsets by the shape; `claims` says which of several processes coordinates one. `operations.toml` lists every operation of the
//! protocol and whether it is done, `docs/hubs.md` what differs.

mod alter;
mod api;
mod auth;
mod claims;
mod commits;
mod configs;
mod connection;
mod coordinator;
mod error;
mod fetch;
mod groups;
mod keyed;
mod limits;
mod offsets;
mod produce;
mod records;
mod topics;

use std::sync::Arc;

use lazuli_azure::auth::Accounts;
use lazuli_log::Logs;
use lazuli_net::{BoxFuture, Budget, Connection, Metrics, Protocol};
use tokio::sync::Semaphore;

pub use auth::Published;
pub use keyed::reader;

use auth::Gate;
use claims::Claims;
use groups::Groups;

/// What an operator chooses about the front.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many partitions a topic gets that a client uses and nobody has created; none: it has to be created.
    pub auto_create: Option<u32>,
}

/// What the front is put together from.
pub struct Parts {
    pub logs: Logs,
    pub accounts: Arc<Accounts>,
    /// The published key; only where no other machine can connect.
    pub published: Option<Published>,
    pub budget: Arc<Budget>,
    pub metrics: Arc<Metrics>,
    pub settings: Settings,
}

pub(crate) struct Front {
    logs: Logs,
    gate: Gate,
    groups: Groups,
    claims: Claims,
    budget: Arc<Budget>,
    metrics: Arc<Metrics>,
    settings: Settings,
    /// Who reads compressed records takes one.
    decompressing: Semaphore,
}

/// The front as a protocol on a listener.
pub fn front(parts: Parts) -> Arc<dyn Protocol> {
    let Parts { logs, accounts, published, budget, metrics, settings } = parts;
    let gate = Gate { accounts, published };
    let claims = Claims::new(logs.engine().env().random.next_u64());
    let groups = Groups::default();
    let decompressing = Semaphore::new(limits::DECOMPRESSED_AT_ONCE);
    Arc::new(Front { logs, gate, groups, claims, budget, metrics, settings, decompressing })
}

impl Protocol for Front {
    fn serve(self: Arc<Self>, connection: Connection) -> BoxFuture<()> {
        Box::pin(connection::serve(self, connection))
    }
}
