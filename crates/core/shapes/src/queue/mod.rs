//! Queues: messages in the order in which they become visible (Q1, Q2). The model behind Storage queues.
//!
//! A queue is one shardlet of the container of its account. A message is a row by its number, and has a row in the order
//! of visibility; receiving it moves the latter to a later time. Where the order begins is kept in the queue's state: a
//! receive starts there, so that neither what was deleted in front nor what has expired costs anything again.
//! `docs/decisions/0060-queues.md` says why, `docs/formats/queue.md` what the rows look like.

mod directory;
mod put;
mod receive;
mod rows;
mod settle;

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, ContainerId, Engine, Error, Item, ItemKey, KeyPart, Kind, Result, Space,
    Transaction, Tx,
};

pub use directory::{Created, Metadata, QueueInfo, QueuePage, QueueProperties};
pub use put::NewMessage;
pub use receive::RECEIVE_MAX;
pub use rows::{MessageId, NotOurs, Receipt};
pub use settle::Update;

use rows::{Position, QueueState};

lazuli_engine::reasons! {
    pub enum QueueReason {
        MessageNotFound = "message-not-found",
        /// The receipt is not that of the last receive of the message.
        ReceiptMismatch = "receipt-mismatch",
    }
}

/// The schema tag of every container of queues (S13).
const SCHEMA: &str = "queue/1";
/// What the names of these containers begin with; the account follows.
const CONTAINERS: &str = "queues/";

/// What one message says, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub inserted_ms: u64,
    /// From when on it is gone; never if none.
    pub expires_ms: Option<u64>,
    /// How often it was received.
    pub dequeues: u32,
    pub content: Bytes,
}

/// The right to change or delete a message, until another receiver gets the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub receipt: Receipt,
    /// From when on others can receive the message.
    pub visible_ms: u64,
}

/// A message together with the right to settle it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub message: Message,
    pub hold: Hold,
}

/// All queues of all accounts.
#[derive(Clone)]
pub struct Queues {
    engine: Arc<Engine>,
}

impl Queues {
    /// From here on the engine's sweep also ends what expires in queues.
    pub fn new(engine: Arc<Engine>) -> Self {
        settle::register(&engine);
        Self { engine }
    }

    /// The same queues, read as they were up to a minute ago if a copy of the store can answer then.
    #[must_use]
    pub fn allowing_stale(&self) -> Self {
        Self { engine: Arc::new(self.engine.allowing_stale()) }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What a front keeps about a whole service of an account.
    pub async fn service(&self, name: &str) -> Result<Option<Bytes>> {
        self.engine.service(name).await
    }

    pub async fn set_service(&self, name: &str, value: Bytes) -> Result<()> {
        self.engine.set_service(name, value).await
    }

    async fn place(&self, account: &str, queue: &str) -> Result<QueuePlace> {
        match self.engine.open(&container_name(account), SCHEMA).await {
            Ok(container) => QueuePlace::new(&container, queue),
            // No queue was ever created in this account.
            Err(error) if error.kind() == Kind::NotFound => Err(queue_not_found()),
            Err(error) => Err(error),
        }
    }

    /// Runs a transaction on a queue.
    async fn write<T: Transaction>(
        &self,
        account: &str,
        queue: &str,
        make: impl FnOnce(QueuePlace) -> T,
    ) -> Result<T::Output> {
        let place = self.place(account, queue).await?;
        let (container, route) = (place.container, place.route.clone());
        self.engine.write(container, &route, make(place)).await
    }
}

fn container_name(account: &str) -> String {
    format!("{CONTAINERS}{account}")
}

fn queue_not_found() -> Error {
    Error::not_found("queue-not-found", "there is no such queue")
}

/// The state of a queue within a transaction.
struct Loaded {
    state: QueueState,
    /// As it was read, to be replaced.
    item: Item,
}

/// Where a queue is: how its keys are made.
#[derive(Clone)]
struct QueuePlace {
    container: ContainerId,
    route: Bytes,
}

impl QueuePlace {
    fn new(container: &Container, queue: &str) -> Result<Self> {
        let key = [KeyPart::Text(queue.into())];
        Ok(Self { container: container.id, route: container.kind.route(&container.key, &key)? })
    }

    /// The place of the queue that an item belongs to.
    fn of(key: &ItemKey) -> Self {
        Self { container: key.container(), route: Bytes::copy_from_slice(key.route()) }
    }

    fn key(&self, space: Space, row: &[u8]) -> ItemKey {
        ItemKey::new(self.container, space, &self.route, row)
    }

    fn queue(&self) -> ItemKey {
        self.key(Space::QUEUES, &[])
    }

    fn state(&self) -> ItemKey {
        self.key(Space::QUEUE_STATES, &[])
    }

    fn message(&self, line: u64, number: u64) -> ItemKey {
        self.key(Space::QUEUE_MESSAGES, &rows::message_row(line, number))
    }

    fn content(&self, line: u64, number: u64) -> ItemKey {
        self.key(Space::QUEUE_CONTENTS, &rows::message_row(line, number))
    }

    fn order(&self, line: u64, position: Position) -> ItemKey {
        self.key(Space::QUEUE_ORDER, &rows::order_row(line, position))
    }

    fn doomed(&self, line: u64) -> ItemKey {
        self.key(Space::QUEUE_DOOMED, &line.to_be_bytes())
    }

    /// The state of the queue, which it has as long as it exists.
    async fn load(&self, tx: &Tx<'_>) -> Result<Loaded> {
        let item = tx.get(&self.state()).await?.ok_or_else(queue_not_found)?;
        Ok(Loaded { state: QueueState::decode(item.payload.clone())?, item })
    }

    fn save(&self, tx: &mut Tx<'_>, loaded: &Loaded) -> Result<()> {
        tx.replace(&self.state(), Some(&loaded.item), loaded.state.encode(), None)
    }
}
