//! Workers on queues without sessions: some send, receive and settle, some send the same ids again and again; and what is
//! left at the end.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lazuli_amqp::performative::RECEIVER;
use lazuli_amqp::{DeliveryState, Error, Map, Modified, Properties, Terminus, Writer};
use lazuli_env::{SplitMix64, mix};
use lazuli_trial::amqp::{self, BATCH_FORMAT, Bus, Delivered, Receiver};
use lazuli_trial::{Result, alive};

use super::{Event, How, LOCK_MS, ONCE};

const RECEIVE_MAX: usize = 8;
const BATCH_MAX: usize = 5;
/// How many of the ids of the round before are sent again.
const REPEATED_IDS: u64 = 20;

/// A message that says its tag, with an id if it has one, for a session if it is of one.
pub(super) fn message(tag: &str, id: Option<&str>, session: Option<&str>) -> bytes::Bytes {
    let properties = Properties {
        message_id: id.into(),
        group_id: session.map(str::to_owned),
        ..Properties::default()
    };
    Writer::new().properties(&properties).data(tag.as_bytes()).finish()
}

/// One worker on one connection, and what it has done.
pub(super) struct Worker {
    pub(super) bus: Bus,
    pub(super) random: SplitMix64,
    pub(super) events: Vec<Event>,
    pub(super) prefix: String,
    pub(super) count: u64,
}

/// Runs a worker until its connection breaks.
pub(super) fn until_killed(
    address: SocketAddr,
    round: u64,
    worker: usize,
    work: impl Fn(&mut Worker) -> Result<Option<()>>,
) -> Result<Vec<Event>> {
    // A server that dies before the worker has connected leaves nothing to remember.
    let Some(bus) = Bus::connect(address)? else { return Ok(Vec::new()) };
    let random = SplitMix64::new(mix(round * 1_000 + worker as u64));
    let prefix = format!("{round:06}-{worker:02}");
    let mut worker = Worker { bus, random, events: Vec::new(), prefix, count: 0 };
    work(&mut worker)?;
    Ok(worker.events)
}

impl Worker {
    pub(super) fn tag(&mut self) -> String {
        self.count += 1;
        format!("{}-{:06}", self.prefix, self.count)
    }

    /// Sends one message, and notes what came of it.
    pub(super) fn send(&mut self, link: u32, queue: &'static str, tag: &str) -> Result<Option<()>> {
        let answered = is_taken(self.bus.send(link, &message(tag, None, None))?)?;
        self.events.push(Event::Sent { queue, tag: tag.to_owned(), session: None, answered });
        Ok(answered.then_some(()))
    }

    /// Sends some messages in one batch, all or none of which the server takes.
    fn send_batch(&mut self, link: u32, queue: &'static str) -> Result<Option<()>> {
        let tags: Vec<String> = (0..=self.random.below(BATCH_MAX)).map(|_| self.tag()).collect();
        let batch =
            tags.iter().fold(Writer::new(), |batch, tag| batch.data(&message(tag, None, None)));
        let id = self.bus.put(link, &batch.finish(), BATCH_FORMAT, None);
        let answered = is_taken(self.bus.said(id, RECEIVER)?)?;
        for tag in tags {
            self.events.push(Event::Sent { queue, tag, session: None, answered });
        }
        Ok(answered.then_some(()))
    }

    pub(super) fn receive(
        &mut self,
        link: &mut Receiver,
        queue: &'static str,
        hold: u64,
    ) -> Result<Option<Vec<Delivered>>> {
        let most = 1 + self.random.below(RECEIVE_MAX) as u32;
        let messages = alive!(self.bus.receive(link, most));
        match link.ended.as_deref() {
            // A session that its holder kept for too long.
            None | Some("com.microsoft:session-lock-lost") => {}
            Some(why) => return Err(format!("the link was ended: {why}")),
        }
        let (at, at_ms) = (Instant::now(), amqp::now_ms());
        for message in &messages {
            self.events.push(Event::Received {
                queue,
                tag: message.text.clone(),
                number: message.sequence_number,
                hold,
                until_ms: message.locked_until_ms,
                at,
                at_ms,
            });
        }
        Ok(Some(messages))
    }

    /// Settles a message in one of the ways there are. Whose lock is over is told so.
    pub(super) fn settle(
        &mut self,
        queue: &'static str,
        message: &Delivered,
        hold: u64,
        how: How,
    ) -> Result<Option<()>> {
        let state = match how {
            How::Completed => DeliveryState::Accepted,
            How::DeadLettered => {
                let mut error = Error::new("com.microsoft:dead-letter", "");
                error.info = Map::default().with("DeadLetterReason", "trial");
                DeliveryState::rejected(error)
            }
            How::GivenBack if self.random.below(2) == 0 => DeliveryState::Released,
            How::GivenBack => DeliveryState::Modified(Modified {
                delivery_failed: Some(true),
                undeliverable_here: Some(false),
                ..Modified::default()
            }),
        };
        let sent = Instant::now();
        let answer = self.bus.settle(message.id, state)?;
        let answered = match &answer {
            Some(DeliveryState::Rejected(Some(error))) => {
                let condition = error.condition.0.as_str();
                // The worker was too slow, and its lock or session has ended.
                if !condition.ends_with("lock-lost") {
                    return Err(format!("{}: {condition}", message.text));
                }
                return Ok(Some(()));
            }
            Some(_) => true,
            None => false,
        };
        let tag = message.text.clone();
        self.events.push(Event::Settled { queue, tag, hold, how, sent, answered });
        Ok(answered.then_some(()))
    }
}

