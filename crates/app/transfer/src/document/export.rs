//! The rows of a query over a container as lines of JSON, or as rows of a CSV file.
//!
//! Rows are gathered as lines of JSON in `FILE.part`, page by page, and `FILE` appears only when all are there. The columns of a
//! CSV file are known only then, so it is made from those lines; the service is read once for either format.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::import::format_of;
use super::item::Item;
use super::service::{Asked, Service};
use super::{Export, Format, name_of, rows};
use crate::account::Account;
use crate::part::{cannot_write, create, open_part, rename};
use crate::progress::{Progress, beside};
use crate::table::is_standard;

/// Writes the items of a container to a file or to standard output.
pub fn export(account: &Arc<Account>, export: &Export, json: bool) -> Result<()> {
    let format = format_of(export.format, &export.file);
    let mut work = Work {
        asked: Asked::all(&export.place, &export.query),
        keeps_system: export.system,
        format,
        service: Service::new(account)?,
        progress: Progress::new(None, Value::Null),
        meter: Meter::new("exported", "items", export.quiet, Figures::default(), None),
        at: ExportPosition::default(),
    };
    if is_standard(&export.file) {
        if export.resume || export.overwrite {
            return Err(Failure::usage("standard output can be neither resumed nor overwritten"));
        }
        to_standard_output(&mut work)?;
    } else {
        let what = json!({
            "export": account.base(), "account": account.name, "container": export.place.shown(),
            "format": name_of(&format), "query": export.query, "system": export.system,
        });
        work.progress = Progress::new(Some(beside(&export.file, ".progress")), what);
        let done = to_file(&mut work, export);
        work.meter.finish();
        done.map_err(|failure| failure.maybe_hint(work.progress.hint()))?;
    }
    work.meter.finish();
    summary(&work, export, json);
    Ok(())
}

/// How far it is, as the progress file keeps it.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct ExportPosition {
    /// Where the next page begins, as the service said it; opaque to us.
    next: Option<String>,
    /// All pages are there.
    complete: bool,
    items: u64,
    /// Of the lines of JSON.
    bytes: u64,
}

struct Work {
    asked: Asked,
    keeps_system: bool,
    format: Format,
    service: Service,
    progress: Progress,
    meter: Meter,
    at: ExportPosition,
}

impl Work {
    /// Writes all that is left, page by page. `keep` makes what was written durable.
    fn pages<W: Write>(&mut self, out: &mut W, keep: fn(&mut W) -> io::Result<()>) -> Result<()> {
        while !self.at.complete {
            let page = self.service.page(&self.asked, self.at.next.as_deref())?;
            let mut lines = Vec::new();
            for row in &page.rows {
                lines.extend_from_slice(&self.line(row.get())?);
                lines.push(b'\n');
            }
            out.write_all(&lines).map_err(|error| cannot_write(&error))?;
            self.at.items += page.rows.len() as u64;
            self.at.bytes += lines.len() as u64;
            self.at.complete = page.next.is_none();
            self.at.next = page.next;
            if self.progress.is_due() || self.at.complete {
                keep(out).map_err(|error| cannot_write(&error))?;
                self.progress.save(json!(self.at))?;
            }
            self.meter.show(Figures { items: self.at.items, bytes: self.at.bytes });
        }
        Ok(())
    }

    fn line(&self, row: &str) -> Result<Vec<u8>> {
        match Item::parse(row.as_bytes()) {
            Ok(item) if self.keeps_system => Ok(item.text()),
            Ok(item) => Ok(item.plain().text()),
            // A query may give rows that are no objects.
            Err(_) if self.format == Format::Jsonl => Ok(row.as_bytes().to_vec()),
            Err(_) => {
                let message = "a row of the query is no object, and has no columns";
                Err(Failure::failed(message).hint("export with --format jsonl"))
            }
        }
    }
}

fn to_standard_output(work: &mut Work) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match work.format {
        Format::Jsonl => work.pages(&mut out, BufWriter::flush)?,
        Format::Csv => {
            // A file without a name is gone with this process, however it ends.
            let mut lines = tempfile::tempfile().map_err(|error| cannot_write(&error))?;
            work.pages(&mut lines, |_| Ok(()))?;
            rows::write(&lines, &mut out)?;
        }
    }
    out.flush().map_err(|error| cannot_write(&error))
}

fn to_file(work: &mut Work, export: &Export) -> Result<()> {
    let interrupted = work.progress.exists();
    if export.file.exists() && !export.overwrite && !(export.resume && interrupted) {
        let message = format!("{} already exists", export.file.display());
        return Err(Failure::failed(message).hint("replace it with --overwrite"));
    }
    if interrupted && !export.resume && !export.overwrite {
        let message = format!("an export to {} was interrupted", export.file.display());
        return Err(Failure::failed(message)
            .hint("continue with --resume, or start again with --overwrite"));
    }
    let kept = if export.resume { work.progress.read()? } else { None };
    work.at = kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default();
    let first = Figures { items: work.at.items, bytes: work.at.bytes };
    work.meter = Meter::new("exported", "items", export.quiet, first, None);
    let part = beside(&export.file, ".part");
    let mut lines = open_part(&part, work.at.bytes)?;
    work.progress.save(json!(work.at))?;
    if let Err(failure) = work.pages(&mut lines, |file| file.sync_data()) {
        if work.at.items == 0 {
            // There is nothing to resume.
            work.progress.remove()?;
            std::fs::remove_file(&part).map_err(|error| cannot_write(&error))?;
        }
        return Err(failure);
    }
    match work.format {
        Format::Jsonl => rename(&part, &export.file)?,
        Format::Csv => {
            let made = beside(&export.file, ".part.csv");
            let mut out = BufWriter::new(create(&made)?);
            rows::write(&lines, &mut out)?;
            let file = out.into_inner().map_err(|error| cannot_write(error.error()))?;
            file.sync_data().map_err(|error| cannot_write(&error))?;
            rename(&made, &export.file)?;
            std::fs::remove_file(&part).map_err(|error| cannot_write(&error))?;
        }
    }
    work.progress.remove()
}

fn summary(work: &Work, export: &Export, json: bool) {
    let (items, seconds) = (work.at.items, work.meter.elapsed().as_secs_f64());
    let (file, place) = (export.file.display().to_string(), export.place.shown());
    let answer = json!({ "container": place, "file": file, "items": items, "seconds": seconds });
    let sentence = format!("exported {items} items of {place}");
    match (is_standard(&export.file), json) {
        (false, _) => output::changed(json, &answer, || format!("{sentence} to {file}")),
        // Standard output holds the items themselves.
        (true, true) => eprintln!("{answer}"),
        (true, false) if export.quiet => {}
        (true, false) => eprintln!("{sentence}"),
    }
}
