//! `lazuli backup show|verify`: reads backups without restoring them.

use std::io::Read;

use lazuli_engine::backup::{BackupHead, BackupParser, BackupPart, BackupTotals};
use serde_json::{Value, json};

use super::source::Source;
use super::{add_totals, refused, show_head};
use crate::args::service::Service;
use lazuli_console::output::{self, cell};
use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result};

/// How much is read at once.
const PIECE_BYTES: usize = 256 * 1024;

pub(super) fn show(place: &str, service: &Service) -> Result<()> {
    let mut source = Source::open(place, service)?;
    let mut seen = Seen::default();
    while seen.head.is_none() && seen.read(&mut source)? > 0 {}
    let Some(head) = seen.head else {
        return seen.finish().map(drop);
    };
    let mut shown = show_head(place, &head);
    shown["bytes"] = json!(source.size);
    if service.target.json {
        output::json(&shown);
        return Ok(());
    }
    for (name, value) in shown.as_object().into_iter().flatten() {
        output::line(&format!("{name:<10} {}", cell(value)));
    }
    Ok(())
}

pub(super) fn verify(places: &[String], quiet: bool, service: &Service) -> Result<()> {
    let mut all = Vec::new();
    for place in places {
        let mut source = Source::open(place, service)?;
        let (quiet, total) = (quiet || service.target.json, Some(source.size));
        let mut meter = Meter::new("verified", "rows", quiet, Figures::default(), total);
        let mut seen = Seen::default();
        while seen.read(&mut source).map_err(|failure| at(place, failure))? > 0 {
            meter.show(Figures { items: seen.rows, bytes: seen.bytes });
        }
        meter.finish();
        let (head, totals) = seen.finish().map_err(|failure| at(place, failure))?;
        let mut shown = show_head(place, &head);
        add_totals(&mut shown, &totals);
        shown["bytes"] = json!(source.size);
        all.push(shown);
    }
    output::changed(service.target.json, &json!({ "backups": all }), || {
        let line = |shown: &Value| {
            let parts = ["backup", "map", "partition", "lsn", "rows", "files"];
            let [backup, map, partition, lsn, rows, files] = parts.map(|part| cell(&shown[part]));
            format!(
                "{backup} is whole: partition {partition} of {map} at LSN {lsn}, \
                 {rows} rows, {files} files"
            )
        };
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}

fn at(place: &str, failure: Failure) -> Failure {
    Failure::failed(format!("{place}: {}", failure.reason()))
}

/// A backup as far as it was read.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) head: Option<BackupHead>,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    parser: BackupParser,
}

impl Seen {
    /// Reads the next piece and returns its length; 0 at the end.
    fn read(&mut self, source: &mut Source) -> Result<usize> {
        let mut piece = vec![0; PIECE_BYTES];
        let read = source.read(&mut piece);
        let count = read.map_err(|error| Failure::failed(format!("cannot be read: {error}")))?;
        self.push(&piece[..count])?;
        Ok(count)
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.parser.push(bytes);
        while let Some(part) = self.parser.next_part().map_err(|error| refused(&error))? {
            match part {
                BackupPart::Head(head) => self.head = Some(*head),
                BackupPart::Rows(rows) => self.rows += rows.len() as u64,
                BackupPart::File { .. } | BackupPart::Piece(_) | BackupPart::End(_) => {}
            }
        }
        Ok(())
    }

    /// Its head and totals, if it was complete.
    pub(super) fn finish(self) -> Result<(BackupHead, BackupTotals)> {
        let totals = self.parser.finish().map_err(|error| refused(&error))?;
        let head = self.head.ok_or_else(|| Failure::failed("it has no head"))?;
        Ok((head, totals))
    }
}
