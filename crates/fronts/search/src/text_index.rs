//! The text index of one index: derived from its documents, kept in a folder, and fed by a task of its own.
//!
//! The task pulls changes from the shape, applies them, and commits them in groups together with the positions that they lead
//! to. What searches see is published after each commit. A folder that is lost, damaged or made for another definition is made
//! anew, and filled from the documents.
//!
//! Where several processes derive text indexes from the same documents, each is a copy that announces how far it has come, so
//! that deletions stay until all copies have them. One that was away for too long finds that out behind its next step.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_engine::{KeyRange, Kind};
use lazuli_index::{Deletion, DocumentChange, Follower, Index, Indexes, Positions, Step};
use lazuli_search_engine::{
    DocumentChange as TextChange, IndexDefinition, ShardFigures, ShardIndex, ShardSettings,
    ShardSnapshot,
};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::error::{Fault, Result, TEXT_INDEX_LOST};
use crate::growth::Growth;
use crate::limits::{
    ALONE_POLL, COMMIT_CHANGES, COMMIT_PAUSE, DELETIONS_MAX, REST_AFTER, RETRY_PAUSE, SHARED_POLL,
    TRIM_INTERVAL,
};

/// The file in the folder of a text index that names this copy of it.
const COPY_FILE: &str = "copy";

/// What searches see.
#[derive(Clone)]
pub(crate) struct Visible {
    pub(crate) index: Arc<Index>,
    pub(crate) definition: Arc<IndexDefinition>,
    pub(crate) snapshot: ShardSnapshot,
    pub(crate) positions: Positions,
    pub(crate) figures: ShardFigures,
}

pub(crate) type Published = watch::Sender<Option<Arc<Visible>>>;

/// Why the task has left its loop.
enum End {
    /// There is no such index any more.
    Gone,
    /// It must be opened again: it has another definition, or its folder is of no use.
    Reopen,
}

/// The task that feeds one text index.
pub(crate) struct Feeder {
    pub(crate) indexes: Indexes,
    pub(crate) account: String,
    /// The index that it was started for.
    pub(crate) index: Arc<Index>,
    pub(crate) folder: PathBuf,
    pub(crate) published: Published,
    /// One graph of neighbours is built at a time in this process.
    pub(crate) building: Arc<Semaphore>,
}

/// A text index that is open.
struct Open {
    index: Arc<Index>,
    definition: Arc<IndexDefinition>,
    shard: Arc<ShardIndex>,
    follower: Follower,
    /// Those of the last commit, and those of what was applied last.
    committed: Positions,
    applied: Positions,
    /// Changes that were applied since.
    pending: usize,
    committed_at: Option<Instant>,
    /// Deletions that are committed, and those that are not yet.
    deletions: Vec<Deletion>,
    deletions_pending: Vec<Deletion>,
    /// Deletions that are being forgotten, with the positions of a commit that has them.
    forgetting: Option<(Positions, Vec<Deletion>)>,
    trimmed: Instant,
    /// The name of this copy, where there may be others.
    copy: Option<String>,
    is_announced: bool,
    growth: Growth,
    quiet_since: Instant,
    is_resting: bool,
}

