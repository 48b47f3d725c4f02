//! The one writing thread: it takes all waiting commits, checks their guards in order, and writes them as one batch
//! with one fsync.
//!
//! Because nothing else writes, its cached guards stay correct, and a snapshot that it takes between two batches
//! never contains half of one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::{AbstractTree, Keyspace, OwnedWriteBatch, PersistMode, SeqNo};
use lazuli_store::{Dropped, Error, Intake, KeyRange, Result, Write};

use crate::adopt;
use crate::bulk::Load;
use crate::change::{DataChange, change_of_data};
use crate::dropping::Chosen;
use crate::guards::Guards;
use crate::keyspaces::ANCHOR;
use crate::marker::{Answered, Marker};
use crate::merges::RUNS_RESTING_MAX;
use crate::open::Kept;
use crate::parcel::Content;
use crate::queue::{Job, Other, Queue, Taken};
use crate::sealed::Sealed;
use crate::settings::{Durability, RELAXED_SYNC_MS_MAX};
use crate::slot::Slot;
use crate::state::State;
use crate::watch::Watch;

/// A group ends before the commit that would exceed this size, so that no commit waits long for others.
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;
const STALL_LOOK_MS: u64 = 5;
/// After this many closed snapshots the engine checks which old tables are no longer read.
const SNAPSHOTS_PER_LOOK: usize = 10_000;

pub(crate) struct Committer {
    slot: Arc<Slot>,
    state: Arc<State>,
    queue: Arc<Queue>,
    durability: Durability,
    answered: Answered,
    guards: Guards,
    /// The last batch that was written.
    number: u64,
    /// What the next batch's marker says about `data`.
    data_end: SeqNo,
    /// The last batch that is on disk for certain.
    synced: u64,
    synced_at: Instant,
    sealed: Sealed,
    /// Writes before this are in tables, followed by the anchor, once no memtable waits for its flush.
    anchored: SeqNo,
    watch: Watch,
}

/// Why a committer ends.
pub(crate) enum End {
    /// The store is closed, and all waiting commits are written.
    Closed,
    /// A write has failed.
    Failed(Error),
    /// The engine has no workers (see [`State::is_still`]), and can have them again.
    Moves,
}

impl Committer {
    pub(crate) fn new(
        slot: Arc<Slot>,
        state: Arc<State>,
        queue: Arc<Queue>,
        durability: Durability,
        answered: Answered,
        last: &Marker,
    ) -> Self {
        let watch = Watch::new(state.is_still);
        slot.note_batches(last.number, last.number);
        Self {
            slot,
            state,
            queue,
            durability,
            answered,
            guards: Guards::default(),
            number: last.number,
            data_end: last.data_end_after(),
            // Opening the store has synced everything.
            synced: last.number,
            synced_at: Instant::now(),
            sealed: Sealed::default(),
            anchored: 0,
            watch,
        }
    }

    /// Runs until the queue is closed and empty, or a write fails.
    pub(crate) fn run(&mut self) -> End {
        loop {
            match self.queue.take(self.wait_max()) {
                Taken::Jobs(jobs) => self.commit_all(jobs),
                Taken::Nothing => self.sealed.note_quiet(),
                Taken::Closed => break,
            }
            self.sync_if_due(false);
            self.sealed.free_unused();
            let checked = self.watch.look(&self.slot.room, &self.state);
            if let Err(error) = checked.and_then(|()| self.state.check()) {
                return End::Failed(error);
            }
            if self.watch.is_over_standstill(&self.slot.room) && self.state.is_idle() {
                return End::Moves;
            }
        }
        self.sync_if_due(true);
        End::Closed
    }

    /// The state for reopening the engine.
    pub(crate) fn kept(&self) -> Kept {
        Kept { number: self.number, synced: self.synced }
    }

