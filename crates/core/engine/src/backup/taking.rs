//! Taking a backup: one snapshot of a partition, written as it is asked for.
//!
//! Rows come shardlet by shardlet, so that the files of a shardlet can stand right before the rows that name them, and
//! only one shardlet's files are remembered at once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_shardmap::local::LocalMap;
use lazuli_shardmap::manager::is_restore;
use lazuli_shardmap::{Container, MapReason, PartitionId};
use lazuli_store::blocks::{BlockFile, BlockId, BlockReader};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Reads, Result, after_key};

use super::filed::{Filed, Hold};
use super::format::{
    BackupHead, BackupRow, BackupTotals, FileHead, FrameKind, ROWS_BYTES, file_body, foot_body,
    frame, head_body, preamble, put_row, row_bytes,
};
use crate::engine::Engine;
use crate::garbage::is_by_time_in;
use crate::item::{Item, keys_of};
use crate::stats::Counts;

/// What is read of one space at once. There is one such page for each space that has rows.
const PAGE: PageLimit = PageLimit { items: 1_024, bytes: 256 * 1024 };

/// A backup that is being taken. It holds a snapshot of the shard: keep it no longer than it takes.
pub struct Backup {
    head: BackupHead,
    reader: Box<dyn Reader>,
    filed: Option<Arc<dyn Filed>>,
    _hold: Option<Hold>,
    stage: Stage,
    /// What is left of each key-ordered space.
    cursors: Vec<Cursor>,
    /// What is left of the changes; none if the container keeps none.
    changes: Option<Cursor>,
    /// The shardlet that is being written, and its files that are.
    route: Bytes,
    written: BTreeSet<BlockId>,
    /// Files that come before any further row.
    files: VecDeque<BlockFile>,
    reading: Option<Box<dyn BlockReader>>,
    /// The frame of rows in the making.
    rows: BytesMut,
    ready: VecDeque<Bytes>,
    totals: BackupTotals,
    sum: Crc64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Keys,
    Changes,
    Foot,
    Done,
}

impl Engine {
    /// Begins a backup of a partition, whatever its state and while it is in use. All of it is as of one moment.
    pub async fn backup(&self, id: PartitionId) -> Result<Backup> {
        let entry = self.manager.catalog().partition(id).await?;
        if entry.lock.is_some_and(is_restore) {
            let message = format!("partition {id} is being restored");
            return Err(Error::precondition("partition-restoring", message));
        }
        let partition = entry.partition;
        let container = self.manager.catalog().container(partition.container).await?;
        let shard = self.shards.get(partition.shard)?;
        let filed = self.filed.get(&container.schema);
        let hold = filed.as_ref().map(|filed| filed.hold(&partition.routes));
        let guard = LocalMap::partition_guard(id, partition.epoch);
        // Asked for before the snapshot, so that the moment that the backup names is not later than that of its rows.
        let behind = u64::try_from(self.staleness().as_millis()).unwrap_or(u64::MAX);
        let taken_ms = self.env.clock.now_ms().saturating_sub(behind);
        let reader = match self.snapshot(&shard, &guard, Reads::Long).await {
            Err(error) if error.is_moved() => {
                let message = format!("partition {id} has changed at this moment: try again");
                return Err(Error::unavailable(MapReason::PartitionChanged, message));
            }
            reader => reader?,
        };
        let counts = Counts::read(&*reader, id).await?;
        // Figures of a former version may lack the number.
        let lsn = counts.and_then(|counts| counts.settled());
        let lsn = lsn.unwrap_or_else(|| shard.lsns.latest());
        let head = BackupHead { container, partition: id, routes: partition.routes, lsn, taken_ms };
        Ok(Backup::new(head, reader, filed, hold))
    }
}

impl Backup {
    fn new(
        head: BackupHead,
        reader: Box<dyn Reader>,
        filed: Option<Arc<dyn Filed>>,
        hold: Option<Hold>,
    ) -> Self {
        let Container { id, policies, .. } = &head.container;
        let cursor = |space: &Space| Cursor::new(*space, keys_of(*id, *space, &head.routes));
        let cursors = Space::KEY_ORDERED.iter().map(cursor).collect();
        let changes = policies
            .changes
            .then(|| Cursor::new(Space::CHANGES, keys_of(*id, Space::CHANGES, &KeyRange::all())));
        let first = frame(FrameKind::Head, &head_body(&head));
        let mut backup = Self {
            head,
            reader,
            filed,
            _hold: hold,
            stage: Stage::Keys,
            cursors,
            changes,
            route: Bytes::new(),
            written: BTreeSet::new(),
            files: VecDeque::new(),
            reading: None,
            rows: BytesMut::new(),
            ready: VecDeque::new(),
            totals: BackupTotals::default(),
            sum: Crc64::new(),
        };
        backup.give(preamble());
        backup.give(first);
        backup
    }

    pub fn head(&self) -> &BackupHead {
        &self.head
    }

