//! Forgetting deletions that every text index has.
//!
//! A document has one change record, the newest. That of a deletion would stay for ever, so it is forgotten once all text
//! indexes have committed it. Where several processes derive text indexes from the same changes, each announces how far its
//! copy has come, and a deletion waits for all that have announced themselves lately. How far they had come is written down
//! before anything is forgotten: a copy that was away, or was put back from an older state, is recognised by that and is
//! filled anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{ItemKey, KeyRange, Kind, Lsn, PartitionId, Result, Space, Transaction, Tx};

use crate::follow::Deletion;
use crate::index::damaged;
use crate::limits::COPY_LOST_AFTER;
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
    /// Whether a text index with these positions lacks changes that are forgotten: it must be filled anew. To go on reading
    /// safely while others forget, ask behind each step with the positions from before it.
    pub async fn is_stale(
        &self,
        account: &str,
        index: &Index,
        positions: &Positions,
    ) -> Result<bool> {
        let forgotten = self.forgotten(account, index).await?;
        Ok(forgotten.is_some_and(|(forgotten, _)| !positions.reaches(&forgotten)))
    }

    /// How far all text indexes had come when deletions were forgotten, and the version of that record.
    async fn forgotten(&self, account: &str, index: &Index) -> Result<Option<(Positions, Lsn)>> {
        let name = index.id().0.to_string();
        match self.record(account, RecordKind::Forgotten, &name).await {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            found => {
                let found = found?;
                Ok(Some((positions_of(&found.body)?, found.version)))
            }
        }
    }

    /// Says how far a copy of the text index has come, where there may be others. Deletions wait for it from now on, until it
    /// has not been heard of for [`COPY_LOST_AFTER`].
    pub async fn announce_copy(
        &self,
        account: &str,
        index: &Index,
        copy: &str,
        committed: &Positions,
    ) -> Result<()> {
        let now_ms = self.engine.env().clock.now_ms();
        let body = Bytes::from(format!("{now_ms} {}", committed.to_text()));
        let name = copy_name(index, copy);
        let put = self.put_record(account, RecordKind::Copy, &name, body, Expect::Anything);
        put.await.map(|_| ())
    }

    /// Deletions need not wait for this copy any more.
    pub async fn forget_copy(&self, account: &str, index: &Index, copy: &str) -> Result<()> {
        let name = copy_name(index, copy);
        self.delete_record(account, RecordKind::Copy, &name, Expect::Anything).await.map(|_| ())
    }

    /// Whether all copies of the text index have come this far. Records of those that are lost are deleted.
    async fn have_all(&self, account: &str, index: &Index, positions: &Positions) -> Result<bool> {
        let now_ms = self.engine.env().clock.now_ms();
        let lost_ms = u64::try_from(COPY_LOST_AFTER.as_millis()).unwrap_or(u64::MAX);
        let prefix = copy_name(index, "");
        for record in self.records(account, RecordKind::Copy).await? {
            let Some(copy) = record.name.strip_prefix(&prefix) else { continue };
            let (heard_ms, committed) = copy_of(&record.body)?;
            if heard_ms.saturating_add(lost_ms) < now_ms {
                self.forget_copy(account, index, copy).await?;
            } else if !committed.reaches(positions) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets deletions that a text index has committed with these positions, unless other copies do not have them yet.
    /// Answers whether they are forgotten; if not, the caller asks again later with the same.
    pub async fn forget_deletions(
        &self,
        account: &str,
        index: &Arc<Index>,
        committed: &Positions,
        deletions: &[Deletion],
    ) -> Result<bool> {
        if deletions.is_empty() {
            return Ok(true);
        }
        if !committed.is_at_everywhere()
            || (self.is_shared && !self.have_all(account, index, committed).await?)
        {
            return Ok(false);
        }
        if !self.write_down(account, index, committed).await? {
            return Ok(false);
        }
        let map = self.engine.router().partitions(index.id(), &KeyRange::all()).await?;
        let mut groups: BTreeMap<Option<PartitionId>, Vec<Deletion>> = BTreeMap::new();
        // A position steps back where parts are merged, so that the commit may lack a deletion that was seen before it. Such a
        // one stays.
        for deletion in deletions.iter().filter(|it| committed.has(&it.route, it.lsn)) {
            let held = map.iter().find(|(routes, _)| routes.contains(&deletion.route));
            let partition = held.map(|(_, placed)| placed.partition);
            groups.entry(partition).or_default().push(deletion.clone());
        }
        for deletions in groups.into_values() {
            let Some(route) = deletions.first().map(|deletion| deletion.route.clone()) else {
                continue;
            };
            let forget = Forget { index: index.clone(), deletions };
            self.engine.write(index.id(), &route, forget).await?;
        }
        Ok(true)
    }

    /// Writes down how far all copies have come. What is written never steps back: it is raised on condition that nobody else
    /// has raised it meanwhile, and false says that somebody has.
    async fn write_down(
        &self,
        account: &str,
        index: &Index,
        committed: &Positions,
    ) -> Result<bool> {
        let (raised, expect) = match self.forgotten(account, index).await? {
            None => (committed.clone(), Expect::Nothing),
            Some((before, version)) => (committed.raised_by(&before), Expect::Version(version)),
        };
        let (kind, name) = (RecordKind::Forgotten, index.id().0.to_string());
        let put = self.put_record(account, kind, &name, raised.to_text().into(), expect).await;
        match put {
            Err(error) if matches!(error.kind(), Kind::Precondition | Kind::Exists) => Ok(false),
            put => put.map(|_| true),
        }
    }

    /// Forgets what was written down about an index that is gone.
    pub async fn forget_index(&self, account: &str, index: &Index) -> Result<()> {
        let (kind, name) = (RecordKind::Forgotten, index.id().0.to_string());
        self.delete_record(account, kind, &name, Expect::Anything).await?;
        let prefix = copy_name(index, "");
        for record in self.records(account, RecordKind::Copy).await? {
            if record.name.starts_with(&prefix) {
                let (kind, anything) = (RecordKind::Copy, Expect::Anything);
                self.delete_record(account, kind, &record.name, anything).await?;
            }
        }
        Ok(())
    }
}

/// The name of the record of a copy: the number of the index's container, and the copy's own name.
fn copy_name(index: &Index, copy: &str) -> String {
    format!("{}/{copy}", index.id().0)
}

fn positions_of(body: &[u8]) -> Result<Positions> {
    let text = std::str::from_utf8(body).map_err(|_| damaged())?;
    Positions::from_text(text).ok_or_else(damaged)
}

/// When a copy was heard of, in milliseconds since 1970, and how far it had come.
fn copy_of(body: &[u8]) -> Result<(u64, Positions)> {
    let at = body.iter().position(|byte| *byte == b' ').ok_or_else(damaged)?;
    let heard = std::str::from_utf8(&body[..at]).ok().and_then(|text| text.parse().ok());
    Ok((heard.ok_or_else(damaged)?, positions_of(&body[at + 1..])?))
}
