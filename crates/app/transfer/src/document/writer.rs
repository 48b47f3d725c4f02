//! Writes batches of items: neighbours of one partition key in one request, and one item after another where that is refused, to
//! find out which and why.
//!
//! A create whose first answer was lost, or that an interrupted import may have made, finds its own item in the container. So
//! in doubt an item that exists and is the same counts as written.

use std::collections::BTreeSet;
use std::sync::Arc;

use lazuli_console::Result;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Mode;
use super::item::Item;
use super::service::{KEY_HEADER, Place, Service, read};
use crate::frontier::{FilePosition, Step};
use crate::session::{Call, ServiceError};

/// The most operations of a request that the service takes.
const OPERATIONS_MAX: usize = 100;
/// The most bytes of a request that the service takes, but for what its frame needs.
const BYTES_MAX: usize = 1_900_000;
/// What an operation takes beside its item.
const FRAME_BYTES: usize = 64;

/// An item of the file with its partition key.
#[derive(Debug)]
pub(super) struct Keyed {
    pub(super) from: FilePosition,
    pub(super) to: FilePosition,
    pub(super) key: String,
    pub(super) id: String,
    pub(super) body: Vec<u8>,
}

/// Items of one partition key, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) items: Vec<Keyed>,
    ids: BTreeSet<String>,
    bytes: usize,
}

impl Batch {
    /// Adds an item, or hands it back if it belongs into another batch.
    pub(super) fn add(&mut self, item: Keyed) -> std::result::Result<(), Keyed> {
        let bytes = item.body.len() + FRAME_BYTES;
        let fits = self.items.first().is_none_or(|first| {
            first.key == item.key
                && self.items.len() < OPERATIONS_MAX
                && self.bytes + bytes <= BYTES_MAX
                && !self.ids.contains(&item.id)
        });
        if !fits {
            return Err(item);
        }
        self.bytes += bytes;
        self.ids.insert(item.id.clone());
        self.items.push(item);
        Ok(())
    }

    fn body(&self, mode: Mode) -> Vec<u8> {
        let verb = match mode {
            Mode::Create => "Create",
            Mode::Upsert => "Upsert",
        };
        let mut out = vec![b'['];
        for (nth, item) in self.items.iter().enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            let head = format!("{{\"operationType\":\"{verb}\",\"resourceBody\":");
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&item.body);
            out.push(b'}');
        }
        out.push(b']');
        out
    }
}

/// What an import does with every batch.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) place: Place,
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
    pub(super) skipped: Vec<(u64, String)>,
    pub(super) failure: Option<(u64, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    status_code: u16,
}

pub(super) struct Writer {
    pub(super) service: Service,
    pub(super) order: Arc<Order>,
}

impl Writer {
    pub(super) fn write(&mut self, batch: Batch) -> Outcome {
        let done = match batch.items.len() {
            0 | 1 => vec![false; batch.items.len()],
            _ => self.together(&batch),
        };
        let start = batch.items.first().map_or(FilePosition { offset: 0, line: 1 }, |it| it.from);
        let mut step = Step { to: start, written: 0, skipped: 0, whole: true };
        let (mut skipped, mut failure) = (Vec::new(), None);
        for (item, is_done) in batch.items.iter().zip(done) {
            let written = if is_done { Ok(()) } else { self.one(item) };
            match written {
                Ok(()) => step.written += 1,
                Err(reason) if self.order.skip_errors => {
                    step.skipped += 1;
                    skipped.push((item.from.line, reason));
                }
                Err(reason) => {
                    step.whole = false;
                    failure = Some((item.from.line, reason));
                    break;
                }
            }
            step.to = item.to;
        }
        Outcome { batch, step, skipped, failure }
    }

    /// Sends all of a batch in one request, and says which of its items were written. What was not is sent again alone.
    fn together(&mut self, batch: &Batch) -> Vec<bool> {
        let sent = self.try_together(batch).unwrap_or_default();
        (0..batch.items.len()).map(|nth| sent.get(nth).copied().unwrap_or(false)).collect()
    }

    fn try_together(&mut self, batch: &Batch) -> Result<Vec<bool>> {
        let Some(first) = batch.items.first() else { return Ok(Vec::new()) };
        let path = format!("{}/docs", self.order.place.path());
        let headers = [
            (KEY_HEADER, first.key.as_str()),
            ("x-ms-cosmos-is-batch-request", "True"),
            ("x-ms-cosmos-batch-atomic", "False"),
            ("x-ms-cosmos-batch-continue-on-error", "True"),
        ];
        let body = batch.body(self.order.mode);
        let call = Call { headers: &headers, body: &body, ..Call::new("POST", &path) };
        let answer = self.service.session.ask(call)?.answer;
        if !(200..300).contains(&answer.status) {
            return Ok(Vec::new());
        }
        let all: Vec<Box<RawValue>> = read(&answer.body)?;
        let done = |one: &RawValue| {
            let done = serde_json::from_str::<Done>(one.get());
            done.is_ok_and(|done| (200..300).contains(&done.status_code))
        };
        Ok(all.iter().map(|one| done(one)).collect())
    }

    fn one(&mut self, item: &Keyed) -> std::result::Result<(), String> {
        let text = |failure: lazuli_console::Failure| failure.to_string();
        let (place, upserts) = (&self.order.place, self.order.mode == Mode::Upsert);
        let sent = self.service.put(place, &item.key, &item.body, upserts).map_err(text)?;
        let error = ServiceError::of(&sent.answer);
        match sent.answer.status {
            200..=299 => Ok(()),
            409 if sent.in_doubt || self.order.in_doubt => {
                let found = self.service.item(place, &item.key, &item.id).map_err(text)?;
                let ours = Item::parse(&item.body)?;
                match found {
                    Some(found) if found.is_same(&ours) => Ok(()),
                    _ => Err(error.sentence()),
                }
            }
            _ => Err(error.sentence()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(key: &str, id: &str) -> Keyed {
        let at = FilePosition { offset: 0, line: 1 };
        let body = format!("{{\"id\":\"{id}\"}}").into_bytes();
        Keyed { from: at, to: at, key: key.to_owned(), id: id.to_owned(), body }
    }

    #[test]
    fn a_batch_has_one_key_and_each_id_once() {
        let mut batch = Batch::default();
        assert!(batch.add(keyed("[1]", "a")).is_ok() && batch.add(keyed("[1]", "b")).is_ok());
        assert!(batch.add(keyed("[1]", "a")).is_err() && batch.add(keyed("[2]", "c")).is_err());
        let text = String::from_utf8(batch.body(Mode::Upsert)).unwrap();
        let one = r#"{"operationType":"Upsert","resourceBody":{"id":"a"}}"#;
        assert!(text.starts_with(&format!("[{one},")) && text.ends_with("}]"), "{text}");
        for id in 2..OPERATIONS_MAX {
            assert!(batch.add(keyed("[1]", &id.to_string())).is_ok());
        }
        assert!(batch.add(keyed("[1]", "one more")).is_err());
    }
}
