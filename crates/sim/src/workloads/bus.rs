//! Senders and receivers of a bus: a partitioned queue with schedules and transactions, one with sessions, one that detects
//! duplicates, and a topic with two subscriptions. Receivers complete, abandon, defer or bury what they get, or die.
//!
//! In the end everything is received, dead letters too, and the checks of `checkers::bus` hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lazuli_bus_shape::{
    Bus, BusOperation, BusReason, Delivery, NewMessage, Outcome, ReceiveMode, SessionLock,
    Settlement,
};
use lazuli_engine::{Engine, KeySchema, KeyType, MapKind};
use lazuli_store::{Error, Result as StoreResult};

use super::bus_entities::{LOCK_MS, bus, create, message, open, tag_of};
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::checkers::bus::{BusHistory, Tag};
use crate::client::Asked;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

const FRAGMENTS: &str = "bus/sim";
/// The places that messages are received from.
const SOURCES: [&str; 5] =
    ["plain", "sessions", "once", "topic/Subscriptions/all", "topic/Subscriptions/even"];
const SESSIONS: usize = 1;
const REQUESTS_PER_ROUND: u64 = 4;
const RECEIVE_MAX: u64 = 5;
const DELAY_MS_MAX: u64 = 2_000;
/// Without faults all locks and schedules are over after this time.
const SETTLE: Duration = Duration::from_secs(10);

pub struct MessageBus {
    /// One for each source.
    histories: Vec<Mutex<BusHistory>>,
    /// The last number that was answered for each session.
    sessions: Mutex<BTreeMap<String, u64>>,
}

async fn ask<T, F>(
    client: &Client,
    name: &'static str,
    what: impl FnOnce(Bus) -> F + Send + 'static,
) -> Asked<T>
where
    T: Send + 'static,
    F: Future<Output = StoreResult<T>> + Send + 'static,
{
    client.ask(name, move |engine| what(bus(engine))).await
}

/// A message that a client holds.
struct Holding {
    source: usize,
    tag: Tag,
    delivery: Delivery,
    session: Option<SessionLock>,
}

impl MessageBus {
    pub async fn setup(cluster: &Cluster) -> Built {
        let client = Client::outside(cluster);
        client
            .ask_surely("create entities", || |engine| async move { create(bus(engine)).await })
            .await?;
        let id = client
            .ask_surely("find the container", || {
                |engine| async move {
                    Ok(engine.manager().catalog().container_named(FRAGMENTS).await?.id)
                }
            })
            .await?;
        let types = vec![KeyType::Int64, KeyType::Int32];
        let schema = KeySchema::new(types).map_err(|error| error.to_string())?;
        let (name, kind) = (FRAGMENTS, MapKind::List);
        cluster.adopt(Table { name, id, kind, schema, shardlets: 0..0 });
        let histories = SOURCES.map(|_| Mutex::default()).into_iter().collect();
        Ok(Arc::new(Self { histories, sessions: Mutex::default() }))
    }

