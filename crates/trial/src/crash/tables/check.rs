//! The check: every answered write is there with its newest value, every transaction is whole or absent, and the table
//! has no entity that no writer wrote.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lazuli_http::uri::percent_encode;
use lazuli_trial::Result;
use lazuli_trial::client::{Client, Request};
use serde_json::Value;

use super::TABLE;
use super::writers::{EntityWrite, Log, Write};

/// What must be in the table, by row key: settled once, exact from then on.
pub(super) type Expected = BTreeMap<String, EntityWrite>;

/// What one writer left behind, and the write in doubt if it was made.
pub(super) fn read(address: SocketAddr, log: Log) -> Result<(Expected, Option<Write>)> {
    let mut rows = Expected::new();
    for change in log.answered.iter().flat_map(|write| &write.changes) {
        rows.insert(change.row.clone(), change.clone());
    }
    let mut client = Client::connect(address)?;
    let mut kept = None;
    if let Some(write) = &log.in_doubt {
        let mut made = Vec::new();
        for change in &write.changes {
            let value = value(&mut client, change)?;
            made.push(value == Some(change.value));
        }
        if made.iter().any(|it| *it) {
            if !made.iter().all(|it| *it) {
                return Err(format!("TORN: {write:?} was made in part: {made:?}"));
            }
            rows.extend(write.changes.iter().map(|change| (change.row.clone(), change.clone())));
            kept = Some(write.clone());
        }
        for change in write.changes.iter().filter(|_| kept.is_none()) {
            let found = value(&mut client, change)?;
            if found != rows.get(&change.row).map(|row| row.value) {
                return Err(format!("{}/{} has {found:?}", change.partition, change.row));
            }
        }
    }
    for row in rows.values() {
        match value(&mut client, row)? {
            None => return Err(lost(row)),
            Some(value) if value != row.value => {
                return Err(format!("LOST: {row:?} was answered, and the value is {value}"));
            }
            Some(_) => {}
        }
    }
    Ok((rows, kept))
}

/// The value of an entity, if it exists. Its properties must fit each other.
fn value(client: &mut Client, change: &EntityWrite) -> Result<Option<u64>> {
    let path = format!("/{TABLE}(PartitionKey='{}',RowKey='{}')", change.partition, change.row);
    let answer = client.send(Request::tables("GET", &path, "", ""))?;
    match answer.status {
        200 => whole(change, &answer.json()).map(Some),
        404 => Ok(None),
        status => Err(format!("get {}: {status} {}", change.row, answer.text())),
    }
}

/// Reads the table from end to end and compares it with everything that must be there.
pub(super) fn everything(address: SocketAddr, expected: &Expected) -> Result {
    let mut missing: BTreeMap<&str, &EntityWrite> =
        expected.iter().map(|(row, change)| (row.as_str(), change)).collect();
    let mut client = Client::connect(address)?;
    let mut continuation = String::new();
    loop {
        let answer =
            client.send(Request::tables("GET", &format!("/{TABLE}()"), &continuation, ""))?;
        let page = answer.json();
        let Some(entities) = page["value"].as_array().filter(|_| answer.status == 200) else {
            return Err(format!("query: {} {}", answer.status, answer.text()));
        };
        for entity in entities {
            let partition = entity["PartitionKey"].as_str().unwrap_or_default();
            let row = entity["RowKey"].as_str().unwrap_or_default();
            let change = missing.remove(row).filter(|it| it.partition == partition);
            let Some(change) = change else {
                return Err(format!("{partition}/{row} was never written, or is there twice"));
            };
            if whole(change, entity)? != change.value {
                return Err(format!("LOST: {change:?} was settled, and now it is {entity}"));
            }
        }
        let next = |name| answer.header(name).map(percent_encode);
        let Some(partition) = next("x-ms-continuation-NextPartitionKey") else { break };
        continuation = format!("?NextPartitionKey={partition}");
        if let Some(row) = next("x-ms-continuation-NextRowKey") {
            continuation.push_str(&format!("&NextRowKey={row}"));
        }
    }
    missing.values().next().map_or(Ok(()), |change| Err(lost(change)))
}

/// The value of an entity whose parts all fit each other: what the insert wrote, and what the newest merge wrote over it.
fn whole(change: &EntityWrite, entity: &Value) -> Result<u64> {
    let value = entity["Value"].as_u64();
    let fits = value.is_some_and(|value| {
        let text = EntityWrite { value, ..change.clone() }.text();
        entity["Text"] == text.as_str() && entity["Born"] == change.row.as_str()
    });
    value
        .filter(|_| fits)
        .ok_or(format!("{}/{} is not whole: {entity}", change.partition, change.row))
}

fn lost(change: &EntityWrite) -> String {
    format!("LOST: {change:?} was answered and is not there")
}
