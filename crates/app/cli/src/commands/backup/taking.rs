//! `lazuli partition backup`: from the server to a folder or to blobs.

use std::io::Read;

use lazuli_engine::backup::BackupHead;
use serde_json::{Value, json};

use super::look::Seen;
use super::sink::{SUFFIX, Shelf, Sink};
use super::{add_totals, show_head};
use crate::args::backup::Backup;
use crate::client::Client;
use crate::commands::map;
use lazuli_console::output::size;
use lazuli_console::output::{self, cell};
use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result};

/// How much is read at once.
const PIECE_BYTES: usize = 256 * 1024;

pub(in crate::commands) fn take(wanted: &Backup) -> Result<()> {
    let target = &wanted.service.target;
    let client = Client::find(target)?;
    let ids = match (wanted.id, &wanted.map) {
        (Some(id), _) => vec![id],
        (None, Some(name)) => ids(&client, name)?,
        (None, None) => return Err(Failure::usage("name a partition, or a map with --map")),
    };
    let mut shelf = Shelf::open(&wanted.to, wanted.create, &wanted.service)?;
    let mut all = Vec::new();
    for id in ids {
        let stale = if wanted.from_standby { "?stale=true" } else { "" };
        let path = format!("/v1/partitions/{id}/backup{stale}");
        let taken = take_one(&client, id, &path, &mut shelf, wanted.quiet || target.json)?;
        if !target.json {
            output::line(&line(&taken));
        }
        all.push(taken);
    }
    if target.json {
        output::json(&json!({ "backups": all }));
    }
    Ok(())
}

fn line(taken: &Value) -> String {
    let parts = ["partition", "map", "lsn", "rows", "backup"];
    let [partition, map, lsn, rows, backup] = parts.map(|part| cell(&taken[part]));
    let bytes = size(taken["bytes"].as_u64().unwrap_or_default());
    format!(
        "backed up partition {partition} of {map} at LSN {lsn}: {rows} rows, {bytes} in {backup}"
    )
}

/// The partitions of a map, in the order of their routes.
fn ids(client: &Client, name: &str) -> Result<Vec<u64>> {
    let listed = map::partitions(client, Some(name), None)?;
    let ids = listed.as_array().into_iter().flatten().filter_map(|one| one["id"].as_u64());
    let ids: Vec<u64> = ids.collect();
    match ids.is_empty() {
        true => Err(Failure::failed(format!("the map {name} has no partitions"))),
        false => Ok(ids),
    }
}

fn take_one(client: &Client, id: u64, path: &str, shelf: &mut Shelf, quiet: bool) -> Result<Value> {
    let mut meter = Meter::new("backed up", "rows", quiet, Figures::default(), None);
    let mut stream = client.open(path)?;
    let mut seen = Seen::default();
    // The name contains the LSN, which is in the head of the backup.
    let (mut sink, mut before): (Option<Sink<'_>>, Vec<u8>) = (None, Vec::new());
    let mut shelf = Some(shelf);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = stream.read(&mut piece).map_err(|error| {
            Failure::failed(format!("the backup of partition {id} broke off: {error}"))
                .hint("the log of the server says why")
        })?;
        if count == 0 {
            break;
        }
        seen.push(&piece[..count])?;
        before.extend_from_slice(&piece[..count]);
        if let (None, Some(head)) = (&sink, &seen.head)
            && let Some(shelf) = shelf.take()
        {
            sink = Some(shelf.begin(&name(head))?);
        }
        if let Some(sink) = &mut sink {
            sink.write(&before)?;
            before.clear();
        }
        meter.show(Figures { items: seen.rows, bytes: seen.bytes });
    }
    meter.finish();
    let bytes = seen.bytes;
    let (head, totals) = seen.finish()?;
    let sink = sink.ok_or_else(|| Failure::failed("the backup has no head"))?;
    let mut taken = show_head(&sink.finish()?, &head);
    add_totals(&mut taken, &totals);
    taken["bytes"] = json!(bytes);
    Ok(taken)
}

/// The name of a backup: the map, the partition and the LSN.
fn name(head: &BackupHead) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '.' };
    let map: String = head.container.name.chars().map(plain).collect();
    format!("{map}-{}-{}{SUFFIX}", head.partition.0, head.lsn.0)
}