    fn history(&self, source: usize) -> MutexGuard<'_, BusHistory> {
        lock(&self.histories[source])
    }

    /// The sources that get what is sent to a place.
    fn receivers(target: usize, tag: Tag) -> Vec<usize> {
        match target {
            0..=2 => vec![target],
            _ if tag.is_multiple_of(2) => vec![3, 4],
            _ => vec![3],
        }
    }

    fn sent(&self, target: usize, tag: Tag, is_answered: bool) {
        for source in Self::receivers(target, tag) {
            self.history(source).send(tag, is_answered);
        }
    }

    async fn send(&self, client: &Client, target: usize, tag: Tag) -> Found {
        let mut new = message(client, tag);
        let session = format!("session-{}", client.number);
        match target {
            0 if client.random.chance(300) => {
                let delay = client.random.between(1, DELAY_MS_MAX);
                let now = crate::clock::WALL_START_MS
                    + u64::try_from(client.cluster.world.now().as_millis()).unwrap_or(0);
                new.scheduled_ms = Some(now + delay);
            }
            1 => new.session_id = Some(session.clone()),
            2 => new.message_id = Some(tag.to_string()),
            _ => {}
        }
        self.sent(target, tag, false);
        // Where duplicates are detected, whoever hears no answer, or just likes to, sends again.
        let repeats = if target == 2 { client.random.between(1, 3) } else { 1 };
        let address = ["plain", "sessions", "once", "topic"][target];
        for _ in 0..repeats {
            let new = new.clone();
            let send = move |bus: Bus| async move {
                let to = open(&bus, address).await?;
                Ok(bus.send(&to, vec![new]).await?[0])
            };
            match ask(client, "send", send).await? {
                Answer::Done(number) => {
                    self.sent(target, tag, true);
                    if target == SESSIONS {
                        let mut sessions = lock(&self.sessions);
                        let last = sessions.insert(session.clone(), number).unwrap_or_default();
                        ensure!(last < number, "{session}: {number:#x} was sent after {last:#x}");
                    }
                }
                Answer::Refused(error) => return Err(format!("a send was refused: {error}")),
                Answer::Unknown => {}
            }
        }
        Ok(())
    }

    /// Two messages of one key in one transaction.
    async fn transact(&self, client: &Client, first: Tag) -> Found {
        let tags = [first, first + 1];
        let key = client.random.between(0, 5).to_string();
        let messages = tags.map(|tag| {
            let partition_key = Some(key.clone());
            NewMessage { partition_key, ..message(client, tag) }
        });
        self.history(0).send_together(tags[0], tags[1]);
        let transact = move |bus: Bus| async move {
            let to = open(&bus, "plain").await?;
            let send = |message| BusOperation::Send { to: to.clone(), message };
            bus.transact(messages.map(send).into()).await
        };
        match ask(client, "transact", transact).await? {
            Answer::Done(()) => tags.iter().for_each(|tag| self.history(0).send(*tag, true)),
            Answer::Refused(error) => return Err(format!("a transaction was refused: {error}")),
            Answer::Unknown => {}
        }
        Ok(())
    }

    async fn receive(&self, client: &Client, source: usize) -> Result<Vec<Holding>, String> {
        let most = client.random.between(1, RECEIVE_MAX) as usize;
        let address = SOURCES[source];
        let receive = move |bus: Bus| async move {
            let from = open(&bus, address).await?;
            let session = match source {
                SESSIONS => match bus.accept_session(&from, None).await? {
                    None => return Ok((None, Vec::new())),
                    session => session,
                },
                _ => None,
            };
            let mut receiver = bus.receiver(&from, ReceiveMode::PeekLock, session.clone());
            Ok((session, receiver.take(most).await?))
        };
        let (session, deliveries) = match ask(client, "receive", receive).await? {
            Answer::Done(received) => received,
            Answer::Unknown => return Ok(Vec::new()),
            // A session whose lock ended before its messages were asked for.
            Answer::Refused(error) if error.is(BusReason::SessionLockLost) => return Ok(vec![]),
            Answer::Refused(error) => return Err(format!("a receive was refused: {error}")),
        };
        let mut held = Vec::new();
        let mut last = 0;
        for delivery in deliveries {
            let tag = tag_of(&delivery.message.body)?;
            let number = delivery.message.sequence_number;
            if source == SESSIONS {
                ensure!(last < number, "{last:#x} of a session came before {number:#x}");
                last = number;
            }
            // The lock of a session was given before its messages were received.
            let lock_ms = if source == SESSIONS { 0 } else { LOCK_MS };
            let mut history = self.history(source);
            if source == SESSIONS {
                let unlocked = Delivery { lock: None, ..delivery.clone() };
                history.receive(tag, &unlocked, lock_ms)?;
            } else {
                history.receive(tag, &delivery, lock_ms)?;
            }
            drop(history);
            held.push(Holding { source, tag, delivery, session: session.clone() });
        }
        Ok(held)
    }

    async fn settle(&self, client: &Client, holding: Holding) -> Found {
        let Holding { source, tag, delivery, session } = holding;
        let Some(lock) = delivery.lock else { return Ok(()) };
        let (kind, number) = (client.random.index(10), delivery.message.sequence_number);
        let changes = Vec::new();
        let outcome = match kind {
            0..=5 => Outcome::Complete,
            6 => Outcome::Abandon { changes },
            7 => Outcome::Release,
            8 => Outcome::Defer { changes },
            _ => Outcome::DeadLetter { reason: None, description: None, changes },
        };
        match &outcome {
            Outcome::Complete => self.history(source).end(tag),
            Outcome::DeadLetter { .. } => self.history(source).dead(tag),
            _ => self.history(source).let_go(tag),
        }
        let settlement = Settlement { token: lock.token, outcome };
        let settle = move |bus: Bus| async move {
            let from = open(&bus, SOURCES[source]).await?;
            let settled = bus.settle(&from, session.as_ref(), vec![settlement]).await?;
            settled.into_iter().next().unwrap_or(Ok(()))?;
            // What is deferred is asked for again, so that it does not stay.
            if kind == 8 {
                let mode = ReceiveMode::ReceiveAndDelete;
                bus.receive_deferred(&from, session.as_ref(), &[number], mode).await?;
            }
            Ok(())
        };
        match ask(client, "settle", settle).await? {
            Answer::Done(()) | Answer::Unknown => Ok(()),
            Answer::Refused(error) => refused(&error),
        }
    }

    /// Receives everything from a place, dead letters and what is deferred too.
    async fn drain(&self, client: &Client, source: usize) -> Found {
        let address = SOURCES[source];
        loop {
            let drain = move || {
                move |engine: Arc<Engine>| async move {
                    let bus = bus(engine);
                    let from = open(&bus, address).await?;
                    let dead = open(&bus, &format!("{address}/$DeadLetterQueue")).await?;
                    let mut bodies = Vec::new();
                    let mode = ReceiveMode::PeekLock;
                    for from in [&from, &dead] {
                        let session = match from.has_sessions() {
                            true => match bus.accept_session(from, None).await? {
                                None => continue,
                                session => session,
                            },
                            false => None,
                        };
                        let mut receiver = bus.receiver(from, mode, session.clone());
                        for delivery in receiver.take(100).await? {
                            bodies.push(delivery.message.body.clone());
                            let token = delivery.lock.map(|lock| lock.token);
                            let settlements = token
                                .map(|token| Settlement { token, outcome: Outcome::Complete })
                                .into_iter()
                                .collect();
                            bus.settle(from, session.as_ref(), settlements).await?;
                        }
                        if let Some(session) = session {
                            bus.release_session(from, &session).await?;
                        }
                    }
                    let deferred = bus.peek(&from, None, 0, 100).await?;
                    for message in &deferred {
                        bodies.push(message.body.clone());
                    }
                    if bodies.len() == deferred.len() {
                        bus.purge(&from).await?;
                    }
                    Ok((bodies, deferred.len()))
                }
            };
            let (bodies, deferred) = client.ask_surely("drain", drain).await?;
            let is_last = bodies.len() == deferred;
            for body in bodies {
                self.history(source).see(tag_of(&body)?);
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Which refusals of a settlement are to be expected.
fn refused(error: &Error) -> Found {
    match error.reason::<BusReason>() {
        Some(
            BusReason::MessageLockLost | BusReason::SessionLockLost | BusReason::MessageNotFound,
        ) => Ok(()),
        _ => Err(format!("a settlement was refused: {error}")),
    }
}

impl Workload for MessageBus {
    async fn live(&self, client: &Client) -> Found {
        let mut held: Vec<Holding> = Vec::new();
        let requests = client.rounds() * REQUESTS_PER_ROUND;
        for request in 0..requests {
            let tag = 2 * (client.number * requests + request);
            match client.random.index(10) {
                0..=3 => {
                    let odd = u64::from(client.random.chance(500));
                    self.send(client, client.random.index(4), tag + odd).await?;
                }
                4 => self.transact(client, tag).await?,
                5..=6 => {
                    let source = client.random.index(SOURCES.len());
                    held.extend(self.receive(client, source).await?);
                }
                _ if !held.is_empty() => {
                    let one = held.swap_remove(client.random.index(held.len()));
                    self.settle(client, one).await?;
                }
                _ => {}
            }
            // A receiver that dies forgets what it held.
            if client.random.chance(20) {
                held.clear();
            }
            client.think().await;
            let pause = client.random.between(0, LOCK_MS / 10);
            client.cluster.world.sleep(Duration::from_millis(pause)).await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        let skew = Duration::from_millis(4 * client.cluster.settings.clock.skew_ms_max);
        client.cluster.world.sleep(SETTLE + skew).await;
        for (source, name) in SOURCES.iter().enumerate() {
            self.drain(client, source).await?;
            self.history(source).check(name)?;
        }
        for name in SOURCES {
            let counts = move || {
                move |engine: Arc<Engine>| async move {
                    let bus = bus(engine);
                    let from = open(&bus, name).await?;
                    bus.counts(&from).await
                }
            };
            let counts = client.ask_surely("counts", counts).await?;
            let left = counts.active + counts.dead_letter + counts.scheduled + counts.transfer;
            ensure!(left == 0, "{name} was worked off and counts {counts:?}");
        }
        Ok(())
    }
}
