//! The load: workers that put, receive, hold, change and delete messages, and log the answers with their times.

use std::net::SocketAddr;
use std::time::Instant;

use lazuli_env::{SplitMix64, mix};
use lazuli_trial::Result;
use lazuli_trial::client::{Answer, Client, Request};
use lazuli_trial::queues::{self, Received, messages};

pub(super) const QUEUES: [&str; 2] = ["crash-one", "crash-two"];
pub(super) const HIDDEN_SECONDS_MAX: u64 = 2;
const LIVES_SECONDS_MAX: usize = 3;
const RECEIVE_MAX: usize = 8;
/// Some messages say so much that it is kept apart from them.
const LONG_REPEATS: usize = 400;

/// From when a request was on its way until its answer was there: it was done at some time in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(super) sent: Instant,
    pub(super) answered: Instant,
}

/// The answer to one request of a worker. No span means no answer.
#[derive(Debug)]
pub(crate) enum Event {
    Put {
        queue: &'static str,
        tag: String,
        lives_seconds: Option<u64>,
        span: Option<Span>,
    },
    Received {
        queue: &'static str,
        most: usize,
        hidden_seconds: u64,
        span: Span,
        messages: Vec<Received>,
    },
    Updated {
        tag: String,
        dequeues: u32,
        hidden_seconds: u64,
        span: Option<Span>,
    },
    Deleted {
        tag: String,
        dequeues: u32,
        span: Option<Span>,
    },
    /// The holder of a message was told that its receipt is stale, or that the message is gone.
    Refused {
        tag: String,
        dequeues: u32,
        is_gone: bool,
        span: Span,
    },
}

/// The first word of a message's text is its tag.
pub(super) fn tag_of(text: &str) -> String {
    text.split(' ').next().unwrap_or_default().to_owned()
}

struct Worker {
    client: Client,
    random: SplitMix64,
    events: Vec<Event>,
    /// What this worker holds, and in which queue.
    held: Vec<(&'static str, Received)>,
    prefix: String,
    put: u64,
}

/// Works until the connection breaks. An answer that nothing explains is a failure.
pub(super) fn work(address: SocketAddr, round: u64, worker: usize) -> Result<Vec<Event>> {
    // A server that dies before the worker has connected leaves nothing to remember.
    let Ok(client) = Client::connect(address) else { return Ok(Vec::new()) };
    let mut worker = Worker {
        client,
        random: SplitMix64::new(mix(round * 1000 + worker as u64)),
        events: Vec::new(),
        held: Vec::new(),
        prefix: format!("{round:06}-{worker:02}"),
        put: 0,
    };
    while worker.next()? {}
    Ok(worker.events)
}

/// Receives and deletes until nothing is left.
pub(super) fn drain(address: SocketAddr, queue: &'static str) -> Result<Vec<Event>> {
    let random = SplitMix64::new(0);
    let (events, held, prefix) = (Vec::new(), Vec::new(), String::new());
    let client = Client::connect(address)?;
    let mut worker = Worker { client, random, events, held, prefix, put: 0 };
    loop {
        if !worker.receive(queue, 32, HIDDEN_SECONDS_MAX)? {
            return Err("the server went away while its queues were worked off".to_owned());
        }
        if worker.held.is_empty() {
            return Ok(worker.events);
        }
        while let Some((queue, message)) = worker.held.pop() {
            worker.delete(queue, &message)?;
        }
    }
}

impl Worker {
    /// Sends a request; none if the connection broke over it.
    fn ask(&mut self, request: Request) -> Option<(Answer, Span)> {
        let sent = Instant::now();
        let answer = self.client.send(request).ok()?;
        Some((answer, Span { sent, answered: Instant::now() }))
    }