    /// Wakes up to free memtables, to check disk and engine, and in relaxed mode for the pending fsync.
    fn wait_max(&self) -> Option<Duration> {
        let owed = self.synced < self.number && self.state.check().is_ok();
        let sync = owed.then(|| {
            let due = Duration::from_millis(RELAXED_SYNC_MS_MAX);
            due.saturating_sub(self.synced_at.elapsed()).max(Duration::from_millis(1))
        });
        sync.into_iter().chain(self.sealed.look_after()).chain(self.watch.look_after()).min()
    }

    fn commit_all(&mut self, jobs: Vec<Job>) {
        self.watch.note_write();
        let mut group = Vec::with_capacity(jobs.len());
        let mut bytes = 0;
        for mut job in jobs {
            if let Some(other) = job.other.take() {
                // Earlier commits are written first.
                self.commit_group(std::mem::take(&mut group));
                bytes = 0;
                let done = self.take_turn(&job, other);
                job.answer(done);
                continue;
            }
            let more: usize = job.writes.iter().map(Write::bytes).sum();
            if !group.is_empty() && bytes + more > GROUP_BYTES_MAX {
                self.commit_group(std::mem::take(&mut group));
                bytes = 0;
            }
            bytes += more;
            group.push(job);
        }
        self.commit_group(group);
    }

    fn commit_group(&mut self, group: Vec<Job>) {
        if let Err(error) = self.prepare(&group) {
            for job in group {
                job.answer(Err(error.clone()));
            }
            return;
        }
        let mut waiting = Vec::with_capacity(group.len());
        let health = self.slot.room.health();
        for job in group {
            if let Err(error) = self.slot.room.check(&health, &job.writes) {
                job.answer(Err(error));
            } else if job.guards.iter().all(|guard| self.guards.exists(guard)) {
                job.writes.iter().for_each(|write| self.guards.note(write));
                waiting.push(job);
            } else {
                job.answer(Err(Error::moved("the guard of this transaction is gone")));
            }
        }
        if waiting.is_empty() {
            return;
        }
        let done = self.write_group(&mut waiting);
        for job in waiting {
            job.answer(done.clone());
        }
    }

    /// Writes all writes of the group as one batch.
    fn write_group(&mut self, group: &mut [Job]) -> Result<()> {
        let change = change_of_data(group.iter().flat_map(|job| &job.writes));
        let marker = Marker { writes_data: change.is_some(), ..self.next_marker() };
        let items = group.iter().map(|job| job.writes.len()).sum::<usize>();
        let mut batch = self.begin_batch(&marker, items + 1);
        let keyspaces = &self.state.keyspaces;
        if change == Some(DataChange::Deletes) {
            batch.insert(&keyspaces.data, Bytes::from_static(ANCHOR), Bytes::new());
        }
        for write in group.iter_mut().flat_map(|job| std::mem::take(&mut job.writes)) {
            let keyspace = keyspaces.of(write.key());
            match write {
                Write::Put(key, value) => batch.insert(keyspace, key, value),
                Write::Delete(key) => batch.remove(keyspace, key),
            }
        }
        let mode = match self.durability {
            Durability::Synced => PersistMode::SyncData,
            Durability::Relaxed => PersistMode::Buffer,
        };
        self.write(batch, &marker, mode)
    }

    /// The marker of the next batch, except for the fields that depend on its contents.
    fn next_marker(&self) -> Marker {
        Marker {
            number: self.number + 1,
            synced: self.synced,
            sequence_least: self.state.published().snapshot.seqno(),
            data_end: self.data_end,
            ..Marker::default()
        }
    }

    /// A batch with capacity for this many items besides the marker, which is always the first.
    fn begin_batch(&self, marker: &Marker, items: usize) -> OwnedWriteBatch {
        let mut batch = OwnedWriteBatch::with_capacity(self.state.db.clone(), items + 1);
        let key = self.state.marker.clone();
        batch.insert(&self.state.keyspaces.own, key, Bytes::copy_from_slice(&marker.encode()));
        batch
    }

