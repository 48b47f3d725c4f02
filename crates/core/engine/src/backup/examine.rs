//! Looking through a backup before anything is changed: what only the shape of its rows can tell.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_shardmap::layout::Space;
use lazuli_store::Result;
use lazuli_store::blocks::BlockId;

use super::damaged;
use super::filed::Filed;
use super::format::{BackupHead, BackupRow};
use super::parser::BackupPart;
use crate::engine::Engine;
use crate::item::Item;

/// Checks that every file which rows need comes before them.
pub struct BackupExaminer {
    head: BackupHead,
    filed: Option<Arc<dyn Filed>>,
    /// The shardlet whose rows are coming, and its files that came.
    route: Bytes,
    files: BTreeSet<BlockId>,
}

impl Engine {
    /// An examiner of the parts of a backup with this head.
    pub fn examiner(&self, head: &BackupHead) -> BackupExaminer {
        BackupExaminer {
            filed: self.filed.get(&head.container.schema),
            head: head.clone(),
            route: Bytes::new(),
            files: BTreeSet::new(),
        }
    }
}

impl BackupExaminer {
    /// Looks at the next part, as the parser gives it.
    pub fn look(&mut self, part: &BackupPart) -> Result<()> {
        match part {
            BackupPart::File { .. } if self.filed.is_none() => {
                Err(damaged("rows of its kind have no files"))
            }
            BackupPart::File { file, route } => {
                self.enter(route);
                self.files.insert(file.id);
                Ok(())
            }
            BackupPart::Rows(rows) => rows.iter().try_for_each(|row| self.look_at_row(row)),
            BackupPart::Head(_) | BackupPart::Piece(_) | BackupPart::End(_) => Ok(()),
        }
    }

    fn enter(&mut self, route: &[u8]) {
        if self.route != route {
            self.route = Bytes::copy_from_slice(route);
            self.files.clear();
        }
    }

    fn look_at_row(&mut self, row: &BackupRow) -> Result<()> {
        let Some(filed) = self.filed.clone().filter(|_| row.space != Space::CHANGES) else {
            return Ok(());
        };
        let container = &self.head.container;
        let (route, behind) = container.kind.split(&container.key, &row.key)?;
        self.enter(route);
        if !filed.spaces().contains(&row.space) {
            return Ok(());
        }
        let payload = Item::decode(row.value.clone())?.payload;
        let files = filed.files(row.space, behind, payload);
        let files = files.map_err(|error| damaged(error.message()))?;
        match files.iter().all(|file| self.files.contains(&file.id)) {
            true => Ok(()),
            false => Err(damaged("a row names a file that is not in it")),
        }
    }
}
