//! The load: writers that create, replace by etag, upsert, patch, delete and make batches, and log the answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lazuli_env::{SplitMix64, mix};
use lazuli_http::client::blocking::Answer;
use lazuli_trial::Result;
use lazuli_trial::documents::{DocumentClient, Request};
use serde_json::{Value, json};

use super::CONTAINER;

/// Partition keys that the writers of a round share, so that several of them meet in one.
const PARTITION_KEYS: u64 = 7;
/// An item's text is between one and this many times its id long.
const TEXT_REPEATS_MAX: u64 = 40;
/// The most operations of a batch.
const OPERATIONS_MAX: usize = 12;
/// Every item is in one of so many buckets, by its number, so that each change moves it in the index.
pub(super) const BUCKETS: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Create,
    Replace,
    Upsert,
    Patch,
    Delete,
}

/// One item as one write leaves it. Each id belongs to one writer, and each number is above the one before.
#[derive(Clone, Debug)]
pub(super) struct ItemWrite {
    pub(super) key: String,
    pub(super) id: String,
    pub(super) round: u64,
    /// 0 for the creation, and more for each change.
    pub(super) number: u64,
    pub(super) act: Act,
    /// Whether the item was there before.
    pub(super) was_there: bool,
    /// What the item must have for the change, or what it has after it.
    pub(super) etag: Option<String>,
}

impl ItemWrite {
    pub(super) fn is_there(&self) -> bool {
        self.act != Act::Delete
    }

    fn body(&self) -> Value {
        body(&self.key, &self.id, self.round, self.number)
    }

    fn patch(&self) -> Value {
        let body = self.body();
        let set =
            |name: &str| json!({ "op": "set", "path": format!("/{name}"), "value": body[name] });
        json!({ "operations": [set("number"), set("bucket"), set("text")] })
    }

    fn request(&self) -> Request {
        let (key, id, body) = (&self.key, &self.id, self.body());
        let request = match self.act {
            Act::Create => CONTAINER.create_item(key, &body),
            Act::Upsert => CONTAINER.upsert_item(key, &body),
            Act::Replace => CONTAINER.replace_item(key, id, &body),
            Act::Patch => CONTAINER.patch_item(key, id, &self.patch()),
            Act::Delete => CONTAINER.delete_item(key, id),
        };
        let etag = self.etag.iter();
        etag.fold(request, |request, etag| request.with("if-match", etag))
    }

    fn operation(&self) -> Value {
        let mut operation = json!({ "operationType": format!("{:?}", self.act) });
        match self.act {
            Act::Delete => {}
            Act::Patch => operation["resourceBody"] = self.patch(),
            _ => operation["resourceBody"] = self.body(),
        }
        if matches!(self.act, Act::Replace | Act::Patch | Act::Delete) {
            operation["id"] = json!(self.id);
        }
        if let Some(etag) = &self.etag {
            operation["ifMatch"] = json!(etag);
        }
        operation
    }

    /// The status of a yes.
    fn status(&self) -> u16 {
        match self.act {
            Act::Create => 201,
            Act::Upsert if !self.was_there => 201,
            Act::Delete => 204,
            _ => 200,
        }
    }
}

/// What an item must hold: something that no other item and no other number has, so that a mix-up shows.
pub(super) fn body(key: &str, id: &str, round: u64, number: u64) -> Value {
    let digits = id.bytes().map(u64::from).sum::<u64>();
    let repeats = 1 + (digits + number * 7) % TEXT_REPEATS_MAX;
    let text = format!("{id}={number};").repeat(usize::try_from(repeats).unwrap_or(1));
    json!({
        "id": id, "pk": key, "round": round,
        "number": number, "bucket": number % BUCKETS, "text": text,
    })
}

/// One request: a change by itself, or a batch of several.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) changes: Vec<ItemWrite>,
    pub(super) is_batch: bool,
}

impl Write {
    fn request(&self) -> Request {
        match self.changes.as_slice() {
            [change] if !self.is_batch => change.request(),
            changes => {
                let operations = changes.iter().map(ItemWrite::operation).collect();
                CONTAINER.batch(&changes[0].key, &Value::Array(operations))
            }
        }
    }

