//! The audit log of a fleet: records of the catalog, so that every node shows the changes that any node was asked for. Each
//! has a number above all before it and names its node. The oldest are given up.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_shardmap::MapReason;
use lazuli_shardmap::catalog::{Catalog, Expected, RecordWrite, kinds};
use lazuli_store::{KeyRange, Result};
use serde_json::{Map, Value, json};

/// The most changes that are kept.
const CHANGES_MAX: u64 = 20_000;

pub(super) struct Rows {
    catalog: Arc<Catalog>,
    /// What this node is called, and which run of it this is.
    node: String,
}

/// The newest has the lowest key.
fn key(number: u64) -> Bytes {
    Bytes::copy_from_slice(&(u64::MAX - number).to_be_bytes())
}

impl Rows {
    pub(super) fn new(catalog: Arc<Catalog>, node: String) -> Self {
        Self { catalog, node }
    }

    /// Writes a line: the first one of a change, which gets a number by it, or the last one of the change with this number.
    pub(super) async fn append(
        &self,
        number: Option<u64>,
        mut line: Map<String, Value>,
    ) -> Result<u64> {
        line.insert("node".to_owned(), json!(self.node));
        if let Some(number) = number {
            return self.put(number, line, Expected::Anything).await;
        }
        loop {
            let (newest, _) = self.newest(None, 1).await?;
            let last = newest.first().and_then(|line| line["number"].as_u64()).unwrap_or(0);
            match self.put(last + 1, line.clone(), Expected::Nothing).await {
                // Another node was faster, and there is a change more by that.
                Err(error) if error.is(MapReason::RecordExists) => {}
                written => return written,
            }
        }
    }

    async fn put(
        &self,
        number: u64,
        mut line: Map<String, Value>,
        expected: Expected,
    ) -> Result<u64> {
        line.insert("number".to_owned(), json!(number));
        let value = Some(Value::Object(line).to_string().into());
        let mut writes =
            vec![RecordWrite { kind: kinds::AUDIT, key: key(number), expected, value }];
        if let Some(oldest) = number.checked_sub(CHANGES_MAX) {
            let (key, expected) = (key(oldest), Expected::Anything);
            writes.push(RecordWrite { kind: kinds::AUDIT, key, expected, value: None });
        }
        self.catalog.write_records(&writes).await?;
        Ok(number)
    }

    /// The newest changes with numbers below `before`, the newest first, and whether there are older ones.
    pub(super) async fn newest(
        &self,
        before: Option<u64>,
        most: usize,
    ) -> Result<(Vec<Value>, bool)> {
        let start = before.map_or_else(Bytes::new, |before| key(before.saturating_sub(1)));
        let range = KeyRange::new(start, None);
        let mut rows = self.catalog.scan_records(kinds::AUDIT, &range, most + 1).await?;
        let more = rows.len() > most;
        rows.truncate(most);
        let line = |value: Bytes| serde_json::from_slice(&value).unwrap_or(Value::Null);
        Ok((rows.into_iter().map(|row| line(row.value)).collect(), more))
    }
}
