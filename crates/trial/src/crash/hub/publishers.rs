//! Publishers by key, to a partition, and wherever there is room; readers that follow a partition while they publish.

use std::net::SocketAddr;
use std::time::Duration;

use lazuli_amqp::performative::RECEIVER;
use lazuli_amqp::{DeliveryState, Map, Terminus, Value, Writer};
use lazuli_env::{SplitMix64, mix};
use lazuli_trial::amqp::{BATCH_FORMAT, Bus, Receiver};
use lazuli_trial::{Result, alive};

use super::{HUB, Log, PARTITIONS, Sent};

const KEYS_EACH: usize = 3;
const BATCH_MAX: usize = 6;
/// How many batches a publisher has on the way.
const AT_ONCE: usize = 4;
/// How long a reader waits for an event that it knows of.
const READ_WAIT: Duration = Duration::from_secs(20);

fn event(tag: &str, key: Option<&str>) -> bytes::Bytes {
    let annotations = key.map(|key| Map::default().with("x-opt-partition-key", key));
    Writer::new()
        .message_annotations(&annotations.unwrap_or_default())
        .data(tag.as_bytes())
        .finish()
}

/// Sends batches of a few events, some of which are on the way at the same time.
pub(super) fn publish(address: SocketAddr, round: u64, worker: usize) -> Result<Log> {
    let mut sent = Vec::new();
    if let Some(mut bus) = Bus::connect(address)? {
        let mut random = SplitMix64::new(mix(round * 1_000 + worker as u64));
        publish_on(&mut bus, &mut random, &format!("{round:06}-{worker:02}"), worker, &mut sent)?;
    }
    Ok(Log::Published(sent))
}

fn publish_on(
    bus: &mut Bus,
    random: &mut SplitMix64,
    prefix: &str,
    worker: usize,
    sent: &mut Vec<Sent>,
) -> Result<Option<()>> {
    // Some name a partition, and then no key.
    let partition = (worker % 4 == 3).then_some(worker % PARTITIONS);
    let target = partition.map_or(HUB.to_owned(), |number| format!("{HUB}/Partitions/{number}"));
    let link = alive!(bus.sender(Terminus::target(&target)));
    let mut count = 0;
    loop {
        let first = sent.len();
        let mut ids = Vec::new();
        for _ in 0..AT_ONCE {
            let key = format!("{prefix}-key-{}", random.below(KEYS_EACH));
            let key = (partition.is_none() && worker % 4 != 2).then_some(key);
            let tags = (0..=random.below(BATCH_MAX)).map(|_| {
                count += 1;
                format!("{prefix}-{count:06}")
            });
            let tags: Vec<String> = tags.collect();
            let batch = tags
                .iter()
                .fold(Writer::new(), |batch, tag| batch.data(&event(tag, key.as_deref())));
            ids.push(bus.put(link, &batch.finish(), BATCH_FORMAT, None));
            sent.push(Sent { key, tags, answered: false });
        }
        for (id, sent) in ids.into_iter().zip(&mut sent[first..]) {
            match alive!(bus.said(id, RECEIVER)) {
                DeliveryState::Accepted => sent.answered = true,
                other => return Err(format!("events were answered with {other:?}")),
            }
        }
    }
}

/// A reader of a partition from a number on.
fn reader(bus: &mut Bus, partition: usize, from: usize) -> Result<Option<Receiver>> {
    let path = format!("{HUB}/ConsumerGroups/$Default/Partitions/{partition}");
    let text = format!("amqp.annotation.x-opt-sequence-number > '{}'", from as i64 - 1);
    let name = "apache.org:selector-filter:string";
    let filter = Value::described(Value::symbol(name), text.as_str().into());
    let source = Terminus::source(&path).with_filter(name, filter);
    let link = alive!(bus.receiver(source, true, Map::default()));
    link.map(Some).map_err(|condition| format!("a reader was refused: {condition}"))
}

/// Reads what comes until the server is gone.
pub(super) fn follow(address: SocketAddr, partition: usize, from: usize) -> Result<Log> {
    let mut seen = Vec::new();
    if let Some(mut bus) = Bus::connect(address)? {
        follow_on(&mut bus, partition, from, &mut seen)?;
    }
    Ok(Log::Read(partition, seen))
}

fn follow_on(
    bus: &mut Bus,
    partition: usize,
    from: usize,
    seen: &mut Vec<(i64, String)>,
) -> Result<Option<()>> {
    let mut link = alive!(reader(bus, partition, from));
    loop {
        if let Some(event) = alive!(bus.wait_one(&mut link, READ_WAIT)) {
            seen.push((event.sequence_number, event.text));
        }
        for event in alive!(bus.receive(&mut link, 500)) {
            seen.push((event.sequence_number, event.text));
        }
    }
}

/// Everything that a partition has from a number on.
pub(super) fn read_rest(
    address: SocketAddr,
    partition: usize,
    from: usize,
) -> Result<Vec<(i64, String)>> {
    let gone = || "the server went away while its hub was read".to_owned();
    let mut bus = Bus::connect(address)?.ok_or_else(gone)?;
    let mut link = reader(&mut bus, partition, from)?.ok_or_else(gone)?;
    let mut seen = Vec::new();
    loop {
        let events = bus.receive(&mut link, 1_000)?.ok_or_else(gone)?;
        if events.is_empty() {
            return Ok(seen);
        }
        seen.extend(events.into_iter().map(|event| (event.sequence_number, event.text)));
    }
}
