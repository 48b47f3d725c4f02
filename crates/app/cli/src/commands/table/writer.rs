//! Writes batches: as a transaction, and where that is refused, one entity after another to find out which and why.
//!
//! An insert whose first answer got lost, or that an interrupted import may have made, finds its own entity there. So
//! in doubt an entity that is there with the very same properties counts as written.

use std::sync::Arc;

use lazuli_http::multipart::{boundary, parts};

use super::batch::{Batch, CONTENT_TYPE, Item, operation};
use super::frontier::Step;
use super::source::Place;
use crate::args::table::Mode;
use crate::commands::remote::session::{Answered, Ask, Refusal, Session, is_passing};
use crate::failure::Result;

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

/// What became of a batch.
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
            [] => return outcome(batch, Place { offset: 0, line: 1 }, 0, Vec::new(), None),
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
        let ask = Ask { content_type: CONTENT_TYPE, body: &body, ..Ask::new("POST", "/$batch") };
        let Answered { answer, in_doubt } = self.session.ask(ask)?;
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
        let to = to.unwrap_or(Place { offset: 0, line: 1 });
        outcome(batch, to, written, skipped, None)
    }

    /// Writes one entity, and says why not.
    fn single(&mut self, item: &Item, in_doubt: bool) -> Result<Option<Refusal>> {
        let (method, path) = operation(&item.entity, &self.order.table, self.order.mode);
        let ask = Ask { body: &item.entity.body, ..Ask::new(method, &path) };
        let Answered { answer, in_doubt: lost } = self.session.ask(ask)?;
        if (200..300).contains(&answer.status) {
            return Ok(None);
        }
        let refusal = Refusal::of(&answer);
        let in_doubt = in_doubt || lost || self.order.in_doubt;
        if in_doubt && refusal.code == "EntityAlreadyExists" {
            let path = item.entity.path(&self.order.table);
            let there = self.session.ask(Ask::new("GET", &path))?.answer;
            if there.status == 200 && item.entity.is_same(&there.body) {
                return Ok(None);
            }
        }
        Ok(Some(refusal))
    }
}

fn outcome(
    batch: Batch,
    to: Place,
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
fn concerns_all(refusal: &Refusal) -> bool {
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
}
