//! A client of the bus that waits for every answer, and the administration that makes what it talks to.
//!
//! `None` means that the connection broke, which is what trials wait for; an answer that no rule allows is a failure.

mod entities;
mod receiving;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use lazuli_amqp::client::{Client as Frames, Heard};
use lazuli_amqp::performative::{
    Attach, Begin, Detach, Disposition, Performative, RCV_FIRST, RCV_SECOND, RECEIVER, SENDER,
    SND_SETTLED, SND_UNSETTLED, Transfer,
};
use lazuli_amqp::transaction::Request;
use lazuli_amqp::{DeliveryState, Map, Terminus, Value, Writer};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::Result;
pub use entities::{make, now_ms, token};

const RULE: &str = "RootManageSharedAccessKey";
/// The key that emulators publish.
const KEY: &str = "SAS_KEY_VALUE";
/// The longest that an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// A transfer of this format holds messages, each in a data section.
pub const BATCH_FORMAT: u32 = 0x8001_3700;
const SESSION_FILTER: &str = "com.microsoft:session-filter";

/// A message that has come.
#[derive(Clone, Debug)]
pub struct Delivered {
    pub id: u32,
    pub sequence_number: i64,
    pub locked_until_ms: u64,
    pub delivery_count: u32,
    pub text: String,
}

/// A link on which messages come.
#[derive(Debug)]
pub struct Receiver {
    handle: u32,
    /// How many deliveries the server has counted.
    count: u32,
    /// The session that it holds.
    pub session: Option<String>,
    /// Until when the session is held.
    pub held_until_ms: u64,
    /// Why the server has ended the link, once it has.
    pub ended: Option<String>,
}

/// One connection.
pub struct Bus {
    runtime: Runtime,
    frames: Frames<TcpStream>,
    next_handle: u32,
    /// Handles of links that have ended.
    free: Vec<u32>,
    /// How many links there were.
    names: u64,
    next_id: u32,
    /// What the server has said of deliveries, by role and number.
    settled: BTreeMap<(bool, u32), DeliveryState>,
    /// What came while something else was waited for.
    aside: VecDeque<Heard>,
}

/// What is known of an answer: none if the connection broke first.
type Answer<T> = Result<Option<T>>;