    /// Does one thing, and says whether there is still a server.
    fn next(&mut self) -> Result<bool> {
        let queue = QUEUES[self.random.below(QUEUES.len())];
        let at = self.random.below(self.held.len().max(1));
        match self.random.below(10) {
            0..=3 => self.put(queue),
            4..=5 => {
                let most = 1 + self.random.below(RECEIVE_MAX);
                let hidden_seconds = 1 + self.random.below(HIDDEN_SECONDS_MAX as usize) as u64;
                self.receive(queue, most, hidden_seconds)
            }
            6 if !self.held.is_empty() => {
                let (queue, message) = self.held.swap_remove(at);
                self.update(queue, message)
            }
            _ if !self.held.is_empty() => {
                let (queue, message) = self.held.swap_remove(at);
                self.delete(queue, &message)
            }
            _ => self.put(queue),
        }
    }

    fn put(&mut self, queue: &'static str) -> Result<bool> {
        self.put += 1;
        let tag = format!("{}-{:08}", self.prefix, self.put);
        let repeats = if self.random.below(10) == 0 { LONG_REPEATS } else { 1 };
        let text = format!("{tag} {}", "some text ".repeat(repeats));
        let lives = self.random.below(2) == 0;
        let lives_seconds = lives.then(|| 1 + self.random.below(LIVES_SECONDS_MAX) as u64);
        let asked = self.ask(queues::put(queue, &text, lives_seconds));
        let span = match &asked {
            Some((answer, span)) if answer.status == 201 => Some(*span),
            Some((answer, _)) => return Err(unexplained("put", answer)),
            None => None,
        };
        self.events.push(Event::Put { queue, tag, lives_seconds, span });
        Ok(asked.is_some())
    }

    fn receive(&mut self, queue: &'static str, most: usize, hidden_seconds: u64) -> Result<bool> {
        let Some((answer, span)) = self.ask(queues::get(queue, most, hidden_seconds)) else {
            return Ok(false);
        };
        if answer.status != 200 {
            return Err(unexplained("get", &answer));
        }
        let messages = messages(&answer.body)?;
        self.held.extend(messages.iter().map(|message| (queue, message.clone())));
        self.events.push(Event::Received { queue, most, hidden_seconds, span, messages });
        Ok(true)
    }

    fn update(&mut self, queue: &'static str, mut message: Received) -> Result<bool> {
        let hidden_seconds = self.random.below(HIDDEN_SECONDS_MAX as usize + 1) as u64;
        let request = queues::update(queue, &message.id, &message.receipt, hidden_seconds);
        let asked = self.ask(request);
        let (tag, dequeues) = (tag_of(&message.text), message.dequeues);
        let event = match &asked {
            Some((answer, span)) if answer.status == 204 => {
                let receipt = answer.header("x-ms-popreceipt");
                message.receipt = receipt.ok_or("an update without a receipt")?.to_owned();
                self.held.push((queue, message));
                Event::Updated { tag, dequeues, hidden_seconds, span: Some(*span) }
            }
            Some((answer, span)) => refused(tag, dequeues, answer, *span)?,
            None => Event::Updated { tag, dequeues, hidden_seconds, span: None },
        };
        self.events.push(event);
        Ok(asked.is_some())
    }

    fn delete(&mut self, queue: &str, message: &Received) -> Result<bool> {
        let asked = self.ask(queues::delete(queue, &message.id, &message.receipt));
        let (tag, dequeues) = (tag_of(&message.text), message.dequeues);
        let event = match &asked {
            Some((answer, span)) if answer.status == 204 => {
                Event::Deleted { tag, dequeues, span: Some(*span) }
            }
            Some((answer, span)) => refused(tag, dequeues, answer, *span)?,
            None => Event::Deleted { tag, dequeues, span: None },
        };
        self.events.push(event);
        Ok(asked.is_some())
    }
}

fn refused(tag: String, dequeues: u32, answer: &Answer, span: Span) -> Result<Event> {
    match answer.header("x-ms-error-code").unwrap_or_default() {
        "MessageNotFound" => Ok(Event::Refused { tag, dequeues, is_gone: true, span }),
        "PopReceiptMismatch" => Ok(Event::Refused { tag, dequeues, is_gone: false, span }),
        _ => Err(unexplained("settle", answer)),
    }
}

fn unexplained(what: &str, answer: &Answer) -> String {
    format!("{what}: {} {}", answer.status, answer.text())
}
