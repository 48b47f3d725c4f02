//! Rows of garbage, which say what nothing names any more and what must be looked at again later, and the transactions of
//! the collector. Each is small and leaves a state from which the next one goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    BlockId, Direction, ItemKey, KeyRange, Lsn, PageLimit, Result, Space, Transaction, Tx,
};

use super::address::{BlobPlace, number_at};
use super::copies::Copies;
use super::limits::UNCOMMITTED_MAX_MS;
use super::pieces::{decode_one, decode_row};
use super::record::{BlobRecord, CopyStatus};
use super::rows::{Reader, Writer, damaged};
use super::shardlet::Shardlet;

/// What a row of garbage says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Garbage {
    /// A content whose pieces are to be taken apart.
    Content(u64),
    /// Files, and cells, to be removed.
    Files(Vec<BlockId>),
    /// Blocks that no commit has named.
    Session(u64),
    /// Of a page blob: former pieces of this content may be needed by no state any more.
    Former(u64),
    /// From this time on something of the blob may be over: a retention, an expiry, a copy.
    Due(u64),
    /// From this time on the blocks of a session may have waited too long.
    Idle { session: u64, due_ms: u64 },
}

impl Garbage {
    pub(super) fn encode(&self) -> Bytes {
        let mut to = Writer::new();
        let mut numbers = |kind: u8, numbers: &[u64]| {
            to.u8(kind);
            for number in numbers {
                to.u64(*number);
            }
        };
        match self {
            Self::Content(id) => numbers(1, &[*id]),
            Self::Files(files) => {
                numbers(2, &[]);
                for file in files {
                    to.u64(file.generation);
                    to.u64(file.number);
                }
            }
            Self::Session(session) => numbers(3, &[*session]),
            Self::Former(content) => numbers(4, &[*content]),
            Self::Due(ms) => numbers(5, &[*ms]),
            Self::Idle { session, due_ms } => numbers(6, &[*session, *due_ms]),
        }
        to.finish()
    }

    pub(super) fn decode(bytes: Bytes) -> Result<Self> {
        let mut from = Reader::new(bytes);
        Ok(match from.u8()? {
            1 => Self::Content(from.u64()?),
            2 => {
                let mut files = Vec::new();
                while !from.is_empty() {
                    files.push(BlockId { generation: from.u64()?, number: from.u64()? });
                }
                Self::Files(files)
            }
            3 => Self::Session(from.u64()?),
            4 => Self::Former(from.u64()?),
            5 => Self::Due(from.u64()?),
            6 => Self::Idle { session: from.u64()?, due_ms: from.u64()? },
            _ => return Err(damaged()),
        })
    }
}

/// The rows that one transaction deletes.
const ROWS_AT_ONCE: PageLimit = PageLimit { items: 500, bytes: 2 * 1024 * 1024 };

/// Forgets files that have been removed, with the cells among them.
pub(super) struct Forget {
    pub(super) place: BlobPlace,
    pub(super) key: ItemKey,
    pub(super) cells: Vec<BlockId>,
}

impl Transaction for Forget {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        for cell in &self.cells {
            tx.delete(&self.place.cell(cell.number)).await?;
        }
        tx.delete(&self.key).await.map(|_| ())
    }

    fn cost(&self) -> u32 {
        0
    }
}

/// Deletes some rows of pieces of a range, with the names that they give; says whether none are left.
pub(super) struct Unravel {
    pub(super) place: BlobPlace,
    pub(super) key: ItemKey,
    pub(super) space: Space,
    pub(super) range: KeyRange,
}

impl Transaction for Unravel {
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let ahead = Direction::Forward;
        let container = self.place.container;
        let page =
            shardlet.tx.scan(container, self.space, &self.range, ahead, ROWS_AT_ONCE).await?;
        let mut files: BTreeMap<BlockId, u32> = BTreeMap::new();
        for (key, item) in page.items {
            let key = ItemKey::from_bytes(key, self.place.route.len())?;
            shardlet.tx.delete(&key).await?;
            if self.space == Space::BLOB_BLOCKS && key.row().len() == 8 {
                // What is known of the session names nothing.
                continue;
            }
            for piece in decode_row(item.payload)? {
                if let Some(file) = piece.file() {
                    *files.entry(file.id).or_default() += 1;
                }
            }
        }
        shardlet.drop_files(&files).await?;
        if page.next.is_none() {
            shardlet.tx.delete(&self.key).await?;
        }
        Ok(page.next.is_none())
    }

    fn cost(&self) -> u32 {
        0
    }
}

/// Deletes some former pieces of a page blob that no state needs.
pub(super) struct Trim {
    pub(super) place: BlobPlace,
    pub(super) key: ItemKey,
    pub(super) content: u64,
}

