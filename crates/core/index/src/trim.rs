//! Forgetting deletions that the text index has.
//!
//! A document has one change record, the newest. That of a deletion would stay for ever, so it is forgotten once the text index
//! has committed it. Where several processes derive text indexes from the same changes, none knows what the others have, and
//! deletions stay. How far the text index had come is written down before anything is forgotten: one that was put back from an
//! older copy is recognised by that, and is filled anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{ItemKey, KeyRange, Kind, PartitionId, Result, Space, Transaction, Tx};

use crate::follow::Deletion;
use crate::index::damaged;
use crate::shelf::{Expect, RecordKind};
use crate::{Index, Indexes, Positions};

struct Forget {
    index: Arc<Index>,
    deletions: Vec<Deletion>,
}

impl Transaction for Forget {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        for Deletion { route, lsn } in &self.deletions {
            let key = ItemKey::new(self.index.id(), Space::ITEMS, route, &[]);
            // One that is in another partition by now stays; it does no harm.
            if tx.partition_of(&key).is_ok() {
                tx.forget_change(&key, *lsn)?;
            }
        }
        Ok(())
    }
}

impl Indexes {
    /// Whether a text index with these positions lacks changes that are forgotten: it must be filled anew.
    pub async fn is_stale(
        &self,
        account: &str,
        index: &Index,
        positions: &Positions,
    ) -> Result<bool> {
        let name = index.id().0.to_string();
        let forgotten = match self.record(account, RecordKind::Forgotten, &name).await {
            Err(error) if error.kind() == Kind::NotFound => return Ok(false),
            found => found?.body,
        };
        let text = std::str::from_utf8(&forgotten).map_err(|_| damaged())?;
        let forgotten = Positions::from_text(text).ok_or_else(damaged)?;
        Ok(!positions.reaches(&forgotten))
    }

    /// Forgets deletions that the text index of this process has committed with these positions.
    pub async fn forget_deletions(
        &self,
        account: &str,
        index: &Arc<Index>,
        committed: &Positions,
        deletions: Vec<Deletion>,
    ) -> Result<()> {
        if self.is_shared || deletions.is_empty() {
            return Ok(());
        }
        let name = index.id().0.to_string();
        let body = Bytes::from(committed.to_text());
        self.put_record(account, RecordKind::Forgotten, &name, body, Expect::Anything).await?;
        let map = self.engine.router().partitions(index.id(), &KeyRange::all()).await?;
        let mut groups: BTreeMap<Option<PartitionId>, Vec<Deletion>> = BTreeMap::new();
        for deletion in deletions {
            let held = map.iter().find(|(routes, _)| routes.contains(&deletion.route));
            let partition = held.map(|(_, placed)| placed.partition);
            groups.entry(partition).or_default().push(deletion);
        }
        for deletions in groups.into_values() {
            let Some(route) = deletions.first().map(|deletion| deletion.route.clone()) else {
                continue;
            };
            let forget = Forget { index: index.clone(), deletions };
            self.engine.write(index.id(), &route, forget).await?;
        }
        Ok(())
    }

    /// Forgets what was written down about an index that is gone.
    pub async fn forget_index(&self, account: &str, index: &Index) -> Result<()> {
        let (kind, name) = (RecordKind::Forgotten, index.id().0.to_string());
        self.delete_record(account, kind, &name, Expect::Anything).await.map(|_| ())
    }
}
