//! Producers and consumers of a few queues: they put, receive, hold or abandon messages, update and delete them.
//!
//! Every message whose put was answered is received at least once, unless it expires; no two clients hold one at the
//! same time; none is received after its time to live; they come in the order of visibility (`checkers::deliveries`).
//! In the end the queues are emptied, and nothing of any message is left on the disks.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{KeySchema, KeyType, MapKind};
use lazuli_shapes::queue::{Delivery, NewMessage, QueueReason, Queues, Update};
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::{KeyRange, Result as StoreResult};

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::checkers::deliveries::{History, Tag};
use crate::client::Asked;
use crate::clock::WALL_START_MS;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

const ACCOUNT: &str = "sim";
const CONTAINER: &str = "queues/sim";
const NAMES: [&str; 3] = ["one", "two", "three"];
/// Requests of each client for every round of other workloads.
const REQUESTS_PER_ROUND: u64 = 4;
const HIDDEN_MS_MAX: u64 = 1_500;
const LIVES_MS_MAX: u64 = 4_000;
const RECEIVE_MAX: u64 = 5;
/// Contents of this many bytes are in a separate row.
const LONG_BYTES: usize = 5_000;
/// Tolerance for rounding to milliseconds, and for LSNs that are ahead of the clock.
const SLACK_MS: u64 = 10;
/// Without faults everything that has expired is swept after this time.
const SWEEP_MAX: Duration = Duration::from_secs(90);

pub struct MessageQueues {
    container: ContainerId,
    /// One for each name.
    histories: Vec<Mutex<History>>,
}

/// A message that a client holds, with its queue.
struct Holding {
    queue: usize,
    tag: Tag,
    delivery: Delivery,
}

/// The content of a message: its tag, and some letters.
fn content(tag: Tag, is_long: bool) -> Bytes {
    let mut bytes = tag.to_be_bytes().to_vec();
    bytes.resize(if is_long { LONG_BYTES } else { 20 }, b'x');
    bytes.into()
}

fn tag_of(content: &Bytes) -> Result<Tag, String> {
    let head = content.first_chunk::<8>();
    head.map(|head| Tag::from_be_bytes(*head)).ok_or(format!("unknown content {content:?}"))
}

/// A time that is later than any server's clock.
fn latest_ms(client: &Client) -> u64 {
    let truth = WALL_START_MS + u64::try_from(client.cluster.world.now().as_millis()).unwrap_or(0);
    truth + 2 * client.cluster.settings.clock.skew_ms_max + SLACK_MS
}

/// Sends a request to the queues.
async fn ask<T, F>(
    client: &Client,
    name: &'static str,
    what: impl FnOnce(Queues) -> F + Send + 'static,
) -> Asked<T>
where
    T: Send + 'static,
    F: Future<Output = StoreResult<T>> + Send + 'static,
{
    client.ask(name, move |engine| what(Queues::new(engine))).await
}

impl MessageQueues {
    pub async fn setup(cluster: &Cluster) -> Built {
        let client = Client::outside(cluster);
        for name in NAMES {
            client.ask_surely("create a queue", || move |engine| async move { Queues::new(engine).create(ACCOUNT, name, vec![]).await }).await?;
        }
        let container = client
            .ask_surely("find the container", || {
                |engine| async move {
                    Ok(engine.manager().catalog().container_named(CONTAINER).await?.id)
                }
            })
            .await?;
        cluster.adopt(Table {
            name: CONTAINER,
            id: container,
            kind: MapKind::Hash,
            schema: KeySchema::one(KeyType::Text),
            shardlets: 0..0,
        });
        let histories = NAMES.map(|_| Mutex::default()).into_iter().collect();
        Ok(Arc::new(Self { container, histories }))
    }