impl Transaction for Trim {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let pasts = shardlet.pasts().await?;
        let needed: Vec<Lsn> = pasts
            .into_iter()
            .filter(|(_, _, _, record)| record.content.id == self.content)
            .map(|(_, _, _, record)| record.kept_until)
            .collect();
        let mut range = self.place.former_pieces(self.content, 0, u64::MAX);
        let mut deleted = 0;
        loop {
            let (container, space) = (self.place.container, Space::BLOB_PIECES);
            let ahead = Direction::Forward;
            let page = shardlet.tx.scan(container, space, &range, ahead, ROWS_AT_ONCE).await?;
            for (key, item) in page.items {
                let key = ItemKey::from_bytes(key, self.place.route.len())?;
                let until = Lsn(number_at(key.row(), 16).ok_or_else(damaged)?);
                let piece = decode_one(item.payload)?;
                if !needed.iter().any(|time| piece.since <= *time && *time < until) {
                    shardlet.tx.delete(&key).await?;
                    shardlet.drop_piece(&piece).await?;
                    deleted += 1;
                }
            }
            match page.next {
                // Enough for one transaction: the row stays, and the next pass goes on.
                Some(_) if deleted >= ROWS_AT_ONCE.items => return Ok(()),
                Some(last) => range.start = super::read::behind(&last),
                None => return shardlet.tx.delete(&self.key).await.map(|_| ()),
            }
        }
    }

    fn cost(&self) -> u32 {
        0
    }
}

/// Looks at a blob of which something is due: what was kept for a while, what expires, blocks and copies that wait.
pub(super) struct Look {
    pub(super) place: BlobPlace,
    pub(super) key: ItemKey,
    pub(super) running: Arc<Copies>,
}

impl Transaction for Look {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let now_ms = shardlet.now_ms();
        let Some(item) = shardlet.tx.get(&self.key).await? else { return Ok(()) };
        shardlet.tx.delete(&self.key).await?;
        let row = shardlet.row().await?;
        if let Garbage::Idle { session, .. } = Garbage::decode(item.payload)? {
            return self.look_at_blocks(&mut shardlet, row, session).await;
        }
        for (key, _, _, record) in shardlet.pasts().await? {
            if record.deleted.is_some_and(|deleted| deleted.until_ms <= now_ms) {
                shardlet.tx.delete(&key).await?;
                shardlet.drop_content(&record).await?;
            }
        }
        let Some(mut record) = row else { return Ok(()) };
        if record.is_expired(now_ms) {
            shardlet.delete_current().await?;
            shardlet.drop_waiting(&mut record).await?;
            return shardlet.drop_content(&record).await;
        }
        if let Some(copy) = &mut record.copy
            && copy.status == CopyStatus::Pending
        {
            if self.running.is_running(&copy.id) {
                return shardlet.put_garbage(&Garbage::Due(now_ms + COPY_LOOK_MS));
            }
            copy.status = CopyStatus::Failed;
            copy.completed_ms = Some(now_ms);
            copy.description = Some("the server was restarted during the copy".into());
            shardlet.put_current(&record).await?;
        }
        Ok(())
    }

    fn cost(&self) -> u32 {
        0
    }
}

/// How long after the start of a copy the collector checks whether a process still runs it.
pub(super) const COPY_LOOK_MS: u64 = 60_000;

impl Look {
    async fn look_at_blocks(
        &self,
        shardlet: &mut Shardlet<'_, '_>,
        row: Option<BlobRecord>,
        session: u64,
    ) -> Result<()> {
        let Some(mut record) = row.filter(|it| it.waiting == session) else { return Ok(()) };
        let last = shardlet.tx.get(&self.place.block(session, &[])).await?;
        let last_ms = last.map_or(0, |item| item.version.millis());
        let due_ms = last_ms + UNCOMMITTED_MAX_MS;
        if due_ms > shardlet.now_ms() {
            return shardlet.put_idle(session, due_ms).await;
        }
        shardlet.drop_waiting(&mut record).await?;
        if record.is_committed {
            shardlet.put_current(&record).await
        } else {
            shardlet.delete_current().await
        }
    }
}

/// Clears away a blob of a container that is no more.
pub(super) struct Erase {
    pub(super) place: BlobPlace,
}

impl Transaction for Erase {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        if let Some(mut record) = shardlet.row().await? {
            shardlet.delete_current().await?;
            shardlet.drop_waiting(&mut record).await?;
            shardlet.drop_content(&record).await?;
        }
        for (key, _, _, record) in shardlet.pasts().await? {
            shardlet.tx.delete(&key).await?;
            shardlet.drop_content(&record).await?;
        }
        Ok(())
    }

    fn cost(&self) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_survives_its_row_and_damage_is_an_error() {
        let file = |number| BlockId { generation: 1, number };
        for garbage in [
            Garbage::Content(1),
            Garbage::Files(vec![file(2), file(3)]),
            Garbage::Session(4),
            Garbage::Former(5),
            Garbage::Due(6),
            Garbage::Idle { session: 7, due_ms: 8 },
        ] {
            let row = garbage.encode();
            assert_eq!(Garbage::decode(row.clone()).unwrap(), garbage);
            assert!(Garbage::decode(row.slice(..row.len() - 1)).is_err());
        }
        assert!(Garbage::decode(Bytes::from_static(&[9])).is_err());
    }
}
