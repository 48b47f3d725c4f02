//! The check: every answered write is there, byte for byte, with its snapshots and its lease; one in doubt is made or not
//! made; and what was deleted is gone.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lazuli_trial::client::{Client, Request};
use lazuli_trial::{Result, blobs};

use super::CONTAINER;
use super::contents::Content;
use super::writers::{Blob, Log, Step, Write};

/// What must be there, by name: settled once, exact from then on.
pub(super) type Expected = BTreeMap<String, Blob>;

/// Reads every blob of one writer. Says what must be there from now on, and whether the write in doubt was made.
pub(super) fn read(address: SocketAddr, log: Log) -> Result<(Expected, bool)> {
    let mut client = Client::connect(address)?;
    let mut blobs = log.blobs;
    let made = match &log.in_doubt {
        Some(write) => settle_doubt(&mut client, write, &mut blobs)?,
        None => false,
    };
    for (name, blob) in &blobs {
        check(&mut client, name, blob)?;
    }
    for name in log.deleted.iter().filter(|name| !blobs.contains_key(*name)) {
        if let Some(found) = get(&mut client, name, "")? {
            return Err(format!("{name} was deleted, and there is {found:?}"));
        }
    }
    Ok((blobs, made))
}

/// Finds out whether the last operation of a writer was made.
fn settle_doubt(client: &mut Client, write: &Write, blobs: &mut Expected) -> Result<bool> {
    let before = blobs.remove(&write.name);
    let found = get(client, &write.name, "")?;
    let shown =
        |blob: &Option<Blob>| blob.as_ref().map(|it| (it.content.clone(), it.lease.is_some()));
    let after = write.apply(before.clone(), None);
    let made = found == shown(&after) && !matches!(write.step, Step::Snapshot);
    if !made && found != shown(&before) {
        return Err(format!("TORN: {write:?} on {before:?} left {found:?}"));
    }
    if let Some(blob) = if made { after } else { before } {
        blobs.insert(write.name.clone(), blob);
    }
    Ok(made)
}

/// What a blob or a snapshot of it holds and whether it is leased, if it is there. What it holds must be whole, whatever
/// it is.
fn get(client: &mut Client, name: &str, query: &str) -> Result<Option<(Content, bool)>> {
    let path = format!("/{CONTAINER}/{name}");
    let answer = client.send(Request::storage("GET", &path, query, ""))?;
    match answer.status {
        200 => {
            let content = Content::read(&answer.body);
            let content = content.ok_or_else(|| {
                format!(
                    "TORN: {name}{query} holds {} bytes that no writer wrote",
                    answer.body.len()
                )
            })?;
            Ok(Some((content, answer.header("x-ms-lease-state") == Some("leased"))))
        }
        404 => Ok(None),
        status => Err(format!("get {name}{query}: {status} {}", answer.text())),
    }
}

/// Whether a blob is what it must be.
fn check(client: &mut Client, name: &str, blob: &Blob) -> Result {
    let expected = Some((blob.content.clone(), blob.lease.is_some()));
    let found = get(client, name, "")?;
    if found != expected {
        return Err(format!("LOST: {name} must hold {expected:?}, and holds {found:?}"));
    }
    for (time, content) in &blob.snapshots {
        let found = get(client, name, &format!("?snapshot={}", time.replace(':', "%3A")))?;
        if found.as_ref().map(|(found, _)| found) != Some(content) {
            return Err(format!("LOST: {name} of {time} must hold {content:?}, not {found:?}"));
        }
    }
    if blob.lease.is_some() {
        let path = format!("/{CONTAINER}/{name}");
        let answer = client.send(blobs::put(&path, Vec::new()))?;
        if answer.status != 412 {
            return Err(format!("the lease of {name} does not hold: {}", answer.status));
        }
    }
    Ok(())
}

/// Reads everything that must be there.
pub(super) fn everything(address: SocketAddr, expected: &Expected) -> Result {
    let mut client = Client::connect(address)?;
    expected.iter().try_for_each(|(name, blob)| check(&mut client, name, blob))
}
