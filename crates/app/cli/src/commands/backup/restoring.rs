//! `lazuli partition restore`: sends backups from files or blobs to the server, which restores them in the background.

use std::time::Duration;

use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

use super::source::Source;
use crate::args::backup::Restore;
use crate::client::Client;
use lazuli_console::output::size;
use lazuli_console::output::{self, cell};
use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result};

/// How often a restore is polled.
const LOOK: Duration = Duration::from_millis(100);

pub(in crate::commands) fn restore(wanted: &Restore) -> Result<()> {
    let target = &wanted.service.target;
    let client = Client::find(target)?;
    let mut all = Vec::new();
    for place in &wanted.backups {
        let source = Source::open(place, &wanted.service)?;
        let restored = restore_one(&client, source, wanted)?;
        if !target.json {
            output::line(&line(place, &restored));
        }
        all.push(restored);
    }
    if target.json {
        output::json(&json!({ "restores": all }));
    }
    Ok(())
}

fn line(place: &str, restored: &Value) -> String {
    let parts = ["rows", "map", "partitions"];
    let [rows, map, partitions] = parts.map(|part| cell(&restored[part]));
    let bytes = size(restored["bytes"].as_u64().unwrap_or_default());
    format!("restored {place} into {map}: {rows} rows, {bytes} in partition {partitions}")
}

fn restore_one(client: &Client, mut source: Source, wanted: &Restore) -> Result<Value> {
    let quiet = wanted.quiet || wanted.service.target.json;
    let into = percent_encode(wanted.into.as_deref().unwrap_or_default());
    let path = format!("/v1/restores?into={into}&replace={}", wanted.replace);
    let (place, size) = (source.place.clone(), source.size);
    let mut meter = Meter::new("sent", "backups", quiet, Figures::default(), Some(size));
    let sent = client.send_stream(&path, size, &mut source, |bytes| {
        meter.show(Figures { items: 0, bytes });
    });
    meter.finish();
    follow(client, &place, sent?, quiet)
}

/// Waits until the restore is over.
fn follow(client: &Client, place: &str, begun: Value, quiet: bool) -> Result<Value> {
    let number = begun["restore"].as_u64().unwrap_or_default();
    let total = begun["bytes_expected"].as_u64();
    let mut meter = Meter::new("restored", "rows", quiet, Figures::default(), total);
    let mut now = begun;
    loop {
        let figure = |name: &str| now[name].as_u64().unwrap_or_default();
        meter.show(Figures { items: figure("rows"), bytes: figure("bytes") });
        match now["phase"].as_str() {
            Some("done") => {
                meter.finish();
                return Ok(now);
            }
            Some("failed") => {
                meter.finish();
                let (code, message) = (cell(&now["error"]["code"]), cell(&now["error"]["message"]));
                let message = format!("{place} was not restored: {message} ({code})");
                return Err(Failure::failed(message).hint(
                    "its partitions stay offline until they are restored once more with this command",
                ));
            }
            _ => std::thread::sleep(LOOK),
        }
        now = client.get(&format!("/v1/restores/{number}"))?;
    }
}
