//! Entities gathered into transactions: neighbours of one partition key, each entity once, within the service's limits.

use std::collections::BTreeSet;

use super::entity::Entity;
use super::source::Place;
use crate::args::table::Mode;

/// The most operations of a transaction that the service takes.
const OPERATIONS_MAX: usize = 100;
/// The most bytes of a transaction that the service takes, but for what its frame needs.
const BYTES_MAX: usize = 4 * 1024 * 1024 - 64 * 1024;
/// What an operation takes beside its entity and its path: boundary, request line and headers.
const FRAME_BYTES: usize = 400;

const OUTER: &str = "batch_lazuli";
const INNER: &str = "changeset_lazuli";
pub(super) const CONTENT_TYPE: &str = "multipart/mixed; boundary=batch_lazuli";

#[derive(Debug)]
pub(super) struct Item {
    pub(super) from: Place,
    pub(super) to: Place,
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
    pub(super) fn add(&mut self, item: Item) -> Result<(), Item> {
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
pub(super) fn operation(entity: &Entity, table: &str, mode: Mode) -> (&'static str, String) {
    match mode {
        Mode::Insert => ("POST", format!("/{table}")),
        Mode::Replace => ("PUT", entity.path(table)),
        Mode::Merge => ("PATCH", entity.path(table)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(partition: &str, row: &str, bytes: usize) -> Item {
        let place = Place { offset: 0, line: 1 };
        let body = vec![b' '; bytes];
        let entity = Entity { partition: partition.to_owned(), row: row.to_owned(), body };
        Item { from: place, to: place, entity }
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