    fn history(&self, queue: usize) -> MutexGuard<'_, History> {
        lock(&self.histories[queue])
    }

    async fn put(&self, client: &Client, queue: usize, tag: Tag) -> Found {
        let hidden_ms = client.random.between(0, 1) * client.random.between(0, HIDDEN_MS_MAX);
        let lives = client.random.chance(500);
        let lives_ms = lives.then(|| hidden_ms + client.random.between(1, LIVES_MS_MAX));
        let content = content(tag, client.random.chance(200));
        let new = NewMessage { content, hidden_ms, lives_ms };
        // Recorded before it is sent: another client may receive it before the answer arrives.
        self.history(queue).put(tag, None)?;
        let put = move |queues: Queues| async move { queues.put(ACCOUNT, NAMES[queue], new).await };
        match ask(client, "put", put).await? {
            Answer::Done(delivery) => self.history(queue).put(tag, Some(&delivery)),
            Answer::Refused(error) => Err(format!("a put was refused: {error}")),
            Answer::Unknown => Ok(()),
        }
    }

    /// Receives some messages and records them.
    async fn receive(
        &self,
        client: &Client,
        queue: usize,
        hidden_ms: u64,
    ) -> Result<Vec<Holding>, String> {
        let most = client.random.between(1, RECEIVE_MAX) as usize;
        let receive = move |queues: Queues| async move {
            queues.receive(ACCOUNT, NAMES[queue], most, hidden_ms).await
        };
        let deliveries = match ask(client, "receive", receive).await? {
            Answer::Done(deliveries) => deliveries,
            Answer::Refused(error) => return Err(format!("a receive was refused: {error}")),
            Answer::Unknown => {
                self.history(queue).receive(most, hidden_ms, None)?;
                return Ok(Vec::new());
            }
        };
        let mut tagged = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            tagged.push((tag_of(&delivery.message.content)?, delivery));
        }
        self.history(queue).receive(most, hidden_ms, Some(&tagged))?;
        let hold = |(tag, delivery)| Holding { queue, tag, delivery };
        Ok(tagged.into_iter().map(hold).collect())
    }

    async fn peek(&self, client: &Client, queue: usize) -> Found {
        let most = client.random.between(1, RECEIVE_MAX) as usize;
        let deleted = self.history(queue).deleted();
        let peek =
            move |queues: Queues| async move { queues.peek(ACCOUNT, NAMES[queue], most).await };
        let Answer::Done(messages) = ask(client, "peek", peek).await? else { return Ok(()) };
        for message in messages {
            let tag = tag_of(&message.content)?;
            ensure!(!deleted.contains(&tag), "message {tag} was deleted and is seen again");
        }
        Ok(())
    }

    async fn delete(&self, client: &Client, holding: Holding) -> Found {
        let Holding { queue, tag, delivery } = holding;
        let (id, receipt) = (delivery.message.id, delivery.hold.receipt);
        let delete = move |queues: Queues| async move {
            queues.delete_message(ACCOUNT, NAMES[queue], id, receipt).await
        };
        self.history(queue).deleting(tag);
        let answer = ask(client, "delete", delete).await;
        self.history(queue).deleting_ended(tag);
        match answer? {
            Answer::Done(()) => self.history(queue).delete(tag, receipt, true),
            Answer::Unknown => self.history(queue).delete(tag, receipt, false),
            Answer::Refused(error) => self.refused(client, queue, tag, &delivery, &error),
        }
    }

    /// Updates a message, and returns it to its holder if that succeeded.
    async fn update(&self, client: &Client, holding: Holding) -> Result<Option<Holding>, String> {
        let Holding { queue, tag, mut delivery } = holding;
        let hidden_ms = client.random.between(0, 1) * client.random.between(0, HIDDEN_MS_MAX);
        let content = client.random.chance(500).then(|| content(tag, client.random.chance(300)));
        let (id, receipt) = (delivery.message.id, delivery.hold.receipt);
        let update = Update { hidden_ms, content };
        let change = move |queues: Queues| async move {
            queues.update(ACCOUNT, NAMES[queue], id, receipt, update).await
        };
        match ask(client, "update", change).await? {
            Answer::Done(hold) => {
                self.history(queue).update(tag, receipt, hidden_ms, Some(hold))?;
                delivery.hold = hold;
                Ok(Some(Holding { queue, tag, delivery }))
            }
            Answer::Unknown => {
                self.history(queue).update(tag, receipt, hidden_ms, None)?;
                Ok(None)
            }
            Answer::Refused(error) => {
                self.refused(client, queue, tag, &delivery, &error)?;
                Ok(None)
            }
        }
    }

    fn refused(
        &self,
        client: &Client,
        queue: usize,
        tag: Tag,
        delivery: &Delivery,
        error: &lazuli_engine::Error,
    ) -> Found {
        match error.reason() {
            Some(QueueReason::ReceiptMismatch) => {
                self.history(queue).mismatch(tag, delivery.hold.receipt);
                Ok(())
            }
            Some(QueueReason::MessageNotFound) => {
                self.history(queue).not_found(tag, latest_ms(client))
            }
            None => Err(format!("a settlement was refused: {error}")),
        }
    }
}