    /// The next bytes, about a mebibyte or less; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(Some(ready));
            }
            if self.stage == Stage::Done {
                return Ok(None);
            }
            if self.read_files().await? {
                continue;
            }
            match self.stage {
                Stage::Keys => self.gather_keys().await?,
                Stage::Changes => self.gather_changes().await?,
                Stage::Foot | Stage::Done => {
                    let foot = foot_body(&self.totals, self.sum.sum());
                    self.give(frame(FrameKind::Foot, &foot));
                    self.stage = Stage::Done;
                }
            }
        }
    }

    fn give(&mut self, bytes: Bytes) {
        self.sum.update(&bytes);
        self.ready.push_back(bytes);
    }

    /// Goes on with the files that have to come now; says whether there were any.
    async fn read_files(&mut self) -> Result<bool> {
        if let Some(reader) = &mut self.reading {
            match reader.next().await? {
                Some(piece) => {
                    self.totals.file_bytes += piece.len() as u64;
                    self.give(frame(FrameKind::Piece, &piece));
                }
                None => self.reading = None,
            }
            return Ok(true);
        }
        let (Some(filed), Some(file)) = (&self.filed, self.files.pop_front()) else {
            return Ok(false);
        };
        self.reading = Some(filed.blocks().read(&file, 0..file.length).await?);
        self.totals.files += 1;
        let head = FileHead { file, route: self.route.clone() };
        self.give(frame(FrameKind::File, &file_body(&head)));
        Ok(true)
    }

    /// Gathers rows until a frame is full, or until one needs files that are not written yet.
    async fn gather_keys(&mut self) -> Result<()> {
        while let Some(at) = self.next_cursor().await? {
            let Some((key, value)) = self.cursors[at].page.front().cloned() else { continue };
            let space = self.cursors[at].space;
            let item = Item::decode(value.clone())?;
            if item.version > self.head.lsn {
                let message = "an item is newer than its shard's clock";
                return Err(Error::corrupt("version-ahead", message));
            }
            if self.needs_files(space, &key, item.payload)? {
                self.end_rows();
                return Ok(());
            }
            self.cursors[at].page.pop_front();
            self.add_row(BackupRow { space, key: key.slice(PREFIX_BYTES..), value });
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
        self.end_rows();
        self.stage = Stage::Changes;
        Ok(())
    }

    /// The cursor whose row comes next: of the shardlet that is being written, else of the first one behind it.
    async fn next_cursor(&mut self) -> Result<Option<usize>> {
        for cursor in &mut self.cursors {
            cursor.fill(&*self.reader).await?;
        }
        if !self.route.is_empty()
            && let Some(at) = self.cursors.iter().position(of(&self.route))
        {
            return Ok(Some(at));
        }
        let Some(least) = self.cursors.iter().filter_map(Cursor::rest).min() else {
            return Ok(None);
        };
        let Container { kind, key, .. } = &self.head.container;
        self.route = Bytes::copy_from_slice(kind.split(key, least)?.0);
        self.written.clear();
        Ok(self.cursors.iter().position(of(&self.route)))
    }

    /// Whether a row names files that are not written yet; they come next.
    fn needs_files(&mut self, space: Space, key: &Bytes, payload: Bytes) -> Result<bool> {
        let Some(filed) = self.filed.as_ref().filter(|filed| filed.spaces().contains(&space))
        else {
            return Ok(false);
        };
        let row = key.get(PREFIX_BYTES + self.route.len()..).unwrap_or_default();
        let mut is_needed = false;
        for file in filed.files(space, row, payload)? {
            if self.written.insert(file.id) {
                self.files.push_back(file);
                is_needed = true;
            }
        }
        Ok(is_needed)
    }

    async fn gather_changes(&mut self) -> Result<()> {
        if let Some(mut changes) = self.changes.take() {
            changes.fill(&*self.reader).await?;
            let is_last = changes.page.is_empty();
            for (key, value) in changes.page.drain(..) {
                // The space holds the changes of all partitions of the container on this shard.
                if is_by_time_in(&key, &self.head.routes) {
                    let key = key.slice(PREFIX_BYTES..);
                    self.add_row(BackupRow { space: Space::CHANGES, key, value });
                }
            }
            if !is_last {
                self.changes = Some(changes);
                return Ok(());
            }
        }
        self.end_rows();
        self.stage = Stage::Foot;
        Ok(())
    }

    fn add_row(&mut self, row: BackupRow) {
        if !self.rows.is_empty() && self.rows.len() + row_bytes(&row) > ROWS_BYTES {
            self.end_rows();
        }
        self.totals.rows += 1;
        self.totals.row_bytes += (row.key.len() + row.value.len()) as u64;
        put_row(&mut self.rows, &row);
    }

    fn end_rows(&mut self) {
        if !self.rows.is_empty() {
            let body = std::mem::take(&mut self.rows);
            self.give(frame(FrameKind::Rows, &body));
        }
    }
}

/// Whether the next row of a cursor is one of this shardlet. No route begins with another one.
fn of(route: &Bytes) -> impl Fn(&Cursor) -> bool + use<'_> {
    move |cursor| cursor.rest().is_some_and(|rest| rest.starts_with(&route[..]))
}

/// What is left of one space.
struct Cursor {
    space: Space,
    keys: KeyRange,
    page: VecDeque<(Bytes, Bytes)>,
    more: bool,
}

impl Cursor {
    fn new(space: Space, keys: KeyRange) -> Self {
        Self { space, keys, page: VecDeque::new(), more: true }
    }

    /// Sees to it that there is a row, unless there is none any more.
    async fn fill(&mut self, reader: &dyn Reader) -> Result<()> {
        if !self.page.is_empty() || !self.more {
            return Ok(());
        }
        let page = reader.scan(&self.keys, Direction::Forward, PAGE).await?;
        if let Some((last, _)) = page.items.last() {
            self.keys.start = after_key(last);
        }
        self.more = page.more;
        self.page = page.items.into();
        Ok(())
    }

    /// The next key behind container and space.
    fn rest(&self) -> Option<&[u8]> {
        self.page.front().map(|(key, _)| &key[PREFIX_BYTES..])
    }
}
