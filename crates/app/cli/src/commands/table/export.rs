//! `lazuli table export`: the entities of a table as lines of JSON, or as rows of a CSV file.
//!
//! Entities are gathered as lines of JSON in `FILE.part`, page by page, and `FILE` appears only when all are there. The
//! columns of a CSV file are known only then, so it is made from those lines; the service is read once for either format.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::columns::Union;
use super::entity::properties;
use super::pages::{Continuation, Query};
use super::progress::{Progress, beside};
use super::{check_table, format_of, is_standard};
use crate::args::table::{Export, Format};
use crate::commands::remote::meter::{Figures, Meter};
use crate::commands::remote::place::{Place, Protocol};
use crate::commands::remote::session::Session;
use crate::failure::{Failure, Result};
use crate::output;

pub(super) fn run(export: &Export) -> Result<()> {
    check_table(&export.table)?;
    let place = Arc::new(Place::find(&export.service, Protocol::Tables)?);
    let format = format_of(export.format, &export.file);
    let mut work = Work {
        query: Query::of(export),
        session: Session::new(Arc::clone(&place))?,
        progress: Progress::new(None, Value::Null),
        meter: Meter::new("exported", "entities", export.quiet, Figures::default(), None),
        at: At::default(),
    };
    if is_standard(&export.file) {
        if export.resume || export.overwrite {
            return Err(Failure::usage("standard output can be neither resumed nor overwritten"));
        }
        to_standard_output(&mut work, format)?;
    } else {
        let what = json!({
            "export": place.base(), "account": place.account, "table": export.table,
            "format": format.name(), "filter": export.filter, "select": export.select,
        });
        work.progress = Progress::new(Some(beside(&export.file, ".progress")), what);
        let done = to_file(&mut work, export, format);
        work.meter.clear();
        done.map_err(|failure| match work.progress.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        })?;
    }
    work.meter.clear();
    summary(&work, export);
    Ok(())
}

/// How far it is.
#[derive(Debug, Default)]
struct At {
    next: Option<Continuation>,
    /// All pages are there.
    complete: bool,
    entities: u64,
    /// Of the lines of JSON.
    bytes: u64,
}

impl At {
    fn to_json(&self) -> Value {
        let next = self.next.as_ref().map(Continuation::to_json);
        let (entities, bytes) = (self.entities, self.bytes);
        json!({ "next": next, "complete": self.complete, "entities": entities, "bytes": bytes })
    }

    fn from_json(value: &Value) -> Self {
        Self {
            next: Continuation::from_json(&value["next"]),
            complete: value["complete"] == true,
            entities: value["entities"].as_u64().unwrap_or_default(),
            bytes: value["bytes"].as_u64().unwrap_or_default(),
        }
    }
}

struct Work {
    query: Query,
    session: Session,
    progress: Progress,
    meter: Meter,
    at: At,
}

impl Work {
    /// Writes all that is left, page by page. `keep` makes sure that what was written stays.
    fn pages<W: Write>(&mut self, out: &mut W, keep: fn(&mut W) -> io::Result<()>) -> Result<()> {
        while !self.at.complete {
            let (lines, count, next) = self.query.page(&mut self.session, self.at.next.as_ref())?;
            out.write_all(&lines).map_err(|error| cannot_write(&error))?;
            self.at.entities += count;
            self.at.bytes += lines.len() as u64;
            self.at.complete = next.is_none();
            self.at.next = next;
            if self.progress.is_due() || self.at.complete {
                keep(out).map_err(|error| cannot_write(&error))?;
                self.progress.save(self.at.to_json())?;
            }
            self.meter.show(Figures { items: self.at.entities, bytes: self.at.bytes });
        }
        Ok(())
    }
}

fn cannot_write(error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write: {error}"))
}

fn to_standard_output(work: &mut Work, format: Format) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format {
        Format::Jsonl => work.pages(&mut out, BufWriter::flush)?,
        Format::Csv => {
            let mut lines = nameless()?;
            work.pages(&mut lines, |_| Ok(()))?;
            rows(&lines, &mut out)?;
        }
    }
    out.flush().map_err(|error| cannot_write(&error))
}

/// A file that is gone with this process, however it ends.
fn nameless() -> Result<File> {
    let path = std::env::temp_dir().join(format!("lazuli-export-{}", std::process::id()));
    let cannot = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path).map_err(cannot)?;
    std::fs::remove_file(&path).map_err(cannot)?;
    Ok(file)
}

