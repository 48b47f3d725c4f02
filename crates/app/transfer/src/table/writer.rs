//! Writes batches of entities: as a transaction, and where that is refused, one entity after another to find out which and
//! why.
//!
//! A batch has neighbours of one partition key, each entity once, within the limits of the service. An insert whose first
//! answer was lost, or that an interrupted import may have made, finds its own entity in the table. So in doubt an entity
//! that exists with the very same properties counts as written.

use std::collections::BTreeSet;
use std::sync::Arc;

use lazuli_console::Result;
use lazuli_http::multipart::{boundary, parts};

use super::Mode;
use super::entity::Entity;
use crate::frontier::{FilePosition, Step};
use crate::session::{Answered, Call, ServiceError, Session, is_passing};

/// The most operations of a transaction that the service takes.
const OPERATIONS_MAX: usize = 100;
/// The most bytes of a transaction that the service takes, but for what its frame needs.
const BYTES_MAX: usize = 4 * 1024 * 1024 - 64 * 1024;
/// What an operation takes beside its entity and its path: boundary, request line and headers.
const FRAME_BYTES: usize = 400;

const OUTER: &str = "batch_lazuli";
const INNER: &str = "changeset_lazuli";
const CONTENT_TYPE: &str = "multipart/mixed; boundary=batch_lazuli";

#[derive(Debug)]
pub(super) struct Item {
    pub(super) from: FilePosition,
    pub(super) to: FilePosition,
    pub(super) entity: Entity,
}

/// Entities of one partition key, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Batches are numbered in the order of the file.
    pub(super) number: u64,
    pub(super) items: Vec<Item>,
    rows: BTreeSet<String>,
    bytes: usize,
}

impl Batch {
    /// Adds an entity, or hands it back if it belongs into another batch.
    pub(super) fn add(&mut self, item: Item) -> std::result::Result<(), Item> {
        let entity = &item.entity;
        let keys = 6 * (entity.partition.len() + entity.row.len());
        let bytes = entity.body.len() + keys + FRAME_BYTES;
        let fits = match self.items.first() {
            None => true,
            Some(first) => {
                first.entity.partition == entity.partition
                    && self.items.len() < OPERATIONS_MAX
                    && self.bytes + bytes <= BYTES_MAX
                    && !self.rows.contains(&entity.row)
            }
        };
        if !fits {
            return Err(item);
        }
        self.bytes += bytes;
        self.rows.insert(entity.row.clone());
        self.items.push(item);
        Ok(())
    }

    /// The body of the transaction. `base` is the address of the account.
    pub(super) fn body(&self, base: &str, table: &str, mode: Mode) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes + FRAME_BYTES);
        let begin = format!("--{OUTER}\r\nContent-Type: multipart/mixed; boundary={INNER}\r\n\r\n");
        out.extend_from_slice(begin.as_bytes());
        for item in &self.items {
            let (method, path) = operation(&item.entity, table, mode);
            let head = format!(
                "--{INNER}\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\n\r\n{method} {base}{path} HTTP/1.1\r\n\
                 Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n\
                 Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n"
            );
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&item.entity.body);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("--{INNER}--\r\n--{OUTER}--\r\n").as_bytes());
        out
    }
}

/// Method and path that write an entity.
fn operation(entity: &Entity, table: &str, mode: Mode) -> (&'static str, String) {
    match mode {
        Mode::Insert => ("POST", format!("/{table}")),
        Mode::Replace => ("PUT", entity.path(table)),
        Mode::Merge => ("PATCH", entity.path(table)),
    }
}

/// Parts of a transaction's answer: one for each operation, and room for a refusal.
const ANSWER_PARTS_MAX: usize = 128;

/// What an import does with every batch.
#[derive(Debug)]
pub(super) struct Order {
    /// The address of the account.
    pub(super) base: String,
    pub(super) table: String,
    pub(super) mode: Mode,
    pub(super) skip_errors: bool,
    /// The import was interrupted before, and what it had under way may have been done.
    pub(super) in_doubt: bool,
}

/// The outcome of a batch.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) batch: Batch,
    pub(super) step: Step,
    /// Lines that were left out, and why.
    pub(super) skipped: Vec<(u64, String)>,
    /// The line that the import ends at, and why.
    pub(super) failure: Option<(u64, String)>,
}

pub(super) struct Writer {
    pub(super) session: Session,
    pub(super) order: Arc<Order>,
}

impl Writer {
    pub(super) fn write(&mut self, batch: Batch) -> Outcome {
        let written =
            if batch.items.len() > 1 { self.transaction(&batch) } else { Ok(Some(false)) };
        let (first, last) = match batch.items.as_slice() {
            [first, .., last] => (first, last),
            [only] => (only, only),
            [] => return outcome(batch, FilePosition { offset: 0, line: 1 }, 0, Vec::new(), None),
        };
        match written {
            Ok(None) => {
                let (to, count) = (last.to, batch.items.len() as u64);
                outcome(batch, to, count, Vec::new(), None)
            }
            Ok(Some(in_doubt)) => self.one_by_one(batch, in_doubt),
            Err(failure) => {
                let (from, line) = (first.from, first.from.line);
                outcome(batch, from, 0, Vec::new(), Some((line, failure.reason())))
            }
        }
    }

    /// Writes all or nothing. If it was refused, says whether an earlier attempt may have been carried out.
    fn transaction(&mut self, batch: &Batch) -> Result<Option<bool>> {
        let body = batch.body(&self.order.base, &self.order.table, self.order.mode);
        let call = Call { content_type: CONTENT_TYPE, body: &body, ..Call::new("POST", "/$batch") };
        let Answered { answer, in_doubt } = self.session.ask(call)?;
        let kind = answer.header("content-type").unwrap_or_default();
        let done = answer.status == 202 && all_made(kind, &answer.body) == Some(batch.items.len());
        Ok((!done).then_some(in_doubt))
    }

