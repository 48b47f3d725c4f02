//! The entities of a table as lines of JSON, or as rows of a CSV file.
//!
//! Entities are gathered as lines of JSON in `FILE.part`, page by page, and `FILE` appears only when all are there. The
//! columns of a CSV file are known only then, so it is made from those lines; the service is read once for either format.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use lazuli_http::client::blocking::Answer;
use lazuli_http::uri::percent_encode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::columns::Union;
use super::entity::{PARTITION_KEY, ROW_KEY, object, properties};
use super::{Export, Format, format_of, is_standard, name_of};
use crate::account::Account;
use crate::part::{cannot_write, create, each_line, open_part, rename};
use crate::progress::{Progress, beside};
use crate::session::{Call, Session};

/// Writes the entities of a table to a file or to standard output.
pub fn export(account: &Arc<Account>, export: &Export, json: bool) -> Result<()> {
    let format = format_of(export.format, &export.file);
    let mut work = Work {
        query: Query::of(export),
        session: Session::new(Arc::clone(account))?,
        progress: Progress::new(None, Value::Null),
        meter: Meter::new("exported", "entities", export.quiet, Figures::default(), None),
        at: ExportPosition::default(),
    };
    if is_standard(&export.file) {
        if export.resume || export.overwrite {
            return Err(Failure::usage("standard output can be neither resumed nor overwritten"));
        }
        to_standard_output(&mut work, format)?;
    } else {
        let what = json!({
            "export": account.base(), "account": account.name, "table": export.table,
            "format": name_of(&format), "filter": export.filter, "select": export.select,
        });
        work.progress = Progress::new(Some(beside(&export.file, ".progress")), what);
        let done = to_file(&mut work, export, format);
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
    next: Option<Continuation>,
    /// All pages are there.
    complete: bool,
    entities: u64,
    /// Of the lines of JSON.
    bytes: u64,
}

struct Work {
    query: Query,
    session: Session,
    progress: Progress,
    meter: Meter,
    at: ExportPosition,
}

impl Work {
    /// Writes all that is left, page by page. `keep` makes what was written durable.
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
                self.progress.save(json!(self.at))?;
            }
            self.meter.show(Figures { items: self.at.entities, bytes: self.at.bytes });
        }
        Ok(())
    }
}

fn to_standard_output(work: &mut Work, format: Format) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format {
        Format::Jsonl => work.pages(&mut out, BufWriter::flush)?,
        Format::Csv => {
            // A file without a name is gone with this process, however it ends.
            let mut lines = tempfile::tempfile().map_err(|error| cannot_write(&error))?;
            work.pages(&mut lines, |_| Ok(()))?;
            rows(&lines, &mut out)?;
        }
    }
    out.flush().map_err(|error| cannot_write(&error))
}