    /// Executes a job that is not a batch, if its guards exist.
    fn take_turn(&mut self, job: &Job, other: Other) -> Result<()> {
        self.prepare(std::slice::from_ref(job))?;
        if !job.guards.iter().all(|guard| self.guards.exists(guard)) {
            return Err(Error::moved("the guard of this job is gone"));
        }
        if !matches!(other, Other::Drop(..) | Other::Pack(..)) {
            self.slot.room.health().check(Intake::default())?;
        }
        match other {
            Other::Load(load) => self.load(load),
            Other::Drop(range, tell) => {
                // The caller may have gone.
                let _ = tell.send(self.drop_range(&range)?);
                Ok(())
            }
            Other::Pack(ranges, tell) => {
                let until = self.state.published().snapshot.seqno();
                let _ = tell.send(Content::of(&self.state.keyspaces.data, &ranges, until));
                Ok(())
            }
            Other::Room(until) => self.make_room(until),
            Other::Layer(layer) => {
                adopt::register(&self.state, layer)?;
                self.guards.forget_missing();
                self.state.publish(self.guards.show());
                Ok(())
            }
        }
    }

    /// Raises the sequence number to `until`, and flushes earlier writes.
    fn make_room(&mut self, until: SeqNo) -> Result<()> {
        let state = self.state.clone();
        state.db.supervisor.seqno.fetch_max(until);
        state.db.supervisor.snapshot_tracker.set(until);
        state.publish(self.guards.show());
        // Only a load may be newer than the last batch (see `open`), so a batch is written before the adopted tables.
        let marker = self.next_marker();
        let batch = self.begin_batch(&marker, 0);
        self.write(batch, &marker, PersistMode::SyncData)?;
        self.seal(&state.keyspaces.data)
    }

    /// Drops tables of a range.
    ///
    /// After a start, the tables of `data` must reach at least as far as before: journal entries below their highest
    /// sequence number count as flushed, entries above it as missing (see `open`). So the anchor, which is in no
    /// range, must be in a table and newer than all dropped tables.
    fn drop_range(&mut self, range: &KeyRange) -> Result<Dropped> {
        let state = self.state.clone();
        let data = &state.keyspaces.data;
        // The engine would wait for running compactions, and commits for the engine. One that begins just now is
        // waited for.
        if state.is_merging() || data.sealed_memtable_count() > 0 {
            let is_none = Chosen::of(data, range).is_none();
            return Ok(if is_none { Dropped::All } else { Dropped::NotNow });
        }
        // No memtable is flushed meanwhile.
        let flushes = data.tree.get_flush_lock();
        let Some(chosen) = Chosen::of(data, range) else { return Ok(Dropped::All) };
        if chosen.newest >= self.anchored {
            drop(flushes);
            self.write_anchor()?;
            self.seal(data)?;
            return Ok(Dropped::NotNow);
        }
        let trim = state.keep_tables(&chosen.paths);
        chosen.drop_from(data).map_err(|error| state.fail(&error))?;
        drop(flushes);
        state.publish(self.guards.show());
        // The engine frees old tables when it flushes a memtable, if it knows that they are no longer read.
        self.write_anchor()?;
        (0..SNAPSHOTS_PER_LOOK).for_each(|_| drop(state.db.snapshot()));
        self.seal(data)?;
        trim.start();
        Ok(if chosen.more { Dropped::Part } else { Dropped::All })
    }

    fn write_anchor(&mut self) -> Result<()> {
        let marker = Marker { writes_data: true, ..self.next_marker() };
        let mut batch = self.begin_batch(&marker, 1);
        batch.insert(&self.state.keyspaces.data, Bytes::from_static(ANCHOR), Bytes::new());
        self.write(batch, &marker, PersistMode::SyncData)?;
        self.anchored = self.state.published().snapshot.seqno();
        Ok(())
    }

