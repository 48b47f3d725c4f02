//! Adopts a parcel: makes room for it, brings its tables into this store's folder, and registers one layer after
//! another. Each registration is a turn of the committer, so that guards are checked and commits continue in between.
//!
//! **Making room** raises this store's sequence number to that of the source. So adopted rows are older than every
//! later write here, whatever their sequence numbers are. Earlier writes of this store have to be flushed first: the
//! engine regards all journal entries up to the highest sequence number in its tables as flushed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::{AbstractTree, Keyspace};
use lazuli_store::{Error, Result};
use lsm_tree::Table;
use lsm_tree::compaction::MoveDown;
use tokio::sync::oneshot;

use crate::behind::give_way;
use crate::carry::{Carried, carry};
use crate::error::{from_engine, from_io};
use crate::parcel::{Content, Stretch, overlaps};
use crate::queue::Queue;
use crate::slot::Slot;
use crate::state::State;

/// How many runs of tables may wait for compaction, including those of the parcel. Commits wait at more than twice as many.
const RUNS_MAX: usize = 12;
/// How long to wait until there are fewer, and until memtables are flushed.
const WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(2);

/// Adopts the parcel, unless something prevents it.
pub(crate) async fn adopt(
    slot: &Slot,
    queue: &Queue,
    guards: Vec<Bytes>,
    content: Content,
) -> Result<bool> {
    queue.make_room(guards.clone(), content.until).await?;
    let state = slot.engine().await?;
    let Some(layers) = bring(state, content).await? else { return Ok(false) };
    for layer in layers {
        queue.add_layer(guards.clone(), layer).await?;
    }
    Ok(true)
}

/// Brings the tables, in a separate thread.
async fn bring(state: Arc<State>, content: Content) -> Result<Option<Vec<Carried>>> {
    let (answer, answered) = oneshot::channel();
    let bring = move || {
        give_way();
        let _working = state.working();
        // If the caller has gone, the tables are dropped.
        let _ = answer.send(bring_here(&state, &content));
    };
    let thread = std::thread::Builder::new().name("lazuli:carry".to_owned()).spawn(bring);
    thread.map_err(|error| from_io("the carrying thread", &error))?;
    let panicked = |_| Err(Error::internal("parcel-failed", "the thread that brings it panicked"));
    answered.await.unwrap_or_else(panicked)
}

fn bring_here(state: &Arc<State>, content: &Content) -> Result<Option<Vec<Carried>>> {
    let data = &state.keyspaces.data;
    let runs = content.layers.iter().filter(|layer| layer.level == 0).count() + 1;
    let began = Instant::now();
    while data.sealed_memtable_count() > 0 || data.tree.l0_run_count() + runs > RUNS_MAX {
        state.check_engine()?;
        if began.elapsed() > WAIT_MAX {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
    if has_remains(data, &content.stretches)? {
        return Ok(None);
    }
    merge_first_level(state, content)?;
    carry(state, content).map(Some)
}

/// Compacts the first level into the one below, unless that is large compared with the parcel. Adopted tables cannot
/// move down past the first level; they would soon be compacted with it and rewritten.
fn merge_first_level(state: &State, content: &Content) -> Result<()> {
    let tree = &state.keyspaces.data.tree;
    let bytes = tree.current_version().l0().size();
    if bytes == 0 || bytes > content.whole_bytes() {
        return Ok(());
    }
    let merging = Leveled::default().with_l0_threshold(1).with_table_target_size(state.table_bytes);
    let _merging = state.merging();
    let is_unread = state.db.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
    let merged = tree.compact(Arc::new(merging), is_unread);
    merged.map_err(|error| from_engine(&error.into()))
}

/// Whether the tables have a row or a tombstone in the stretches. It would be above the adopted rows.
fn has_remains(data: &Keyspace, stretches: &[Stretch]) -> Result<bool> {
    let version = data.tree.current_version();
    for table in version.iter_tables() {
        for stretch in stretches.iter().filter(|it| overlaps(&table.metadata.key_range, it)) {
            if let Some(row) = table.range(stretch.clone()).next() {
                return row.map(|_| true).map_err(|error| from_engine(&error.into()));
            }
        }
    }
    Ok(false)
}

/// Registers a layer with the engine. Only the committer calls it, between two batches.
pub(crate) fn register(state: &State, layer: Carried) -> Result<()> {
    let level = layer.level;
    let tables = layer.take();
    let tree = &state.keyspaces.data.tree;
    let registered = tree.register_tables(&tables, None, None, &[], 0);
    registered.map_err(|error| state.fail(&error))?;
    if let Some(level) = resting_place(&state.keyspaces.data, level, &tables) {
        let moved = tree.compact(Arc::new(MoveDown(0, level)), 0);
        moved.map_err(|error| state.fail(&error))?;
    }
    Ok(())
}

/// The level to which adopted tables may go down, at most the one they come from, so that they are not compacted with
/// everything above them. No other table may overlap their keys on the way, and the engine moves a first level as a whole.
fn resting_place(data: &Keyspace, lowest: u8, ours: &[Table]) -> Option<u8> {
    let version = data.tree.current_version();
    let is_ours = |table: &Table| ours.iter().any(|it| it.id() == table.id());
    let is_apart = |table: &Table| {
        let keys = &table.metadata.key_range;
        !ours.iter().any(|it| it.metadata.key_range.overlaps_with_key_range(keys))
    };
    let mut levels = (0..=lowest).zip(version.iter_levels());
    let (_, first) = levels.next()?;
    if !first.iter().flat_map(|run| run.iter()).all(is_ours) {
        return None;
    }
    levels
        .take_while(|(_, level)| level.iter().flat_map(|run| run.iter()).all(is_apart))
        .last()
        .map(|(level, _)| level)
}
