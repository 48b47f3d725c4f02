//! The load: writers that upload, merge and delete documents in batches, and log the answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lazuli_env::{SplitMix64, mix};
use lazuli_trial::Result;
use lazuli_trial::search::SearchClient;
use serde_json::{Value, json};

use super::INDEX;

/// The most actions of a batch.
const ACTIONS_MAX: u64 = 25;
/// A document's text is between one and this many words long.
const WORDS_MAX: u64 = 60;

/// A document as one action leaves it. Each key belongs to one writer, and each number is above the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocumentWrite {
    pub(super) round: u64,
    pub(super) number: u64,
    pub(super) is_there: bool,
}

/// What one writer did in one round.
#[derive(Default)]
pub(crate) struct WriterLog {
    /// Documents as the answered actions left them, by key.
    pub(super) documents: BTreeMap<String, DocumentWrite>,
    /// What the batch in doubt would have made of them.
    pub(super) in_doubt: BTreeMap<String, DocumentWrite>,
    pub(super) answered: BTreeMap<&'static str, usize>,
    pub(super) scales: usize,
}

pub(super) fn text(number: u64) -> String {
    let mut random = SplitMix64::new(mix(number));
    let words = 1 + random.next_u64() % WORDS_MAX;
    let word = |_| format!("word{}", random.next_u64() % 500);
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

fn action(kind: &str, key: &str, write: &DocumentWrite) -> Value {
    match write.is_there {
        false => json!({ "@search.action": "delete", "id": key }),
        true => json!({
            "@search.action": kind,
            "id": key,
            "round": write.round,
            "number": write.number,
            "text": text(write.number),
        }),
    }
}

/// Writes until the connection breaks.
pub(super) fn write(address: SocketAddr, round: u64, writer: usize) -> Result<WriterLog> {
    let mut random = SplitMix64::new(mix(round * 1_000 + writer as u64));
    let mut client = SearchClient::connect(address)?;
    let mut log = WriterLog::default();
    let mut number = 0;
    loop {
        let mut batch = BTreeMap::new();
        let mut actions = Vec::new();
        for _ in 0..=random.next_u64() % ACTIONS_MAX {
            number += 1;
            let old = random.next_u64().is_multiple_of(3);
            let place = random.next_u64() as usize % log.documents.len().max(1);
            let known = log.documents.iter().nth(place).filter(|_| old);
            let (key, was_there) = match known {
                Some((key, document)) => (key.clone(), document.is_there),
                None => (format!("r{round}-w{writer}-{number}"), false),
            };
            if batch.contains_key(&key) {
                continue;
            }
            let is_there = !(was_there && random.next_u64().is_multiple_of(4));
            let write = DocumentWrite { round, number, is_there };
            let kind = match (was_there, random.next_u64() % 2) {
                (true, 0) => "merge",
                (_, 0) => "mergeOrUpload",
                _ => "upload",
            };
            actions.push(action(kind, &key, &write));
            batch.insert(key, write);
        }
        let count = actions.len();
        let body = json!({ "value": actions });
        let path = format!("/indexes/{INDEX}/docs/index");
        let Ok(answer) = client.send("POST", &path, Some(&body)) else {
            log.in_doubt = batch;
            return Ok(log);
        };
        let answer_text = answer.text();
        if answer.status != 200 {
            return Err(format!("a batch: {} {answer_text}", answer.status));
        }
        let deleted = batch.values().filter(|write| !write.is_there).count();
        *log.answered.entry("batches").or_default() += 1;
        *log.answered.entry("documents written").or_default() += count - deleted;
        *log.answered.entry("documents deleted").or_default() += deleted;
        log.documents.extend(batch);
    }
}

/// Spreads the index over another number of shards, again and again.
pub(super) fn scale(address: SocketAddr, round: u64) -> Result<WriterLog> {
    let mut client = SearchClient::connect(address)?;
    let mut log = WriterLog::default();
    let path = format!("/indexes/{INDEX}/lazuli.scale");
    for step in round.. {
        let partitions = [3, 1, 2][step as usize % 3];
        let body = json!({ "partitionCount": partitions });
        let Ok(answer) = client.send("PUT", &path, Some(&body)) else { break };
        if answer.status != 200 {
            return Err(format!("scale: {} {}", answer.status, answer.text()));
        }
        log.scales += 1;
        std::thread::sleep(std::time::Duration::from_millis(400));
    }
    Ok(log)
}