    fn one_by_one(&mut self, batch: Batch, in_doubt: bool) -> Outcome {
        let (mut written, mut skipped, mut to) = (0, Vec::new(), None);
        for item in &batch.items {
            let line = item.from.line;
            let stop = match self.single(item, in_doubt) {
                Ok(None) => None,
                Ok(Some(refusal)) if self.order.skip_errors && !concerns_all(&refusal) => {
                    skipped.push((line, refusal.sentence()));
                    to = Some(item.to);
                    continue;
                }
                Ok(Some(refusal)) => Some(refusal.sentence()),
                Err(failure) => Some(failure.reason()),
            };
            if let Some(reason) = stop {
                let from = item.from;
                return outcome(batch, from, written, skipped, Some((line, reason)));
            }
            written += 1;
            to = Some(item.to);
        }
        let to = to.unwrap_or(FilePosition { offset: 0, line: 1 });
        outcome(batch, to, written, skipped, None)
    }

    /// Writes one entity, and says why not.
    fn single(&mut self, item: &Item, in_doubt: bool) -> Result<Option<ServiceError>> {
        let (method, path) = operation(&item.entity, &self.order.table, self.order.mode);
        let call = Call { body: &item.entity.body, ..Call::new(method, &path) };
        let Answered { answer, in_doubt: lost } = self.session.ask(call)?;
        if (200..300).contains(&answer.status) {
            return Ok(None);
        }
        let refusal = ServiceError::of(&answer);
        let in_doubt = in_doubt || lost || self.order.in_doubt;
        if in_doubt && refusal.code == "EntityAlreadyExists" {
            let path = item.entity.path(&self.order.table);
            let there = self.session.ask(Call::new("GET", &path))?.answer;
            if there.status == 200 && item.entity.is_same(&there.body) {
                return Ok(None);
            }
        }
        Ok(Some(refusal))
    }
}

fn outcome(
    batch: Batch,
    to: FilePosition,
    written: u64,
    skipped: Vec<(u64, String)>,
    failure: Option<(u64, String)>,
) -> Outcome {
    let step = Step { to, written, skipped: skipped.len() as u64, whole: failure.is_none() };
    Outcome { batch, step, skipped, failure }
}

/// How many operations a transaction's answer says were made, if none was refused.
fn all_made(content_type: &str, body: &[u8]) -> Option<usize> {
    let outer = parts(body, boundary(content_type).ok()?, 1).ok()?;
    let part = outer.first()?;
    let inner = boundary(part.header("content-type")?).ok()?;
    let answers = parts(part.body, inner, ANSWER_PARTS_MAX).ok()?;
    let made = |body: &[u8]| body.trim_ascii_start().starts_with(b"HTTP/1.1 2");
    answers.iter().all(|answer| made(answer.body)).then_some(answers.len())
}

/// Whether every other entity would be refused for the same reason.
fn concerns_all(refusal: &ServiceError) -> bool {
    let gone = matches!(refusal.code.as_str(), "TableNotFound" | "TableBeingDeleted");
    gone || matches!(refusal.status, 401 | 403) || is_passing(refusal.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_only_if_nothing_in_it_was_refused() {
        let answer = |statuses: &[&str]| {
            let mut body = "--o\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n".to_owned();
            for status in statuses {
                let head = "Content-Type: application/http\r\n\r\n";
                body.push_str(&format!("--i\r\n{head}HTTP/1.1 {status}\r\nETag: x\r\n\r\n\r\n"));
            }
            body.push_str("--i--\r\n--o--\r\n");
            all_made("multipart/mixed; boundary=o", body.as_bytes())
        };
        assert_eq!(answer(&["204 No Content", "201 Created"]), Some(2));
        assert_eq!(answer(&["204 No Content", "409 Conflict"]), None);
        assert_eq!(all_made("application/json", b"{}"), None);
    }

    fn item(partition: &str, row: &str, bytes: usize) -> Item {
        let position = FilePosition { offset: 0, line: 1 };
        let body = vec![b' '; bytes];
        let entity = Entity { partition: partition.to_owned(), row: row.to_owned(), body };
        Item { from: position, to: position, entity }
    }

    #[test]
    fn a_batch_ends_with_its_partition_its_limits_or_the_same_entity() {
        let mut batch = Batch::default();
        batch.add(item("p", "1", 10)).unwrap();
        assert!(batch.add(item("q", "2", 10)).is_err());
        assert!(batch.add(item("p", "1", 10)).is_err());
        assert!(batch.add(item("p", "2", BYTES_MAX)).is_err());
        for row in 2..=OPERATIONS_MAX {
            batch.add(item("p", &row.to_string(), 10)).unwrap();
        }
        assert!(batch.add(item("p", "101", 10)).is_err());
        let mut huge = Batch::default();
        huge.add(item("p", "1", 2 * BYTES_MAX)).unwrap();
        assert!(huge.add(item("p", "2", 1)).is_err());
    }

    #[test]
    fn the_frame_is_no_larger_than_was_reckoned() {
        let key = "ä'".repeat(200);
        let mut batch = Batch::default();
        for row in 0..OPERATIONS_MAX {
            batch.add(item(&key, &format!("{row}{key}"), 5)).unwrap();
        }
        let base = format!("https://{}.table.core.windows.net", "x".repeat(24));
        let table = "t".repeat(63);
        let body = batch.body(&base, &table, Mode::Merge);
        assert!(body.len() < batch.bytes + 64 * 1024, "{} {}", body.len(), batch.bytes);
    }
}
