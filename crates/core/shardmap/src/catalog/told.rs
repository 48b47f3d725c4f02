//! Figures that nodes tell each other: numbered rows under the id of a node, the last few of each.
//!
//! They have no head and no log. A node writes only its own, guarded by its own row, so it waits for nobody, and a node that
//! others have removed writes none. They go with the row of the node.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_env::Id;
use lazuli_store::{Error, KeyRange, Result, Write};

use super::{Catalog, View, keys};
use crate::MapReason;
use crate::record::encode;

/// How many rows of figures a node has in the catalog at most. Others read them once in the time between two of them, so
/// they may be late by so many.
pub const TOLD_ROWS_MAX: usize = 6;
/// The most nodes whose figures are read.
const NODES_MAX: usize = 10_000;
/// The most rows that are read at once of one node: more than are ever there.
const ROWS_READ_MAX: usize = 4 * TOLD_ROWS_MAX;

/// Rows of figures that one node has told, by number, oldest first.
pub type Told = (Id, Vec<(u64, Bytes)>);

impl Catalog {
    /// Writes rows of figures of this node, and removes those that are too old to be kept. The same row may be written
    /// again. Fails with [`MapReason::NodeRemoved`] if others have removed the node.
    pub async fn tell_figures(&self, node: Id, rows: &[(u64, Bytes)]) -> Result<()> {
        let Some((newest, _)) = rows.last() else { return Ok(()) };
        let oldest = (newest + 1).saturating_sub(TOLD_ROWS_MAX as u64);
        let removed = |error: Error| match error.is_moved() {
            true => Error::precondition(MapReason::NodeRemoved, format!("node {node} was removed")),
            false => error,
        };
        let txn = self.store.begin(vec![keys::node(node)]).await.map_err(removed)?;
        let old = KeyRange::new(keys::told(node, 0), Some(keys::told(node, oldest)));
        let old: Vec<(Bytes, Bytes)> = View::of(&*txn).rows(old, ROWS_READ_MAX).await?;
        let deleted = old.into_iter().map(|(key, _)| Write::Delete(key));
        let kept = rows.iter().filter(|(number, _)| *number >= oldest);
        let put = kept.map(|(number, row)| Write::Put(keys::told(node, *number), encode(row)));
        txn.commit(deleted.chain(put).collect()).await.map_err(removed)
    }

    /// All nodes but this one, each with what it has told behind the number that was `seen` of it.
    pub async fn told_since(&self, own: Id, seen: &BTreeMap<Id, u64>) -> Result<Vec<Told>> {
        let snapshot = self.snapshot().await?;
        let view = View::of(&*snapshot);
        let nodes: Vec<(Bytes, u64)> =
            view.rows(KeyRange::prefix(keys::space(keys::NODE)), NODES_MAX).await?;
        let mut told = Vec::new();
        for node in nodes.iter().filter_map(|(key, _)| keys::node_id(key)) {
            if node == own {
                continue;
            }
            let first = seen.get(&node).map_or(0, |last| last.saturating_add(1));
            let range = KeyRange { start: keys::told(node, first), ..keys::told_by(node) };
            let rows: Vec<(Bytes, Bytes)> = view.rows(range, ROWS_READ_MAX).await?;
            let numbered =
                rows.into_iter().filter_map(|(key, row)| Some((keys::number_of(&key)?, row)));
            told.push((node, numbered.collect()));
        }
        Ok(told)
    }
}