    /// The etag that each change has got, if the answer is a yes to all of them.
    fn etags(&self, answer: &Answer) -> Option<Vec<Option<String>>> {
        if let ([change], false) = (self.changes.as_slice(), self.is_batch) {
            let etag = answer.header("etag").map(str::to_owned);
            return (answer.status == change.status()).then(|| vec![etag]);
        }
        let body = answer.json();
        let results = body.as_array().filter(|it| it.len() == self.changes.len())?;
        let each = self.changes.iter().zip(results).map(|(change, result)| {
            let is_yes = result["statusCode"] == change.status();
            is_yes.then(|| result["eTag"].as_str().map(str::to_owned))
        });
        each.collect::<Option<Vec<_>>>().filter(|_| answer.status == 200)
    }
}

/// What one writer of a round knows.
#[derive(Default)]
pub(crate) struct WriterLog {
    pub(super) answered: Vec<Write>,
    /// The last one, if the server died over it: made or not made, but never in part.
    pub(super) in_doubt: Option<Write>,
    /// Every item by its newest answered change.
    pub(super) items: BTreeMap<String, ItemWrite>,
}

/// Writes until the connection breaks. An answer that is neither yes nor a broken connection is a failure.
pub(super) fn write(address: SocketAddr, round: u64, writer: usize) -> Result<WriterLog> {
    let mut log = WriterLog::default();
    // A server that dies before the writer has connected leaves nothing to remember.
    let Ok(mut client) = DocumentClient::connect(address) else { return Ok(log) };
    let mut plan = Plan::new(round, writer);
    loop {
        let write = plan.next(&log.items);
        let Ok(answer) = client.send(&write.request()) else {
            log.in_doubt = Some(write);
            return Ok(log);
        };
        let Some(etags) = write.etags(&answer) else {
            return Err(format!("{write:?}: {} {}", answer.status, answer.text()));
        };
        for (change, etag) in write.changes.iter().zip(etags) {
            if change.is_there() && etag.is_none() {
                return Err(format!("{change:?} was answered without an etag"));
            }
            let change = ItemWrite { etag, ..change.clone() };
            log.items.insert(change.id.clone(), change);
        }
        log.answered.push(write);
    }
}

/// What a writer does next.
struct Plan {
    round: u64,
    prefix: String,
    created: u64,
    random: SplitMix64,
}

impl Plan {
    fn new(round: u64, writer: usize) -> Self {
        let random = SplitMix64::new(mix(round * 1000 + writer as u64));
        Self { round, prefix: format!("{round:06}-{writer:02}"), created: 0, random }
    }

    /// A creation, a change of some item, or a batch of both.
    fn next(&mut self, items: &BTreeMap<String, ItemWrite>) -> Write {
        let alone = |change| Write { changes: vec![change], is_batch: false };
        let kind = self.random.below(4);
        if kind == 0 {
            return alone(self.create(None));
        }
        let at = self.random.below(items.len());
        if let Some(item) = items.values().nth(at).filter(|_| kind < 3) {
            return alone(self.change(item));
        }
        self.batch(items)
    }

    fn create(&mut self, key: Option<&str>) -> ItemWrite {
        self.created += 1;
        let key = match key {
            Some(key) => key.to_owned(),
            None => format!("p{}", self.created % PARTITION_KEYS),
        };
        let id = format!("{}-{:08}", self.prefix, self.created);
        let (round, act) = (self.round, Act::Create);
        ItemWrite { key, id, round, number: 0, act, was_there: false, etag: None }
    }

    /// Any change of an item; one that was deleted comes back.
    fn change(&mut self, item: &ItemWrite) -> ItemWrite {
        let was_there = item.is_there();
        let act = match self.random.below(4) {
            _ if !was_there => Act::Upsert,
            0 => Act::Replace,
            1 => Act::Upsert,
            2 => Act::Patch,
            _ => Act::Delete,
        };
        let etag = item.etag.clone().filter(|_| was_there && act == Act::Replace);
        ItemWrite { number: item.number + 1, act, was_there, etag, ..item.clone() }
    }

    /// Creations, and changes of the newest items of the same partition key.
    fn batch(&mut self, items: &BTreeMap<String, ItemWrite>) -> Write {
        let first = self.create(None);
        let key = first.key.clone();
        let mut changes = vec![first];
        let (creations, others) =
            (self.random.below(OPERATIONS_MAX / 2), self.random.below(OPERATIONS_MAX / 2));
        for _ in 0..creations {
            changes.push(self.create(Some(&key)));
        }
        for item in items.values().rev().filter(|item| item.key == key).take(others) {
            changes.push(self.change(item));
        }
        Write { changes, is_batch: true }
    }
}