/// Whether a send was answered. A refusal is a failure.
pub(super) fn is_taken(answer: Option<DeliveryState>) -> Result<bool> {
    match answer {
        None => Ok(false),
        Some(DeliveryState::Accepted) => Ok(true),
        Some(other) => Err(format!("a send was answered with {other:?}")),
    }
}

fn attached(link: std::result::Result<Receiver, String>) -> Result<Receiver> {
    link.map_err(|condition| format!("a receiver was refused: {condition}"))
}

/// Sends, receives, completes, gives back and dead-letters.
pub(super) fn mixed(
    address: SocketAddr,
    round: u64,
    worker: usize,
    queue: &'static str,
) -> Result<Vec<Event>> {
    until_killed(address, round, worker, |worker| {
        let sender = alive!(worker.bus.sender(Terminus::target(queue)));
        let link = worker.bus.receiver(Terminus::source(queue), false, Map::default());
        let mut receiver = attached(alive!(link))?;
        let mut held: Vec<Delivered> = Vec::new();
        loop {
            let at = worker.random.below(held.len().max(1));
            match worker.random.below(10) {
                0..=1 => {
                    let tag = worker.tag();
                    alive!(worker.send(sender, queue, &tag));
                }
                2 => alive!(worker.send_batch(sender, queue)),
                3..=4 => held.extend(alive!(worker.receive(&mut receiver, queue, 0))),
                5 if !held.is_empty() => {
                    let message = held.swap_remove(at);
                    alive!(worker.settle(queue, &message, 0, How::GivenBack));
                }
                6 if !held.is_empty() => {
                    let message = held.swap_remove(at);
                    alive!(worker.settle(queue, &message, 0, How::DeadLettered));
                }
                // Forgotten: its lock ends by itself.
                7 if !held.is_empty() && worker.random.below(4) == 0 => drop(held.swap_remove(at)),
                _ if !held.is_empty() => {
                    let message = held.swap_remove(at);
                    alive!(worker.settle(queue, &message, 0, How::Completed));
                }
                _ => alive!(worker.send_batch(sender, queue)),
            }
        }
    })
}

/// Sends every id twice, and those of the round before once more.
pub(super) fn repeat(address: SocketAddr, round: u64, worker: usize) -> Result<Vec<Event>> {
    until_killed(address, round, worker, |worker| {
        let number: usize = worker.prefix[7..].parse().unwrap_or(0);
        let sender = alive!(worker.bus.sender(Terminus::target(ONCE)));
        let earlier = round.checked_sub(1).map(|before| format!("{before:06}-{number:02}"));
        let earlier = earlier
            .into_iter()
            .flat_map(|prefix| (1..=REPEATED_IDS).map(move |count| format!("{prefix}-{count:06}")));
        for id in earlier {
            alive!(once(worker, sender, &id));
        }
        let link = worker.bus.receiver(Terminus::source(ONCE), false, Map::default());
        let mut receiver = attached(alive!(link))?;
        loop {
            let id = worker.tag();
            alive!(once(worker, sender, &id));
            alive!(once(worker, sender, &id));
            if worker.random.below(8) == 0 {
                for message in alive!(worker.receive(&mut receiver, ONCE, 0)) {
                    alive!(worker.settle(ONCE, &message, 0, How::Completed));
                }
            }
        }
    })
}

/// Sends a message with an id.
fn once(worker: &mut Worker, sender: u32, id: &str) -> Result<Option<()>> {
    let answered = is_taken(worker.bus.send(sender, &message(id, Some(id), None))?)?;
    worker.events.push(Event::Sent { queue: ONCE, tag: id.to_owned(), session: None, answered });
    Ok(answered.then_some(()))
}

/// Takes everything that is left, until all locks have ended and nothing has come since.
pub(super) fn drain(address: SocketAddr, place: &str) -> Result<Vec<Event>> {
    let gone = || "the server went away while its queues were worked off".to_owned();
    let mut bus = Bus::connect(address)?.ok_or_else(gone)?;
    let link = bus.receiver(Terminus::source(place), true, Map::default())?.ok_or_else(gone)?;
    let mut receiver = attached(link)?;
    let mut events = Vec::new();
    let mut empty_since = Instant::now();
    let mut is_empty = false;
    loop {
        let messages = bus.receive(&mut receiver, 500)?.ok_or_else(gone)?;
        match (messages.is_empty(), is_empty) {
            (false, _) => is_empty = false,
            (true, false) => (is_empty, empty_since) = (true, Instant::now()),
            (true, true) if empty_since.elapsed() > Duration::from_millis(LOCK_MS + 200) => {
                return Ok(events);
            }
            (true, true) => std::thread::sleep(Duration::from_millis(50)),
        }
        let event = |message: Delivered| Event::Remained {
            place: place.to_owned(),
            tag: message.text,
            number: message.sequence_number,
        };
        events.extend(messages.into_iter().map(event));
    }
}
