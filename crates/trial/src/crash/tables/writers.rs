//! The load: writers that insert, merge and make transactions one after another, and log the answers.

use std::net::SocketAddr;

use lazuli_env::{SplitMix64, mix};
use lazuli_trial::Result;
use lazuli_trial::client::{Client, Request, transaction};
use serde_json::json;

use super::TABLE;

/// Partition keys that the writers of a round share, so that several of them meet in one.
const PARTITION_KEYS: u64 = 5;

/// An entity's text is between one and this many times its row key long.
const TEXT_REPEATS_MAX: u64 = 40;

/// The most changes of a transaction.
const CHANGES_MAX: usize = 12;

/// One entity as one write leaves it. Each row belongs to one writer, and each value is above the one before.
#[derive(Clone, Debug)]
pub(super) struct EntityWrite {
    pub(super) partition: String,
    pub(super) row: String,
    /// 0 for the insert, and more for each merge.
    pub(super) value: u64,
}

impl EntityWrite {
    /// What the entity must hold: something that no other entity and no other value has, so that a mix-up shows.
    pub(super) fn text(&self) -> String {
        let digits = self.row.bytes().map(u64::from).sum::<u64>();
        let repeats = 1 + (digits + self.value * 7) % TEXT_REPEATS_MAX;
        format!("{}={};", self.row, self.value).repeat(usize::try_from(repeats).unwrap_or(1))
    }

    fn request(&self) -> Request {
        let (partition, row) = (&self.partition, &self.row);
        if self.value == 0 {
            let entity = json!({
                "PartitionKey": partition, "RowKey": row, "Born": row, "Value": 0,
                "Text": self.text(),
            });
            return Request::tables("POST", &format!("/{TABLE}"), "", entity.to_string());
        }
        let path = format!("/{TABLE}(PartitionKey='{partition}',RowKey='{row}')");
        let entity = json!({ "Value": self.value, "Text": self.text() });
        Request::tables("PATCH", &path, "", entity.to_string()).with("if-match", "*")
    }
}

/// One request: a change by itself, or a transaction of several.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) changes: Vec<EntityWrite>,
    pub(super) is_transaction: bool,
}

impl Write {
    fn request(&self) -> Request {
        let changes: Vec<_> = self.changes.iter().map(EntityWrite::request).collect();
        match changes.as_slice() {
            [change] if !self.is_transaction => change.clone(),
            changes => transaction(changes),
        }
    }
}

/// The answers that one writer of a round got.
#[derive(Default)]
pub(crate) struct Log {
    pub(super) answered: Vec<Write>,
    /// The last one, if the server died over it: made or not made, but never in part.
    pub(super) in_doubt: Option<Write>,
}

/// Writes until the connection breaks. An answer that is neither yes nor a broken connection is a failure.
pub(super) fn write(address: SocketAddr, round: u64, writer: usize) -> Result<Log> {
    let mut log = Log::default();
    // A server that dies before the writer has connected leaves nothing to remember.
    let Ok(mut client) = Client::connect(address) else { return Ok(log) };
    let mut plan = Plan::new(round, writer);
    loop {
        let write = plan.next();
        match client.send(write.request()) {
            Ok(answer) => {
                let text = answer.text();
                let made = text.matches("HTTP/1.1 204").count();
                let is_yes = match write.is_transaction {
                    true => answer.status == 202 && made == write.changes.len(),
                    false => matches!(answer.status, 201 | 204),
                };
                if !is_yes {
                    return Err(format!("{write:?}: {} {text}", answer.status));
                }
                plan.made(&write);
                log.answered.push(write);
            }
            Err(_) => {
                log.in_doubt = Some(write);
                return Ok(log);
            }
        }
    }
}

/// What a writer does next: inserts, merges of what it has, and transactions of both.
struct Plan {
    prefix: String,
    number: u64,
    random: SplitMix64,
    /// The entities of this writer, as they are known to be.
    rows: Vec<EntityWrite>,
}

impl Plan {
    fn new(round: u64, writer: usize) -> Self {
        let random = SplitMix64::new(mix(round * 1000 + writer as u64));
        Self { prefix: format!("{round:06}-{writer:02}"), number: 0, random, rows: Vec::new() }
    }

    fn next(&mut self) -> Write {
        let kind = self.random.below(3);
        if kind == 0 {
            return Write { changes: vec![self.insert(None)], is_transaction: false };
        }
        let at = self.random.below(self.rows.len());
        if let Some(row) = self.rows.get(at).filter(|_| kind == 1) {
            let changes = vec![EntityWrite { value: row.value + 1, ..row.clone() }];
            return Write { changes, is_transaction: false };
        }
        self.transaction()
    }

    fn insert(&mut self, partition: Option<&str>) -> EntityWrite {
        self.number += 1;
        let partition = match partition {
            Some(partition) => partition.to_owned(),
            None => format!("p{}", self.number % PARTITION_KEYS),
        };
        EntityWrite { partition, row: format!("{}-{:08}", self.prefix, self.number), value: 0 }
    }

    /// Inserts, and merges of the newest entities of the same partition key.
    fn transaction(&mut self) -> Write {
        let mut changes = vec![self.insert(None)];
        let partition = changes[0].partition.clone();
        let (inserts, merges) =
            (self.random.below(CHANGES_MAX / 2), self.random.below(CHANGES_MAX / 2));
        for _ in 0..inserts {
            changes.push(self.insert(Some(&partition)));
        }
        let known = self.rows.iter().rev().filter(|row| row.partition == partition).take(merges);
        changes.extend(known.map(|row| EntityWrite { value: row.value + 1, ..row.clone() }));
        Write { changes, is_transaction: true }
    }

    fn made(&mut self, write: &Write) {
        for change in &write.changes {
            match self.rows.iter_mut().find(|row| row.row == change.row) {
                Some(row) => row.value = change.value,
                None => self.rows.push(change.clone()),
            }
        }
    }
}
