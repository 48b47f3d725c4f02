//! The check: every answered write is there with its newest number and etag, every batch is whole or absent, and the index
//! has exactly what the items have.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lazuli_trial::Result;
use lazuli_trial::documents::DocumentClient;
use serde_json::{Value, json};

use super::CONTAINER;
use super::writers::{Act, BUCKETS, ItemWrite, Write, WriterLog, body};

/// The newest change of every item ever written, by id: settled once, exact from then on.
pub(super) type Expected = BTreeMap<String, ItemWrite>;

/// What one writer left behind, and the write in doubt if it was made.
pub(super) fn read(address: SocketAddr, log: WriterLog) -> Result<(Expected, Option<Write>)> {
    let mut items = log.items;
    let mut client = DocumentClient::connect(address)?;
    let mut kept = None;
    if let Some(write) = log.in_doubt {
        let mut made = Vec::new();
        for change in &write.changes {
            made.push(was_made(&mut client, change)?);
        }
        if made.iter().any(|it| *it) {
            if !made.iter().all(|it| *it) {
                return Err(format!("TORN: {write:?} was made in part: {made:?}"));
            }
            for change in &write.changes {
                // Its etag was never answered.
                items.insert(change.id.clone(), ItemWrite { etag: None, ..change.clone() });
            }
            kept = Some(write);
        } else {
            for change in &write.changes {
                let before = items.get(&change.id).filter(|item| item.is_there());
                let found = item(&mut client, change)?.map(|(number, _)| number);
                if found != before.map(|item| item.number) {
                    return Err(format!("{change:?} was not made, and the number is {found:?}"));
                }
            }
        }
    }
    for change in items.values() {
        match item(&mut client, change)? {
            None if change.is_there() => return Err(lost(change)),
            None => {}
            Some((number, _)) if !change.is_there() => {
                return Err(format!("LOST: {change:?} was answered, and it has {number}"));
            }
            Some((number, etag)) => {
                let same_etag = change.etag.as_ref().is_none_or(|answered| *answered == etag);
                if number != change.number || !same_etag {
                    return Err(format!("LOST: {change:?} was answered; now {number}, {etag}"));
                }
            }
        }
    }
    Ok((items, kept))
}

fn was_made(client: &mut DocumentClient, change: &ItemWrite) -> Result<bool> {
    let found = item(client, change)?.map(|(number, _)| number);
    Ok(match change.act {
        Act::Delete => found.is_none(),
        _ => found == Some(change.number),
    })
}

/// The number and the etag of an item, if it is there.
fn item(client: &mut DocumentClient, change: &ItemWrite) -> Result<Option<(u64, String)>> {
    let answer = client.expect(&CONTAINER.read_item(&change.key, &change.id), &[200, 404])?;
    if answer.status == 404 {
        return Ok(None);
    }
    let (_, number) = whole(&answer.json())?;
    Ok(Some((number, answer.header("etag").unwrap_or_default().to_owned())))
}

/// The id and the number of an item whose parts all fit each other.
pub(super) fn whole(found: &Value) -> Result<(String, u64)> {
    let not_whole = || format!("an item is not whole: {found}");
    let text = |name: &str| found[name].as_str().map(str::to_owned).ok_or_else(not_whole);
    let number = |name: &str| found[name].as_u64().ok_or_else(not_whole);
    let (id, key, round, number) = (text("id")?, text("pk")?, number("round")?, number("number")?);
    let expected = body(&key, &id, round, number);
    let fits = expected.as_object().is_some_and(|expected| {
        expected.iter().all(|(name, value)| found[name.as_str()] == *value)
    });
    fits.then_some((id, number)).ok_or_else(not_whole)
}

/// Asks the index for the items of one round, or of all, and compares the answers with what must be there.
pub(super) fn index(address: SocketAddr, expected: &Expected, round: Option<u64>) -> Result<usize> {
    let mut client = DocumentClient::connect(address)?;
    let mut rows = 0;
    for bucket in 0..BUCKETS {
        let mut missing: BTreeMap<&str, u64> = expected
            .values()
            .filter(|item| item.is_there() && item.number % BUCKETS == bucket)
            .map(|item| (item.id.as_str(), item.number))
            .collect();
        let mut text = "SELECT c.id, c.number FROM c WHERE c.bucket = @bucket".to_owned();
        let mut parameters = vec![("@bucket", json!(bucket))];
        if let Some(round) = round {
            text.push_str(" AND c.round = @round");
            parameters.push(("@round", json!(round)));
        }
        for row in client.all(&CONTAINER.query(None, &text, &parameters))? {
            let id = row["id"].as_str().unwrap_or_default();
            let number = missing.remove(id);
            if number.is_none() || number != row["number"].as_u64() {
                return Err(format!("INDEX: {row} of bucket {bucket} is {:?}", expected.get(id)));
            }
            rows += 1;
        }
        if let Some((id, _)) = missing.first_key_value() {
            return Err(format!("INDEX: {:?} is not in bucket {bucket}", expected.get(*id)));
        }
    }
    Ok(rows)
}

/// Reads all items without an index and compares them with everything that must be there.
pub(super) fn everything(address: SocketAddr, expected: &Expected) -> Result {
    let there = expected.iter().filter(|(_, item)| item.is_there());
    let mut missing: BTreeMap<&str, &ItemWrite> = there.map(|(id, it)| (id.as_str(), it)).collect();
    for found in DocumentClient::connect(address)?.all(&CONTAINER.list())? {
        let (id, number) = whole(&found)?;
        match missing.remove(id.as_str()) {
            None => return Err(format!("{id} was never written, was deleted, or is there twice")),
            Some(change) if change.number != number => {
                return Err(format!("LOST: {change:?} was settled, and now it has {number}"));
            }
            Some(_) => {}
        }
    }
    missing.values().next().map_or(Ok(()), |change| Err(lost(change)))
}

fn lost(change: &ItemWrite) -> String {
    format!("LOST: {change:?} was answered and is not there")
}