/// Leaves a function when the connection is broken.
#[macro_export]
macro_rules! alive {
    ($answer:expr) => {
        match $answer? {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}

impl Bus {
    /// None if nobody answers.
    pub fn connect(address: SocketAddr) -> Answer<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let open = async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let mut frames = Frames::new(stream);
            let plain = format!("\0{RULE}\0{KEY}");
            frames.sasl("PLAIN", Bytes::from(plain)).await?;
            frames.say(0, Performative::Open(Frames::<TcpStream>::hello()));
            let begin =
                Begin { incoming_window: 1 << 30, outgoing_window: 5_000, ..Begin::default() };
            frames.say(0, Performative::Begin(begin));
            frames.flush().await?;
            frames.next().await?;
            frames.next().await?;
            std::io::Result::Ok(frames)
        };
        let Ok(frames) = runtime.block_on(open) else { return Ok(None) };
        let aside = VecDeque::new();
        let (free, settled) = (Vec::new(), BTreeMap::new());
        let (next_handle, names, next_id) = (0, 0, 0);
        Ok(Some(Self { runtime, frames, next_handle, free, names, next_id, settled, aside }))
    }

    /// The next frame; none if the connection broke.
    fn hear(&mut self) -> Answer<Heard> {
        if let Some(heard) = self.aside.pop_front() {
            return Ok(Some(heard));
        }
        let frames = &mut self.frames;
        let next = async {
            frames.flush().await?;
            tokio::time::timeout(ANSWER_WAIT, frames.next()).await.map_err(std::io::Error::other)?
        };
        match self.runtime.block_on(next) {
            Ok(heard) => Ok(Some(heard)),
            Err(error) if error.kind() == std::io::ErrorKind::Other => {
                Err(format!("no answer came within {ANSWER_WAIT:?}"))
            }
            Err(_) => Ok(None),
        }
    }

    /// The first frame for which this is something; the others are kept for later.
    fn until<T>(&mut self, wanted: impl Fn(&Heard) -> Option<Result<T>>) -> Answer<T> {
        let mut others = VecDeque::new();
        let found = loop {
            let heard = match self.hear()? {
                Some(heard) => heard,
                None => break None,
            };
            if let Some(found) = wanted(&heard) {
                break Some(found);
            }
            match &heard.performative {
                Performative::Close(close) => break Some(Err(format!("closed: {close:?}"))),
                Performative::End(end) => break Some(Err(format!("ended: {end:?}"))),
                Performative::Transfer(_) | Performative::Disposition(_) => others.push_back(heard),
                _ => {}
            }
        };
        others.append(&mut self.aside);
        self.aside = others;
        found.transpose()
    }

    /// A name that no link of the connection had before.
    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind} {}", self.names)
    }

    /// A handle that no link has: servers know a bounded number of them.
    fn handle(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next_handle += 1;
            self.next_handle
        })
    }

    /// Attaches a link and waits until it is accepted. A refusal is its condition.
    fn attach(&mut self, attach: Attach) -> Answer<std::result::Result<Attach, String>> {
        let (handle, name, role) = (attach.handle, attach.name.clone(), attach.role);
        self.frames.say(0, Performative::Attach(Box::new(attach)));
        let answer = alive!(self.until(|heard| match &heard.performative {
            Performative::Attach(answer) if answer.name == name => Some(Ok((**answer).clone())),
            _ => None,
        }));
        let end = if role == SENDER { &answer.target } else { &answer.source };
        if end.is_some() {
            return Ok(Some(Ok(answer)));
        }
        let condition = alive!(self.until(|heard| match &heard.performative {
            Performative::Detach(detach) if detach.handle == handle => {
                Some(Ok(detach.error.as_ref().map(|error| error.condition.0.clone())))
            }
            _ => None,
        }));
        let detach = Detach { handle, closed: Some(true), error: None };
        self.frames.say(0, Performative::Detach(detach));
        self.free.push(handle);
        Ok(Some(Err(condition.unwrap_or_default())))
    }

    /// A link to an address, on which this client sends.
    pub fn sender(&mut self, target: Terminus) -> Answer<u32> {
        let handle = self.handle();
        let name = self.name("sender");
        let attached = alive!(self.attach(Attach {
            name,
            handle,
            role: SENDER,
            snd_settle_mode: Some(SND_UNSETTLED),
            rcv_settle_mode: Some(RCV_FIRST),
            source: Some(Terminus::source("trial")),
            target: Some(target),
            initial_delivery_count: Some(0),
            ..Attach::default()
        }));
        attached.map(|_| Some(handle))
    }

    /// A link on which this client receives. A refusal is its condition.
    pub fn receiver(
        &mut self,
        source: Terminus,
        settled: bool,
        properties: Map,
    ) -> Answer<std::result::Result<Receiver, String>> {
        let handle = self.handle();
        let name = self.name("receiver");
        let attached = alive!(self.attach(Attach {
            name,
            handle,
            role: RECEIVER,
            snd_settle_mode: Some(if settled { SND_SETTLED } else { SND_UNSETTLED }),
            rcv_settle_mode: Some(if settled { RCV_FIRST } else { RCV_SECOND }),
            source: Some(source),
            target: Some(Terminus::target("trial")),
            properties,
            ..Attach::default()
        }));
        Ok(Some(attached.map(|answer| {
            let filters = answer.source.as_ref().and_then(Terminus::filters);
            let session = filters.and_then(|it| it.get(SESSION_FILTER)).map(Value::undescribed);
            let ticks = answer.properties.integer("com.microsoft:locked-until-utc").unwrap_or(0);
            let ms = (ticks - 621_355_968_000_000_000).max(0) / 10_000;
            Receiver {
                handle,
                count: answer.initial_delivery_count.unwrap_or(0),
                session: session.and_then(Value::as_text).map(str::to_owned),
                held_until_ms: ms.unsigned_abs(),
                ended: None,
            }
        })))
    }

    /// The next session of an entity that nobody holds; none if there is none for this time.
    pub fn next_session(&mut self, path: &str, wait_ms: u32) -> Answer<Option<Receiver>> {
        let source = Terminus::source(path).with_filter(SESSION_FILTER, Value::Null);
        let properties = Map::default().with("com.microsoft:timeout", wait_ms);
        match alive!(self.receiver(source, false, properties)) {
            Ok(receiver) => Ok(Some(Some(receiver))),
            Err(condition) if condition == "com.microsoft:timeout" => Ok(Some(None)),
            Err(condition) => Err(format!("{path}: {condition}")),
        }
    }

    /// Detaches a link, and waits until the server says so too.
    pub fn detach(&mut self, receiver: &Receiver) -> Answer<()> {
        let handle = receiver.handle;
        let detach = Detach { handle, closed: Some(true), error: None };
        self.frames.say(0, Performative::Detach(detach));
        alive!(self.until(|heard| match &heard.performative {
            Performative::Detach(detach) if detach.handle == handle => Some(Ok(())),
            _ => None,
        }));
        // What came for the link on its way out is nobody's.
        self.aside.retain(|heard| {
            !matches!(
                &heard.performative, Performative::Transfer(transfer) if transfer.handle == handle
            )
        });
        self.free.push(handle);
        Ok(Some(()))
    }

    /// Sends without waiting, and answers the number by which [`Bus::said`] knows it.
    pub fn put(
        &mut self,
        sender: u32,
        payload: &[u8],
        format: u32,
        state: Option<DeliveryState>,
    ) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        let transfer = Transfer {
            handle: sender,
            delivery_id: Some(id),
            delivery_tag: Some(Bytes::copy_from_slice(&id.to_be_bytes())),
            message_format: Some(format),
            settled: Some(false),
            state,
            ..Transfer::default()
        };
        self.frames.transfer(0, &transfer, payload);
        id
    }

    /// Sends, and answers what the server says of it.
    pub fn send(&mut self, sender: u32, payload: &[u8]) -> Answer<DeliveryState> {
        let id = self.put(sender, payload, 0, None);
        self.said(id, RECEIVER)
    }

    /// What the server says of a delivery; its role tells which of the two directions it means.
    pub fn said(&mut self, id: u32, role: bool) -> Answer<DeliveryState> {
        loop {
            if let Some(state) = self.settled.remove(&(role, id)) {
                return Ok(Some(state));
            }
            let heard = self.until(|heard| match &heard.performative {
                Performative::Disposition(said) => Some(Ok(said.clone())),
                _ => None,
            });
            let said = alive!(heard);
            let state = said.state.ok_or("a disposition without a state")?;
            // One may be about many.
            for id in said.first..=said.last.unwrap_or(said.first) {
                self.settled.insert((said.role, id), state.clone());
            }
        }
    }

    /// Says what becomes of a message, and answers what the server says to that.
    pub fn settle(&mut self, id: u32, state: DeliveryState) -> Answer<DeliveryState> {
        self.frames.say(
            0,
            Performative::Disposition(Disposition {
                role: RECEIVER,
                first: id,
                last: Some(id),
                settled: Some(false),
                state: Some(state),
                batchable: None,
            }),
        );
        self.said(id, SENDER)
    }

    /// Begins a transaction.
    pub fn declare(&mut self, coordinator: u32) -> Answer<Bytes> {
        let message = Writer::new().value(&Request::Declare.value()).finish();
        match alive!(self.send(coordinator, &message)) {
            DeliveryState::Declared(transaction) => Ok(Some(transaction)),
            other => Err(format!("declare: {other:?}")),
        }
    }

    /// Ends a transaction, with or without what was done in it.
    pub fn discharge(
        &mut self,
        coordinator: u32,
        transaction: &Bytes,
        fail: bool,
    ) -> Answer<DeliveryState> {
        let request = Request::Discharge { transaction: transaction.clone(), fail };
        let message = Writer::new().value(&request.value()).finish();
        self.send(coordinator, &message)
    }
}
