//! The bus as fronts see it.

use std::sync::Arc;
use std::time::Duration;

use lazuli_engine::{Engine, Error, Result};

use crate::*;

/// All entities of all namespaces.
#[derive(Clone)]
pub struct Bus {
    pub(crate) engine: Arc<Engine>,
    pub(crate) reader: Arc<dyn ReadMessage>,
    pub(crate) settings: BusSettings,
}

/// An entity or subscription that was found, with which of its queues is meant. Cheap to clone. It stays good while the
/// entity lives; when the entity is gone every call answers [`BusReason::EntityNotFound`].
#[derive(Clone, Debug)]
pub struct Endpoint {
    address: Address,
}

/// How messages are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveMode {
    PeekLock,
    ReceiveAndDelete,
}

/// The exclusive right to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLock {
    pub session_id: String,
    pub until_ms: u64,
}

/// A receiver of one endpoint, or of one session of it. It remembers which fragments were found empty.
pub struct Receiver {
    _bus: Bus,
}

/// Waits for something to happen in an endpoint, such as a session that gets messages.
pub struct Watcher {
    _bus: Bus,
}

/// One step of a transaction.
#[derive(Clone, Debug)]
pub enum BusOperation {
    Send { to: Endpoint, message: NewMessage },
    Settle { from: Endpoint, session: Option<SessionLock>, settlement: Settlement },
}

/// A page of a list, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    pub has_more: bool,
}

fn unfinished<T>() -> Result<T> {
    Err(Error::internal("unfinished", "not yet written"))
}

#[allow(unused_variables, clippy::unused_async)]
impl Bus {
    /// From here on the engine's sweep also ends locks, schedules and what expires in the bus.
    pub fn new(engine: Arc<Engine>, reader: Arc<dyn ReadMessage>, settings: BusSettings) -> Self {
        Self { engine, reader, settings }
    }

    // Administration. Names are told apart without regard to case.

