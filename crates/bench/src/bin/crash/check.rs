//! The proof: every answered write is there and whole, and nothing is there that nobody wrote.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;

use crate::client::Client;
use crate::writers::{Key, Written};
use crate::{Result, WRITERS};

/// What a look at the whole table found.
#[derive(Default)]
pub(crate) struct Found {
    /// Entities that were never answered but are there.
    pub(crate) in_doubt: usize,
}

/// Gets every entity of a round by its key, over as many connections as there were writers.
pub(crate) fn written(address: SocketAddr, written: &Written) -> Result {
    let size = written.keys.len().div_ceil(WRITERS).max(1);
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            written.keys.chunks(size).map(|keys| scope.spawn(|| read(address, keys))).collect();
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked".to_owned())??;
        }
        Ok(())
    })
}

fn read(address: SocketAddr, keys: &[Key]) -> Result {
    let mut client = Client::connect(address)?;
    for key in keys {
        let answer = client.get(&key.partition, &key.row)?;
        match answer.status {
            200 => whole(key, &answer.body)?,
            404 if key.answered => return Err(lost(key)),
            404 => {}
            status => return Err(format!("get {}: {status} {}", key.row, answer.body)),
        }
    }
    Ok(())
}

/// Reads the table from end to end and compares it with everything that was ever sent.
pub(crate) fn everything(address: SocketAddr, sent: &[Key]) -> Result<Found> {
    let mut missing: BTreeMap<String, &Key> =
        sent.iter().map(|key| (key.row.clone(), key)).collect();
    let mut found = Found::default();
    let mut client = Client::connect(address)?;
    let mut continuation = String::new();
    loop {
        let page = client.page(&continuation)?;
        let Some(entities) = page.body["value"].as_array().filter(|_| page.status == 200) else {
            return Err(format!("query: {} {}", page.status, page.body));
        };
        for entity in entities {
            let partition = entity["PartitionKey"].as_str().unwrap_or_default();
            let row = entity["RowKey"].as_str().unwrap_or_default();
            let key = missing.remove(row).filter(|key| key.partition == partition);
            let Some(key) = key else {
                return Err(format!("{partition}/{row} was never written, or is there twice"));
            };
            whole(key, entity)?;
            found.in_doubt += usize::from(!key.answered);
        }
        let next = |name| page.header(name).map(percent_encoded);
        let Some(partition) = next("x-ms-continuation-NextPartitionKey") else { break };
        continuation = format!("?NextPartitionKey={partition}");
        if let Some(row) = next("x-ms-continuation-NextRowKey") {
            continuation.push_str(&format!("&NextRowKey={row}"));
        }
    }
    match missing.values().find(|key| key.answered) {
        Some(key) => Err(lost(key)),
        None => Ok(found),
    }
}

/// A token as it goes into a query: it may hold anything that a header may hold.
fn percent_encoded(token: &str) -> String {
    token.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn whole(key: &Key, entity: &Value) -> Result {
    if entity["Text"] == key.text().as_str() {
        return Ok(());
    }
    Err(format!("{}/{} is not whole: {entity}", key.partition, key.row))
}

fn lost(key: &Key) -> String {
    format!("LOST: {}/{} was answered and is not there", key.partition, key.row)
}
