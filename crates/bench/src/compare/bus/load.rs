//! One load for all servers that speak AMQP 1.0: some connections send, each with so many messages in flight, and some
//! receive. Receivers end with a closing handshake, so that all that they have settled was read by the server.

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_amqp::client::Client;
use lazuli_amqp::performative::{
    Attach, Begin, Close, Disposition, Performative, RCV_FIRST, RECEIVER, SND_UNSETTLED, Transfer,
};
use lazuli_amqp::{DeliveryState, Header, Terminus, Value, Writer};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::super::Result;
use crate::figures::{Latency, milliseconds};

/// What a message says.
pub(super) const BODY_BYTES: usize = 1_024;
/// The longest that anything may take.
const LONGEST: Duration = Duration::from_secs(600);
/// How long a receiver waits before it looks whether the others have all that there is.
const LOOK: Duration = Duration::from_millis(20);
/// How many deliveries are settled by one disposition at the most.
const SETTLE_AT_ONCE: u32 = 64;

/// How a server lets clients in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Login {
    Plain(&'static str, &'static str),
}

/// What is sent to and received from.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) login: Login,
    pub(super) path: String,
}

impl Target {
    pub(super) fn ours(address: SocketAddr, path: &str) -> Self {
        let login = Login::Plain("RootManageSharedAccessKey", "SAS_KEY_VALUE");
        Self { address, login, path: path.to_owned() }
    }
}

/// How many connections do what, and with how many messages in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) senders: usize,
    pub(super) receivers: usize,
    pub(super) in_flight: u32,
    pub(super) messages: usize,
}

/// Messages per second, and how long a send took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) sent: f64,
    pub(super) received: f64,
    pub(super) latency: Latency,
    /// The processor time of the server for one message, whichever way it goes.
    pub(super) cpu: Duration,
}

impl Measured {
    pub(super) fn rate(&self) -> f64 {
        self.sent.max(self.received)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |name, rate: f64| match rate > 0.0 {
            true => format!("{rate:.0}/s {name} "),
            false => String::new(),
        };
        write!(f, "{}{}", rate("in", self.sent), rate("out", self.received))?;
        let Latency { count, p50, p99, .. } = self.latency;
        if count > 0 {
            write!(f, "p50 {:.2} p99 {:.2} ms ", milliseconds(p50), milliseconds(p99))?;
        }
        write!(f, "{:.0} us CPU", self.cpu.as_secs_f64() * 1e6)
    }
}

fn broken(error: std::io::Error) -> String {
    format!("a connection broke: {error}")
}

type Connected = Client<TcpStream>;

async fn connect(target: &Target) -> Result<Connected> {
    let stream = TcpStream::connect(target.address).await.map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let mut client = Client::new(stream);
    let Login::Plain(user, password) = target.login;
    client.sasl("PLAIN", Bytes::from(format!("\0{user}\0{password}"))).await.map_err(broken)?;
    client.say(0, Performative::Open(Connected::hello()));
    let (incoming_window, outgoing_window) = (1 << 30, 1 << 30);
    client.say(
        0,
        Performative::Begin(Begin { incoming_window, outgoing_window, ..Begin::default() }),
    );
    client.flush().await.map_err(broken)?;
    for _ in 0..2 {
        client.next().await.map_err(broken)?;
    }
    Ok(client)
}

/// A durable message.
fn message() -> Bytes {
    let header = Header { durable: Some(true), ..Header::default() };
    Writer::new().header(&header).data(&[b'x'; BODY_BYTES]).finish()
}

/// What all connections of a load share.
#[derive(Default)]
struct Shared {
    received: Cell<usize>,
    last_received: Cell<Option<Instant>>,
    last_sent: Cell<Option<Instant>>,
}

/// Sends so many messages, and answers how long each took.
async fn send(
    target: &Target,
    count: usize,
    in_flight: u32,
    shared: &Shared,
) -> Result<Vec<Duration>> {
    let mut client = connect(target).await?;
    client.attach_sender(0, Terminus::target(&target.path));
    client.flush().await.map_err(broken)?;
    let message = message();
    // The credit that the server has given in all, and what was used and answered of it.
    let (mut allowed, mut sent, mut answered) = (0_u32, 0_u32, 0_usize);
    let mut began = vec![Instant::now(); count];
    let mut took = Vec::with_capacity(count);
    while answered < count {
        while (sent as usize) < count && sent < allowed && sent - (answered as u32) < in_flight {
            began[sent as usize] = Instant::now();
            let tag = Bytes::copy_from_slice(&sent.to_be_bytes());
            let transfer = Transfer {
                handle: 0,
                delivery_id: Some(sent),
                delivery_tag: Some(tag),
                message_format: Some(0),
                settled: Some(false),
                ..Transfer::default()
            };
            client.transfer(0, &transfer, &message);
            sent += 1;
        }
        client.flush().await.map_err(broken)?;
        match client.next().await.map_err(broken)?.performative {
            Performative::Flow(flow) if flow.handle.is_some() => {
                let from = flow.delivery_count.unwrap_or(0);
                allowed = from.wrapping_add(flow.link_credit.unwrap_or(0));
            }
            Performative::Disposition(said) if said.role == RECEIVER => {
                if !matches!(said.state, Some(DeliveryState::Accepted)) {
                    return Err(format!("a message was answered with {:?}", said.state));
                }
                for id in said.first..=said.last.unwrap_or(said.first) {
                    took.push(began[id as usize].elapsed());
                    answered += 1;
                }
            }
            Performative::Detach(detach) => return Err(format!("detached: {:?}", detach.error)),
            Performative::Close(close) => return Err(format!("closed: {:?}", close.error)),
            _ => {}
        }
    }
    shared.last_sent.set(Some(Instant::now()));
    Ok(took)
}