fn to_file(work: &mut Work, export: &Export, format: Format) -> Result<()> {
    let interrupted = work.progress.exists();
    if export.file.exists() && !export.overwrite && !(export.resume && interrupted) {
        let message = format!("{} is already there", export.file.display());
        return Err(Failure::failed(message).hint("replace it with --overwrite"));
    }
    if interrupted && !export.resume && !export.overwrite {
        let message = format!("an export to {} was interrupted", export.file.display());
        return Err(
            Failure::failed(message).hint("go on with --resume, or begin anew with --overwrite")
        );
    }
    let kept = if export.resume { work.progress.read()? } else { None };
    work.at = kept.as_ref().map(At::from_json).unwrap_or_default();
    let first = Figures { items: work.at.entities, bytes: work.at.bytes };
    work.meter = Meter::new("exported", "entities", export.quiet, first, None);
    let part = beside(&export.file, ".part");
    let mut lines = open_part(&part, work.at.bytes)?;
    work.progress.save(work.at.to_json())?;
    if let Err(failure) = work.pages(&mut lines, |file| file.sync_data()) {
        if work.at.entities == 0 {
            // There is nothing to go on with.
            work.progress.remove()?;
            std::fs::remove_file(&part).map_err(|error| cannot_write(&error))?;
        }
        return Err(failure);
    }
    match format {
        Format::Jsonl => rename(&part, &export.file)?,
        Format::Csv => {
            let made = beside(&export.file, ".part.csv");
            let file = create(&made)?;
            let mut out = BufWriter::new(file);
            rows(&lines, &mut out)?;
            let file = out.into_inner().map_err(|error| cannot_write(error.error()))?;
            file.sync_data().map_err(|error| cannot_write(&error))?;
            rename(&made, &export.file)?;
            std::fs::remove_file(&part).map_err(|error| cannot_write(&error))?;
        }
    }
    work.progress.remove()
}

fn create(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options.open(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// The lines that are already there, cut off behind the last page that the progress file knows.
fn open_part(path: &PathBuf, bytes: u64) -> Result<File> {
    if bytes == 0 {
        return create(path);
    }
    let cannot = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(cannot)?;
    if file.metadata().map_err(cannot)?.len() < bytes {
        let message = format!("{} is shorter than it was", path.display());
        return Err(Failure::failed(message).hint("begin anew with --overwrite"));
    }
    file.set_len(bytes).map_err(cannot)?;
    file.seek(SeekFrom::End(0)).map_err(cannot)?;
    Ok(file)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to)
        .map_err(|error| Failure::failed(format!("cannot make {}: {error}", to.display())))
}

/// Makes rows of lines: reads them once for the columns and once for the values.
fn rows(lines: &File, out: &mut impl Write) -> Result<()> {
    let mut union = Union::default();
    each_line(lines, |line| {
        let properties = properties(line).map_err(Failure::failed)?;
        if union.add(&properties) {
            return Ok(());
        }
        Err(Failure::failed("the entities have too many properties for the columns of one file")
            .hint("export them with --format jsonl"))
    })?;
    let mut row = Vec::new();
    union.write_header(&mut row);
    out.write_all(&row).map_err(|error| cannot_write(&error))?;
    each_line(lines, |line| {
        row.clear();
        union.write_row(&mut row, &properties(line).map_err(Failure::failed)?);
        out.write_all(&row).map_err(|error| cannot_write(&error))
    })
}

fn each_line(lines: &File, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let cannot =
        |error: io::Error| Failure::failed(format!("cannot read what was written: {error}"));
    let mut from = lines;
    from.seek(SeekFrom::Start(0)).map_err(cannot)?;
    let mut input = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        // These lines are our own, made of pages whose size is bounded.
        if input.read_until(b'\n', &mut line).map_err(cannot)? == 0 {
            return Ok(());
        }
        each(&line)?;
    }
}

fn summary(work: &Work, export: &Export) {
    let (entities, seconds) = (work.at.entities, work.meter.elapsed().as_secs_f64());
    let file = export.file.display().to_string();
    let table = &export.table;
    let answer = json!({ "table": table, "file": file, "entities": entities, "seconds": seconds });
    let sentence = format!("exported {entities} entities of {table}");
    let json = export.service.target.json;
    match (is_standard(&export.file), json) {
        (false, _) => output::changed(json, &answer, || format!("{sentence} to {file}")),
        // Standard output holds the entities themselves.
        (true, true) => eprintln!("{answer}"),
        (true, false) if export.quiet => {}
        (true, false) => eprintln!("{sentence}"),
    }
}