    /// Makes a load visible.
    fn load(&mut self, load: Load) -> Result<()> {
        // Tables must not be newer than journals, which relaxed commits leave unsynced. And `data` may hold something
        // newer than the last batch only if that batch announces it.
        let marker = Marker { loads: true, ..self.next_marker() };
        let batch = self.begin_batch(&marker, 0);
        self.write(batch, &marker, PersistMode::SyncData)?;
        load.register()?;
        self.data_end = marker.sequence_least + 1;
        self.guards.forget_missing();
        self.state.publish(self.guards.show());
        Ok(())
    }

    /// Looks up the guards of a group, before any effect of the group, and waits while the engine is behind.
    fn prepare(&mut self, group: &[Job]) -> Result<()> {
        self.state.check()?;
        self.seal_full()?;
        let found = self.state.published().take_found();
        let guards = group.iter().flat_map(|job| &job.guards).chain(&found);
        let keyspaces = &self.state.keyspaces;
        self.guards.learn(guards, |guard| keyspaces.of(guard).contains_key(guard))?;
        let runs = keyspaces.all().map(|(keyspace, _)| keyspace.tree.l0_run_count());
        keyspaces.hurry.set(runs.iter().any(|runs| *runs > RUNS_RESTING_MAX));
        while self.state.keyspaces.are_behind() {
            self.state.check_engine()?;
            if self.state.is_still {
                // There are no workers to wait for, and compactions have to wait.
                return keyspaces.all().iter().try_for_each(|(it, _)| self.state.flush_here(it));
            }
            std::thread::sleep(Duration::from_millis(STALL_LOOK_MS));
        }
        Ok(())
    }

    /// Rotates full memtables into the queue for flushing, where `Keyspaces::are_behind` sees them.
    ///
    /// The engine leaves this to its worker and sends it a request with every batch. While that worker compacts, memtable
    /// and journal would grow without bound, and a thousand requests fill its queue, on which it then deadlocks.
    fn seal_full(&mut self) -> Result<()> {
        let state = self.state.clone();
        state.keyspaces.full().try_for_each(|keyspace| self.seal(keyspace))
    }

    fn seal(&mut self, keyspace: &Keyspace) -> Result<()> {
        self.sealed.keep(keyspace.tree.active_memtable());
        keyspace.rotate_memtable().map_err(|error| self.state.fail(&error))?;
        if self.state.is_still { self.state.flush_here(keyspace) } else { Ok(()) }
    }

    /// Writes a batch and publishes it to readers. After an error here the state on disk is unknown, so the engine
    /// must be reopened.
    fn write(&mut self, batch: OwnedWriteBatch, marker: &Marker, mode: PersistMode) -> Result<()> {
        batch.durability(Some(mode)).commit().map_err(|error| self.state.fail(&error))?;
        self.number = marker.number;
        self.slot.note_batches(self.number, self.synced);
        self.data_end = marker.data_end_after();
        self.state.publish(self.guards.show());
        if mode == PersistMode::SyncData { self.note_synced() } else { Ok(()) }
    }

    /// Syncs relaxed commits, at once or when it is due.
    fn sync_if_due(&mut self, at_once: bool) {
        let due = self.synced_at.elapsed() >= Duration::from_millis(RELAXED_SYNC_MS_MAX);
        if self.synced == self.number || !(due || at_once) || self.state.check().is_err() {
            return;
        }
        let synced = self.state.db.persist(PersistMode::SyncData);
        // The error is kept in the state: every later caller gets it.
        let _ = synced.map_err(|error| self.state.fail(&error)).and_then(|()| self.note_synced());
    }

    fn note_synced(&mut self) -> Result<()> {
        self.synced = self.number;
        self.slot.note_batches(self.number, self.synced);
        self.synced_at = Instant::now();
        self.answered.write(self.number).map_err(|error| self.state.fail(&error))
    }
}