impl Feeder {
    /// Runs until the index is deleted.
    pub(crate) async fn run(self) {
        loop {
            match self.feed().await {
                Ok(End::Gone) => break,
                Ok(End::Reopen) => {}
                Err(fault) => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let (index, cause) =
                        (&self.index.name, fault.cause().unwrap_or(&fault.message));
                    tracing::warn!(%index, cause, "the text index of an index is behind");
                    if fault.code == TEXT_INDEX_LOST {
                        self.drop_folder().await;
                    }
                }
            }
        }
        self.published.send_replace(None);
        self.drop_folder().await;
        if let Err(error) = self.indexes.forget_index(&self.account, &self.index).await {
            tracing::warn!(%error, "a record of a deleted index stays");
        }
    }

    async fn drop_folder(&self) {
        let folder = self.folder.clone();
        let _ = spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
    }

    async fn feed(&self) -> Result<End> {
        let Some(index) = self.look().await? else { return Ok(End::Gone) };
        let mut open = self.open(index).await?;
        let mut woken = self.indexes.watch(&open.index);
        let poll = if self.indexes.is_shared() { SHARED_POLL } else { ALONE_POLL };
        loop {
            match self.look().await? {
                None => return Ok(End::Gone),
                Some(now) if now.version != open.index.version => return Ok(End::Reopen),
                Some(_) => {}
            }
            woken.mark_unchanged();
            let more = self.take_in(&mut open).await?;
            if open.is_due() {
                self.commit(&mut open).await?;
            } else if open.pending == 0 {
                self.publish_if_new(&open);
            }
            if open.trimmed.elapsed() >= TRIM_INTERVAL {
                open.trimmed = Instant::now();
                self.trim(&mut open).await?;
            }
            if more {
                continue;
            }
            open.growth.go_on(&open.shard, &self.building).await;
            let wait = if open.pending > 0 { open.pause_left() } else { poll };
            tokio::select! {
                biased;
                _ = woken.changed(), if open.pending == 0 => {}
                () = tokio::time::sleep(wait) => {}
            }
            self.tidy(&mut open).await?;
        }
    }

    /// The index as it is now; none if it is gone, or another one has its name.
    async fn look(&self) -> Result<Option<Arc<Index>>> {
        match self.indexes.index(&self.account, &self.index.name).await {
            Ok(index) if index.id() == self.index.id() => Ok(Some(index)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the folder, or makes it anew where it is of no use.
    async fn open(&self, index: Arc<Index>) -> Result<Open> {
        let definition = Arc::new(definition_of(&index)?);
        let mut shard = self.open_folder(&definition).await?;
        let text = shard.position();
        let mut positions = text.as_deref().and_then(Positions::from_text);
        if let Some(found) = &positions
            && self.indexes.is_stale(&self.account, &index, found).await?
        {
            positions = None;
        }
        if positions.is_none() && text.is_some() {
            let folder = self.folder.clone();
            drop(shard);
            let removed = spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
            removed.map_err(Fault::internal)?.map_err(Fault::internal)?;
            shard = self.open_folder(&definition).await?;
        }
        let positions = positions.unwrap_or_default();
        let (indexes, routes) = (self.indexes.clone(), KeyRange::all());
        let follower = Follower::new(indexes, index.clone(), routes, positions.clone());
        let now = Instant::now();
        let copy = if self.indexes.is_shared() { Some(self.copy_name().await?) } else { None };
        Ok(Open {
            copy,
            is_announced: false,
            growth: Growth::default(),
            forgetting: None,
            index,
            definition,
            shard: Arc::new(shard),
            follower,
            applied: positions.clone(),
            committed: positions,
            pending: 0,
            committed_at: None,
            deletions: Vec::new(),
            deletions_pending: Vec::new(),
            trimmed: now,
            quiet_since: now,
            is_resting: true,
        })
    }

    async fn open_folder(&self, definition: &Arc<IndexDefinition>) -> Result<ShardIndex> {
        let (folder, definition) = (self.folder.clone(), definition.clone());
        let open = move || ShardIndex::open(&folder, definition, ShardSettings::default());
        Ok(spawn_blocking(open).await.map_err(Fault::internal)??)
    }

    /// The name of this copy, which is kept in its folder.
    async fn copy_name(&self) -> Result<String> {
        let path = self.folder.join(COPY_FILE);
        let new = format!("{:016x}", self.indexes.engine().env().random.next_u64());
        let keep = move || match std::fs::read_to_string(&path) {
            Ok(name) if name.len() == new.len() => Ok(name),
            _ => std::fs::write(&path, &new).map(|()| new),
        };
        spawn_blocking(keep).await.map_err(Fault::internal)?.map_err(Fault::internal)
    }

    /// Reads the next changes. Others may have forgotten deletions meanwhile, if this copy was thought to be lost.
    async fn step(&self, open: &mut Open) -> Result<Step> {
        let before = open.copy.is_some().then(|| open.follower.positions().clone());
        let step = open.follower.step().await?;
        if let Some(before) = before
            && before != *open.follower.positions()
            && self.indexes.is_stale(&self.account, &open.index, &before).await?
        {
            return Err(Fault::text_index_lost("deletions were forgotten that this copy lacks"));
        }
        Ok(step)
    }

    /// Applies the next changes, and says whether there are more.
    async fn take_in(&self, open: &mut Open) -> Result<bool> {
        let step = self.step(open).await?;
        open.deletions_pending.extend(step.deletions);
        if step.changes.is_empty() {
            return Ok(step.more);
        }
        open.pending += step.changes.len();
        open.quiet_since = Instant::now();
        open.is_resting = false;
        let changes: Vec<_> = step.changes.into_iter().map(text_change).collect();
        let (shard, position) = (open.shard.clone(), open.follower.positions().to_text());
        let apply = move || shard.apply(&changes, &position);
        spawn_blocking(apply).await.map_err(Fault::internal)??;
        open.applied = open.follower.positions().clone();
        Ok(step.more)
    }

    async fn commit(&self, open: &mut Open) -> Result<()> {
        let shard = open.shard.clone();
        spawn_blocking(move || shard.commit()).await.map_err(Fault::internal)??;
        open.committed = open.applied.clone();
        open.deletions.append(&mut open.deletions_pending);
        // Those that are not remembered stay as change records. They do no harm.
        open.deletions.truncate(DELETIONS_MAX);
        (open.pending, open.committed_at) = (0, Some(Instant::now()));
        self.publish(open);
        // Early, so that others forget nothing while this copy reads all documents.
        if open.is_announced { Ok(()) } else { self.announce(open).await }
    }

    /// Shows searches what is committed, unless they see it already.
    fn publish_if_new(&self, open: &Open) {
        let positions = open.follower.positions();
        let is_same = |visible: &Arc<Visible>| {
            visible.index.version == open.index.version && visible.positions == *positions
        };
        let is_seen = self.published.borrow().as_ref().is_some_and(is_same);
        if !is_seen {
            self.publish(open);
        }
    }

    fn publish(&self, open: &Open) {
        self.published.send_replace(Some(Arc::new(Visible {
            index: open.index.clone(),
            definition: open.definition.clone(),
            snapshot: open.shard.snapshot(),
            positions: open.follower.positions().clone(),
            figures: open.shard.figures(),
        })));
    }

    /// Lets the writer of a quiet index rest.
    async fn tidy(&self, open: &mut Open) -> Result<()> {
        if open.pending == 0 && !open.is_resting && open.quiet_since.elapsed() >= REST_AFTER {
            open.is_resting = true;
            let shard = open.shard.clone();
            spawn_blocking(move || shard.rest()).await.map_err(Fault::internal)??;
            // Segments were merged meanwhile.
            self.publish(open);
        }
        Ok(())
    }

    /// Tells other copies how far this one has come.
    async fn announce(&self, open: &mut Open) -> Result<()> {
        if let Some(copy) = &open.copy {
            let (account, index) = (&self.account, &open.index);
            self.indexes.announce_copy(account, index, copy, &open.committed).await?;
        }
        open.is_announced = true;
        Ok(())
    }

    /// Forgets deletions that all copies have.
    async fn trim(&self, open: &mut Open) -> Result<()> {
        self.announce(open).await?;
        let (account, index) = (&self.account, &open.index);
        if open.forgetting.is_none() && !open.deletions.is_empty() {
            open.forgetting = Some((open.committed.clone(), std::mem::take(&mut open.deletions)));
        }
        if let Some((positions, deletions)) = &open.forgetting
            && self.indexes.forget_deletions(account, index, positions, deletions).await?
        {
            open.forgetting = None;
        }
        Ok(())
    }
}

impl Open {
    /// Whether it is time to commit what was applied: commits keep a pause, so that changes share them.
    fn is_due(&self) -> bool {
        self.pending >= COMMIT_CHANGES || (self.pending > 0 && self.pause_left().is_zero())
    }

    fn pause_left(&self) -> Duration {
        self.committed_at.map_or(Duration::ZERO, |at| COMMIT_PAUSE.saturating_sub(at.elapsed()))
    }
}

/// The definition of an index, which was checked when it was kept.
pub(crate) fn definition_of(index: &Index) -> Result<IndexDefinition> {
    let json = serde_json::from_str(&index.definition).map_err(Fault::internal)?;
    IndexDefinition::parse(&json).map_err(Fault::internal)
}

fn text_change(change: DocumentChange) -> TextChange {
    match change.document {
        Some(text) => TextChange::Upsert { document: String::from_utf8_lossy(&text).into() },
        None => TextChange::Delete { key: change.key },
    }
}