fn to_file(work: &mut Work, export: &Export, format: Format) -> Result<()> {
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
    let first = Figures { items: work.at.entities, bytes: work.at.bytes };
    work.meter = Meter::new("exported", "entities", export.quiet, first, None);
    let part = beside(&export.file, ".part");
    let mut lines = open_part(&part, work.at.bytes)?;
    work.progress.save(json!(work.at))?;
    if let Err(failure) = work.pages(&mut lines, |file| file.sync_data()) {
        if work.at.entities == 0 {
            // There is nothing to resume.
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

fn summary(work: &Work, export: &Export, json: bool) {
    let (entities, seconds) = (work.at.entities, work.meter.elapsed().as_secs_f64());
    let file = export.file.display().to_string();
    let table = &export.table;
    let answer = json!({ "table": table, "file": file, "entities": entities, "seconds": seconds });
    let sentence = format!("exported {entities} entities of {table}");
    match (is_standard(&export.file), json) {
        (false, _) => output::changed(json, &answer, || format!("{sentence} to {file}")),
        // Standard output holds the entities themselves.
        (true, true) => eprintln!("{answer}"),
        (true, false) if export.quiet => {}
        (true, false) => eprintln!("{sentence}"),
    }
}

/// Where the next page begins, as the service said it; opaque to us.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Continuation {
    partition: String,
    row: Option<String>,
}

impl Continuation {
    fn of(answer: &Answer) -> Option<Self> {
        let header = |name: &str| answer.header(name).map(str::to_owned);
        let partition = header("x-ms-continuation-NextPartitionKey")?;
        Some(Self { partition, row: header("x-ms-continuation-NextRowKey") })
    }
}

/// What is asked for on every page.
struct Query {
    path: String,
    text: String,
}

impl Query {
    fn of(export: &Export) -> Self {
        let mut parts = Vec::new();
        if let Some(filter) = &export.filter {
            parts.push(format!("$filter={}", percent_encode(filter)));
        }
        if !export.select.is_empty() {
            // Without its keys an entity could never be written again.
            let mut names = vec![PARTITION_KEY, ROW_KEY];
            names.extend(export.select.iter().map(|name| name.trim()));
            names.dedup();
            parts.push(format!("$select={}", percent_encode(&names.join(","))));
        }
        Self { path: format!("/{}()", export.table), text: parts.join("&") }
    }

    /// The lines of one page, how many they are, and where the next page begins.
    fn page(
        &self,
        session: &mut Session,
        from: Option<&Continuation>,
    ) -> Result<(Vec<u8>, u64, Option<Continuation>)> {
        let mut parts: Vec<String> = Vec::new();
        parts.extend((!self.text.is_empty()).then(|| self.text.clone()));
        if let Some(from) = from {
            parts.push(format!("NextPartitionKey={}", percent_encode(&from.partition)));
            let row = from.row.as_deref();
            parts.extend(row.map(|row| format!("NextRowKey={}", percent_encode(row))));
        }
        let answer =
            session.expect(Call { query: &parts.join("&"), ..Call::new("GET", &self.path) })?;
        let (lines, count) = lines(&answer.body)?;
        Ok((lines, count, Continuation::of(&answer)))
    }
}

fn lines(body: &[u8]) -> Result<(Vec<u8>, u64)> {
    let wrong = |what: String| Failure::failed(format!("the service answered with {what}"));
    let no_page = |error: serde_json::Error| wrong(format!("no page: {error}"));
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).map_err(no_page)?;
    let list = members.get("value").map_or("null", |list| list.get());
    let entities: Vec<&RawValue> = serde_json::from_str(list).map_err(no_page)?;
    let mut out = Vec::with_capacity(body.len());
    for entity in &entities {
        let properties = properties(entity.get().as_bytes())
            .map_err(|reason| wrong(format!("an entity that cannot be read: {reason}")))?;
        out.extend_from_slice(&object(&properties));
        out.push(b'\n');
    }
    Ok((out, entities.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_lines_that_keep_order_and_types() {
        let page = br#"{"odata.metadata":"x","value":[{"odata.etag":"e","PartitionKey":"p","RowKey":"\n",
            "Z":1.0,"A@odata.type":"Edm.Int64","A":"1","N":null},{"PartitionKey":"q","RowKey":""}]}"#;
        let (text, count) = lines(page).unwrap();
        let expected = "{\"PartitionKey\":\"p\",\"RowKey\":\"\\n\",\
                        \"Z@odata.type\":\"Edm.Double\",\"Z\":1.0,\
                        \"A@odata.type\":\"Edm.Int64\",\"A\":\"1\"}\n\
                        {\"PartitionKey\":\"q\",\"RowKey\":\"\"}\n";
        assert_eq!((String::from_utf8(text).unwrap().as_str(), count), (expected, 2));
        assert!(lines(b"<html>").is_err());
    }

    #[test]
    fn continuations_survive_the_progress_file() {
        for row in [None, Some("r".to_owned())] {
            let one = Continuation { partition: "1!a".to_owned(), row };
            assert_eq!(serde_json::from_value::<Continuation>(json!(one)).unwrap(), one);
        }
        assert!(serde_json::from_value::<Continuation>(Value::Null).is_err());
    }
}