/// Receives until all receivers together have so many messages.
async fn receive(
    target: &Target,
    source: Terminus,
    total: usize,
    credit: u32,
    shared: &Shared,
) -> Result {
    let mut client = connect(target).await?;
    client.say(
        0,
        Performative::Attach(Box::new(Attach {
            name: "receiver".into(),
            handle: 0,
            role: RECEIVER,
            snd_settle_mode: Some(SND_UNSETTLED),
            rcv_settle_mode: Some(RCV_FIRST),
            source: Some(source),
            target: Some(Terminus::target("bench")),
            ..Attach::default()
        })),
    );
    client.credit(0, 0, credit, false);
    client.flush().await.map_err(broken)?;
    let (mut count, mut topped) = (0_u32, 0_u32);
    let mut unsettled: Option<(u32, u32)> = None;
    while shared.received.get() < total {
        let Ok(heard) = tokio::time::timeout(LOOK, client.next()).await else { continue };
        let mut heard = Some(heard.map_err(broken)?);
        while let Some(one) = heard {
            match one.performative {
                Performative::Transfer(transfer) => {
                    let id = transfer.delivery_id.unwrap_or(count);
                    count += 1;
                    shared.received.set(shared.received.get() + 1);
                    if transfer.settled != Some(true) {
                        unsettled = Some((unsettled.map_or(id, |(first, _)| first), id));
                    }
                }
                Performative::Detach(detach) => {
                    return Err(format!("detached: {:?}", detach.error));
                }
                Performative::Close(close) => return Err(format!("closed: {:?}", close.error)),
                _ => {}
            }
            let is_full = unsettled.is_some_and(|(first, last)| last - first + 1 >= SETTLE_AT_ONCE);
            heard = if is_full { None } else { client.heard().map_err(broken)? };
        }
        if let Some((first, last)) = unsettled.take() {
            settle(&mut client, first, last);
        }
        if count - topped >= credit.div_ceil(2) {
            topped = count;
            client.credit(0, count, credit, false);
        }
        client.flush().await.map_err(broken)?;
    }
    client.say(0, Performative::Close(Close::default()));
    client.flush().await.map_err(broken)?;
    while !matches!(client.next().await.map_err(broken)?.performative, Performative::Close(_)) {}
    shared.last_received.set(Some(Instant::now()));
    Ok(())
}

fn settle(client: &mut Connected, first: u32, last: u32) {
    client.say(
        0,
        Performative::Disposition(Disposition {
            role: RECEIVER,
            first,
            last: Some(last),
            settled: Some(true),
            state: Some(DeliveryState::Accepted),
            batchable: None,
        }),
    );
}

/// Where a receiver begins: a hub's at the first event, a queue's where it is.
pub(super) fn source_of(path: &str) -> Terminus {
    let source = Terminus::source(path);
    if !path.contains("/Partitions/") {
        return source;
    }
    let name = "apache.org:selector-filter:string";
    let text = "amqp.annotation.x-opt-offset > '-1'";
    source.with_filter(name, Value::described(Value::symbol(name), text.into()))
}

/// Runs a load. Every receiver has a path of its own, if there are several.
pub(super) fn run_on(targets: &[Target], from: &[Target], flow: &Flow) -> Result<Measured> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let local = LocalSet::new();
    let shared = Rc::new(Shared::default());
    let began = Instant::now();
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for nth in 0..flow.receivers {
        let (target, shared, flow) = (from[nth % from.len()].clone(), shared.clone(), *flow);
        receivers.push(local.spawn_local(async move {
            let source = source_of(&target.path);
            receive(&target, source, flow.messages, flow.in_flight, &shared).await
        }));
    }
    for nth in 0..flow.senders {
        let (target, shared, flow) = (targets[nth % targets.len()].clone(), shared.clone(), *flow);
        let count = flow.messages / flow.senders + usize::from(nth < flow.messages % flow.senders);
        senders.push(
            local.spawn_local(async move { send(&target, count, flow.in_flight, &shared).await }),
        );
    }
    let mut took = Vec::new();
    local.block_on(&runtime, async {
        let all = async {
            for sender in senders {
                took.extend(sender.await.map_err(|error| error.to_string())??);
            }
            for receiver in receivers {
                receiver.await.map_err(|error| error.to_string())??;
            }
            Ok::<(), String>(())
        };
        tokio::time::timeout(LONGEST, all).await.map_err(|_| "the load did not end".to_owned())?
    })?;
    let rate = |end: Option<Instant>| {
        end.map_or(0.0, |end| flow.messages as f64 / (end - began).as_secs_f64())
    };
    Ok(Measured {
        sent: rate(shared.last_sent.get()),
        received: rate(shared.last_received.get()),
        latency: Latency::of(took),
        cpu: Duration::ZERO,
    })
}

pub(super) fn run(target: &Target, flow: &Flow) -> Result<Measured> {
    let all = std::slice::from_ref(target);
    run_on(all, all, flow)
}