impl Workload for MessageQueues {
    async fn live(&self, client: &Client) -> Found {
        let mut held: Vec<Holding> = Vec::new();
        let requests = client.rounds() * REQUESTS_PER_ROUND;
        for request in 0..requests {
            let queue = client.random.index(NAMES.len());
            match client.random.index(10) {
                0..=3 => self.put(client, queue, client.number * requests + request).await?,
                4..=5 => {
                    let hidden_ms = client.random.between(0, HIDDEN_MS_MAX);
                    held.extend(self.receive(client, queue, hidden_ms).await?);
                }
                6..=7 if !held.is_empty() => {
                    let one = held.swap_remove(client.random.index(held.len()));
                    self.delete(client, one).await?;
                }
                8 if !held.is_empty() => {
                    let one = held.swap_remove(client.random.index(held.len()));
                    held.extend(self.update(client, one).await?);
                }
                _ => self.peek(client, queue).await?,
            }
            // A consumer that dies forgets the messages that it held.
            if client.random.chance(20) {
                held.clear();
            }
            client.think().await;
            let pause = client.random.between(0, HIDDEN_MS_MAX / 10);
            client.cluster.world.sleep(Duration::from_millis(pause)).await;
        }
        Ok(())
    }

    /// Empties the queues, and checks that nothing was lost and nothing is left.
    async fn check(&self, client: &Client) -> Found {
        let world = &client.cluster.world;
        let skew = Duration::from_millis(2 * client.cluster.settings.clock.skew_ms_max + SLACK_MS);
        // All leases of messages have expired.
        world.sleep(skew + Duration::from_millis(HIDDEN_MS_MAX)).await;
        for (queue, name) in NAMES.iter().enumerate() {
            loop {
                let held = self.receive(client, queue, HIDDEN_MS_MAX).await?;
                if held.is_empty() {
                    break;
                }
                for holding in held {
                    self.delete(client, holding).await?;
                }
            }
            let missing = self.history(queue).missing(latest_ms(client));
            ensure!(missing.is_none(), "message {missing:?} of {name} never came");
            self.history(queue).check()?;
        }
        world.sleep(skew + Duration::from_millis(LIVES_MS_MAX) + SWEEP_MAX).await;
        for queue in NAMES {
            let properties =
                move |queues: Queues| async move { queues.properties(ACCOUNT, queue).await };
            let answer = ask(client, "properties", properties).await?;
            let count = answer.done().map(|properties| properties.count);
            ensure!(count == Some(0), "{queue} was worked off and counts {count:?}");
        }
        for space in [
            Space::QUEUE_MESSAGES,
            Space::QUEUE_ORDER,
            Space::QUEUE_CONTENTS,
            Space::QUEUE_DOOMED,
            Space::EXPIRY,
        ] {
            let keys = KeyRange::prefix(layout::prefix(self.container, space));
            let disks = &client.cluster.disks().shards;
            let left: usize = disks.iter().map(|disk| disk.items(&keys).len()).sum();
            ensure!(left == 0, "{left} rows are left in space {:#04x}", space.0);
        }
        Ok(())
    }
}