    pub async fn create_entity(
        &self,
        namespace: &str,
        kind: EntityKind,
        name: &str,
        description: Description,
    ) -> Result<Entity> {
        unfinished()
    }
    /// Replaces the description, if the entity still has the version given.
    pub async fn update_entity(
        &self,
        namespace: &str,
        kind: EntityKind,
        name: &str,
        description: Description,
        version: Option<lazuli_engine::Lsn>,
    ) -> Result<Entity> {
        unfinished()
    }
    pub async fn delete_entity(
        &self,
        namespace: &str,
        kind: Option<EntityKind>,
        name: &str,
    ) -> Result<()> {
        unfinished()
    }
    pub async fn entity(&self, namespace: &str, name: &str) -> Result<Entity> {
        unfinished()
    }
    pub async fn entities(
        &self,
        namespace: &str,
        kind: EntityKind,
        skip: usize,
        most: usize,
    ) -> Result<ListPage<Entity>> {
        unfinished()
    }
    /// With no rule given it gets [`DEFAULT_RULE`].
    pub async fn create_subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
        description: Description,
        rule: Option<Rule>,
    ) -> Result<Subscription> {
        unfinished()
    }
    pub async fn update_subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
        description: Description,
        version: Option<lazuli_engine::Lsn>,
    ) -> Result<Subscription> {
        unfinished()
    }
    pub async fn delete_subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
    ) -> Result<()> {
        unfinished()
    }
    pub async fn subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
    ) -> Result<Subscription> {
        unfinished()
    }
    pub async fn subscriptions(
        &self,
        namespace: &str,
        topic: &str,
        skip: usize,
        most: usize,
    ) -> Result<ListPage<Subscription>> {
        unfinished()
    }
    pub async fn create_rule(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        rule: Rule,
    ) -> Result<Rule> {
        unfinished()
    }
    pub async fn update_rule(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        rule: Rule,
    ) -> Result<Rule> {
        unfinished()
    }
    pub async fn delete_rule(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        name: &str,
    ) -> Result<()> {
        unfinished()
    }
    pub async fn rules(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        skip: usize,
        most: usize,
    ) -> Result<ListPage<Rule>> {
        unfinished()
    }

    // Messages.

    /// Finds an entity. Fails with [`BusReason::EntityNotFound`].
    pub async fn open(&self, namespace: &str, address: &Address) -> Result<Endpoint> {
        unfinished()
    }
    /// Sends messages and answers their sequence numbers. Those of one fragment are sent in one transaction; where there is
    /// one fragment, or all messages have one key, it is all or none. Scheduled ones answer the number to cancel them by.
    pub async fn send(&self, to: &Endpoint, messages: Vec<NewMessage>) -> Result<Vec<u64>> {
        unfinished()
    }
    /// Settles messages. The answers are in the order of the settlements; one that is refused does not hinder the others.
    pub async fn settle(
        &self,
        from: &Endpoint,
        session: Option<&SessionLock>,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<Result<()>>> {
        unfinished()
    }
    /// Renews locks and answers until when each holds.
    pub async fn renew(
        &self,
        from: &Endpoint,
        session: Option<&SessionLock>,
        tokens: &[LockToken],
    ) -> Result<Vec<Result<u64>>> {
        unfinished()
    }
    /// Deferred messages by their numbers, which are of one fragment. Fails with `MessageNotFound` if one is not there.
    pub async fn receive_deferred(
        &self,
        from: &Endpoint,
        session: Option<&SessionLock>,
        numbers: &[u64],
        mode: ReceiveMode,
    ) -> Result<Vec<Delivery>> {
        unfinished()
    }
    /// Messages in any state from a sequence number on, which stay where they are.
    pub async fn peek(
        &self,
        from: &Endpoint,
        session: Option<&str>,
        number: u64,
        most: usize,
    ) -> Result<Vec<Message>> {
        unfinished()
    }
    /// Cancels scheduled messages. Fails with `MessageNotFound` if one is not there any more, and then cancels none.
    pub async fn cancel_scheduled(&self, to: &Endpoint, numbers: &[u64]) -> Result<()> {
        unfinished()
    }
    /// Deletes waiting messages that were enqueued before a time, and says how many.
    pub async fn delete_messages(
        &self,
        from: &Endpoint,
        session: Option<&str>,
        before_ms: u64,
        most: usize,
    ) -> Result<usize> {
        unfinished()
    }
    /// Deletes all messages that wait, are deferred or scheduled, and says how many.
    pub async fn purge(&self, from: &Endpoint) -> Result<u64> {
        unfinished()
    }
    /// The counts of the entity or subscription that an endpoint belongs to.
    pub async fn counts(&self, of: &Endpoint) -> Result<MessageCounts> {
        unfinished()
    }
    /// All or none of these operations. What they touch must be on one shard, and on partitioned entities have one key.
    pub async fn transact(&self, operations: Vec<BusOperation>) -> Result<()> {
        unfinished()
    }

    // Sessions.

    /// Locks a session, or the next one that has messages. None: there is no such one now. A named session that another
    /// receiver holds is refused with `SessionCannotBeLocked`.
    pub async fn accept_session(
        &self,
        from: &Endpoint,
        session_id: Option<&str>,
    ) -> Result<Option<SessionLock>> {
        unfinished()
    }
    pub async fn renew_session(&self, from: &Endpoint, lock: &SessionLock) -> Result<SessionLock> {
        unfinished()
    }
    /// Gives a session back, with the messages that were received and not settled. A lock that is lost is fine.
    pub async fn release_session(&self, from: &Endpoint, lock: &SessionLock) -> Result<()> {
        unfinished()
    }
    pub async fn session_state(
        &self,
        from: &Endpoint,
        lock: &SessionLock,
    ) -> Result<Option<bytes::Bytes>> {
        unfinished()
    }
    pub async fn set_session_state(
        &self,
        from: &Endpoint,
        lock: &SessionLock,
        state: Option<bytes::Bytes>,
    ) -> Result<()> {
        unfinished()
    }
    /// Ids of sessions with messages, or with a state that was set since a time.
    pub async fn sessions(
        &self,
        from: &Endpoint,
        updated_since_ms: Option<u64>,
        skip: usize,
        most: usize,
    ) -> Result<Vec<String>> {
        unfinished()
    }

    // Waiting.

    pub fn receiver(
        &self,
        from: &Endpoint,
        mode: ReceiveMode,
        session: Option<SessionLock>,
    ) -> Receiver {
        Receiver { _bus: self.clone() }
    }
    pub fn watcher(&self, of: &Endpoint) -> Watcher {
        Watcher { _bus: self.clone() }
    }
}

#[allow(unused_variables, clippy::unused_async)]
impl Receiver {
    /// Waits until there may be a message: within a millisecond of the commit that brings it, when this process sent it.
    /// May be dropped and called again at any time.
    pub async fn ready(&mut self) {
        std::future::pending().await
    }
    /// The next messages, at most as many as asked for and possibly none. Must be run to its end: what it has received
    /// is locked, or already deleted.
    pub async fn take(&mut self, most: usize) -> Result<Vec<Delivery>> {
        unfinished()
    }
    /// The session lock after a renewal.
    pub fn set_session(&mut self, lock: SessionLock) {}
}

#[allow(unused_variables, clippy::unused_async)]
impl Watcher {
    /// Waits until something was sent, given back or activated, or for `at_most`. The first call answers at once.
    pub async fn changed(&mut self, at_most: Duration) {}
}

impl Endpoint {
    pub fn address(&self) -> &Address {
        &self.address
    }
    /// The description at the time when it was opened.
    pub fn description(&self) -> Description {
        Description::queue()
    }
    pub fn kind(&self) -> EntityKind {
        EntityKind::Queue
    }
}
