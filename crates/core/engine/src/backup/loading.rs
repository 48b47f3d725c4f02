//! Bringing the parts of a backup into the partitions that were taken for it.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use lazuli_shardmap::layout::{self, PREFIX_BYTES, Space};
use lazuli_store::blocks::{BlockFile, Owner};
use lazuli_store::{Error, Result, Write};

use super::damaged;
use super::format::BackupRow;
use super::parser::BackupPart;
use super::restore::{Restore, Writing};
use crate::item::{Item, ItemKey};

impl Restore {
    /// Takes the next part, as the parser gives it. After an error the restore is over; [`Restore::give_up`] it.
    pub async fn take(&mut self, part: BackupPart) -> Result<()> {
        match part {
            BackupPart::Head(_) | BackupPart::End(_) => Ok(()),
            BackupPart::Rows(rows) => self.load_rows(rows).await,
            BackupPart::File { file, route } => self.begin_file(file, route).await,
            BackupPart::Piece(piece) => self.write_piece(piece).await,
        }
    }

    /// Removes the files that were written and that no row came to name. The partitions stay offline.
    pub async fn give_up(mut self) {
        self.writing = None;
        if let Some(filed) = &self.filed {
            for id in &self.unnamed {
                // What stays is found when the next start looks for files that nothing names.
                let _ = filed.blocks().remove(*id).await;
            }
        }
    }

    fn enter(&mut self, route: &Bytes) {
        if self.route != *route {
            self.route = route.clone();
            self.names.clear();
        }
    }

    async fn begin_file(&mut self, was: BlockFile, route: Bytes) -> Result<()> {
        self.enter(&route);
        let filed = self.filed.as_ref().ok_or_else(|| damaged("rows of its kind have no files"))?;
        let owner = Owner { container: self.container.id.0, route };
        let writer = filed.blocks().create(&owner).await?;
        let writer = Mutex::new(writer);
        self.writing = Some(Writing { was, left: was.length, writer });
        self.end_file().await
    }

    async fn write_piece(&mut self, piece: Bytes) -> Result<()> {
        let writing = self.writing.as_mut().ok_or_else(|| damaged("bytes without a file"))?;
        writing.left = writing.left.saturating_sub(piece.len() as u64);
        self.progress.bytes += piece.len() as u64;
        let writer = writing.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        writer.write(piece).await?;
        self.end_file().await
    }

    async fn end_file(&mut self) -> Result<()> {
        let Some(writing) = self.writing.take_if(|writing| writing.left == 0) else {
            return Ok(());
        };
        let writer = writing.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        let written = writer.finish().await?;
        self.unnamed.push(written.id);
        if (written.length, written.crc64) != (writing.was.length, writing.was.crc64) {
            return Err(damaged("a file is not what it was"));
        }
        self.names.insert(writing.was.id, written);
        Ok(())
    }

    /// Writes rows, those of one partition after those of the one before.
    async fn load_rows(&mut self, rows: Vec<BackupRow>) -> Result<()> {
        let mut writes: Vec<Write> = Vec::new();
        let mut at = None;
        for row in rows {
            self.progress.rows += 1;
            self.progress.bytes += (row.key.len() + row.value.len()) as u64;
            let to = self.partition_of(&row)?;
            if at != Some(to) {
                self.commit(at, std::mem::take(&mut writes)).await?;
                at = Some(to);
            }
            self.add(to, row, &mut writes)?;
        }
        self.commit(at, writes).await?;
        // The files of a row stand right before the frame that begins with it.
        self.unnamed.clear();
        Ok(())
    }

    async fn commit(&self, at: Option<usize>, writes: Vec<Write>) -> Result<()> {
        let Some(at) = at.filter(|_| !writes.is_empty()) else { return Ok(()) };
        let txn = self.shards[at].store.begin(vec![self.guard(at)]).await.map_err(overtaken)?;
        txn.commit(writes).await.map_err(overtaken)
    }

    /// The place of the partition that a row goes to.
    fn partition_of(&self, row: &BackupRow) -> Result<usize> {
        let behind = match row.space {
            // The number of the change and its space are in front of the route.
            Space::CHANGES => row.key.get(9..).unwrap_or_default(),
            _ => &row.key[..],
        };
        let partitions = &self.taken.partitions;
        let at = partitions.partition_point(|it| it.routes.start[..] <= *behind);
        let found = at.checked_sub(1).filter(|at| partitions[*at].routes.contains(behind));
        found.ok_or_else(|| damaged("a row is outside of its routes"))
    }

    fn add(&mut self, at: usize, row: BackupRow, writes: &mut Vec<Write>) -> Result<()> {
        let container = self.container.id;
        if row.space == Space::CHANGES {
            if self.container.policies.changes {
                let key = layout::key(container, row.space, &row.key);
                writes.push(Write::Put(key, row.value));
            }
            return Ok(());
        }
        let (route, _) = self.container.kind.split(&self.container.key, &row.key)?;
        let route = row.key.slice_ref(route);
        self.enter(&route);
        let Some(row) = self.renamed(row, route.len())? else { return Ok(()) };
        let key = layout::key(container, row.space, &row.key);
        let key = ItemKey::from_bytes(key, route.len())?;
        if Item::decode(row.value.clone())?.expires_ms.is_some() {
            self.shards[at].note_expiring([container].into_iter());
        }
        self.derived.replace(&key, None, Some(&row.value), writes)?;
        self.sums[at].add(&key.bytes()[PREFIX_BYTES - 1..], &row.value);
        writes.push(Write::Put(key.bytes().clone(), row.value));
        Ok(())
    }

    /// The row with the names that its files have now; none if it named only what is gone.
    fn renamed(&self, row: BackupRow, route_bytes: usize) -> Result<Option<BackupRow>> {
        let Some(filed) = &self.filed else { return Ok(Some(row)) };
        let BackupRow { space, key, value } = row;
        let mut item = Item::decode(value)?;
        let behind = key.slice(route_bytes..);
        let Some((behind, payload)) = filed.renamed(space, behind, item.payload, &self.names)?
        else {
            return Ok(None);
        };
        item.payload = payload;
        let key = Bytes::from([&key[..route_bytes], &behind].concat());
        Ok(Some(BackupRow { space, key, value: item.encode() }))
    }
}

/// A guard that is gone means that another restore has taken these routes, or that they are gone.
fn overtaken(error: Error) -> Error {
    match error.is_moved() {
        true => Error::precondition("restore-overtaken", "another restore has taken these routes"),
        false => error,
    }
}
