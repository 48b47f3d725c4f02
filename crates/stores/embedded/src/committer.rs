//! The one thread that writes: it takes everything that waits, checks guards in order, and writes it as one batch with
//! one sync. While that is on its way to the disk the next group gathers.
//!
//! Because nothing else writes, the guards that it has seen stay as it knows them, and a snapshot that it takes between
//! two batches never shows half of one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::{AbstractTree, OwnedWriteBatch, PersistMode};
use lazuli_store::{Error, Result, Write};

use crate::bulk::Load;
use crate::guards::Guards;
use crate::marker::{Answered, Marker};
use crate::queue::{Job, Queue, Taken};
use crate::settings::{Durability, RELAXED_SYNC_MS_MAX};
use crate::state::State;

/// A group ends before the commit that would take it over this size, so that none waits long for others.
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The engine halts writers at 4 memtables that wait to be written out, and at 30 runs of tables that wait to be merged,
/// and does not notice there if its workers have failed. Waiting below that, and looking, keeps a failure from becoming
/// a hang.
const SEALED_MEMTABLES_MAX: usize = 3;
const RUNS_MAX: usize = 28;
const STALL_LOOK_MS: u64 = 5;

pub(crate) struct Committer {
    state: Arc<State>,
    queue: Arc<Queue>,
    durability: Durability,
    answered: Answered,
    guards: Guards,
    /// The last batch that was written.
    number: u64,
    /// The last batch that is on disk for certain.
    synced: u64,
    synced_at: Instant,
}

impl Committer {
    pub(crate) fn new(
        state: Arc<State>,
        queue: Arc<Queue>,
        durability: Durability,
        answered: Answered,
        number: u64,
    ) -> Self {
        Self {
            state,
            queue,
            durability,
            answered,
            guards: Guards::default(),
            number,
            // Opening the store synced what it found.
            synced: number,
            synced_at: Instant::now(),
        }
    }

    /// Runs until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        // Whatever ends this thread, a panic of the engine too, nobody may wait for it in vain.
        let _abandon = Abandon(self.queue.clone());
        loop {
            match self.queue.take(self.wait_max()) {
                Taken::Jobs(jobs) => self.commit_all(jobs),
                Taken::Nothing => {}
                Taken::Closed => break,
            }
            self.sync_if_due(false);
        }
        self.sync_if_due(true);
    }

    /// A relaxed committer wakes up for the sync that it owes.
    fn wait_max(&self) -> Option<Duration> {
        let owed = self.synced < self.number && self.state.check().is_ok();
        owed.then(|| {
            let due = Duration::from_millis(RELAXED_SYNC_MS_MAX);
            due.saturating_sub(self.synced_at.elapsed()).max(Duration::from_millis(1))
        })
    }

    fn commit_all(&mut self, jobs: Vec<Job>) {
        let mut group = Vec::with_capacity(jobs.len());
        let mut bytes = 0;
        for mut job in jobs {
            if let Some(load) = job.load.take() {
                // What came before it goes before it.
                self.commit_group(std::mem::take(&mut group));
                bytes = 0;
                let loaded = self.load(&job, load);
                job.answer(loaded);
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
        let marker = Marker {
            number: self.number + 1,
            synced: self.synced,
            sequence_least: self.state.published().snapshot.seqno(),
        };
        let items = group.iter().map(|job| job.writes.len()).sum::<usize>() + 1;
        let mut batch = OwnedWriteBatch::with_capacity(self.state.db.clone(), items);
        let key = self.state.marker.clone();
        batch.insert(&self.state.keyspace, key, Bytes::copy_from_slice(&marker.encode()));
        let mut waiting = Vec::with_capacity(group.len());
        for mut job in group {
            if job.guards.iter().all(|guard| self.guards.exists(guard)) {
                self.add(&mut batch, std::mem::take(&mut job.writes));
                waiting.push(job);
            } else {
                job.answer(Err(Error::moved("the guard of this transaction is gone")));
            }
        }
        if waiting.is_empty() {
            return;
        }
        let done = self.write(batch, marker.number);
        for job in waiting {
            job.answer(done.clone());
        }
    }

    /// Makes a load visible, unless a guard is gone.
    fn load(&mut self, job: &Job, load: Load) -> Result<()> {
        // Tables must not run ahead of journals, which commits leave unsynced where that is allowed.
        self.sync_if_due(true);
        self.prepare(std::slice::from_ref(job))?;
        if !job.guards.iter().all(|guard| self.guards.exists(guard)) {
            return Err(Error::moved("the guard of this load is gone"));
        }
        load.register()?;
        self.guards.forget_missing();
        self.state.publish(self.guards.show());
        Ok(())
    }

    /// Learns whether the guards of a group exist, before any effect of the group, and waits while the engine is behind.
    fn prepare(&mut self, group: &[Job]) -> Result<()> {
        self.state.check()?;
        let guards = group.iter().flat_map(|job| &job.guards);
        self.guards.learn(guards, |guard| self.state.keyspace.contains_key(guard))?;
        while self.is_behind() {
            self.state.check_engine()?;
            std::thread::sleep(Duration::from_millis(STALL_LOOK_MS));
        }
        Ok(())
    }

    fn is_behind(&self) -> bool {
        let keyspace = &self.state.keyspace;
        keyspace.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
            || keyspace.tree.l0_run_count() >= RUNS_MAX
    }

    fn add(&mut self, batch: &mut OwnedWriteBatch, writes: Vec<Write>) {
        for write in writes {
            self.guards.note(&write);
            match write {
                Write::Put(key, value) => batch.insert(&self.state.keyspace, key, value),
                Write::Delete(key) => batch.remove(&self.state.keyspace, key),
            }
        }
    }

    /// Writes a batch and shows it to readers. Any error here leaves it unknown what is on disk, so it ends the store.
    fn write(&mut self, batch: OwnedWriteBatch, number: u64) -> Result<()> {
        let mode = match self.durability {
            Durability::Synced => PersistMode::SyncData,
            Durability::Relaxed => PersistMode::Buffer,
        };
        batch.durability(Some(mode)).commit().map_err(|error| self.state.fail(&error))?;
        self.number = number;
        self.state.publish(self.guards.show());
        match self.durability {
            Durability::Synced => self.note_synced(),
            Durability::Relaxed => Ok(()),
        }
    }

    /// Syncs what relaxed commits have left, at once or when it is due.
    fn sync_if_due(&mut self, at_once: bool) {
        let due = self.synced_at.elapsed() >= Duration::from_millis(RELAXED_SYNC_MS_MAX);
        if self.synced == self.number || !(due || at_once) || self.state.check().is_err() {
            return;
        }
        let synced = self.state.db.persist(PersistMode::SyncData);
        // An error is kept in the state: every later caller gets it.
        let _ = synced.map_err(|error| self.state.fail(&error)).and_then(|()| self.note_synced());
    }

    fn note_synced(&mut self) -> Result<()> {
        self.synced = self.number;
        self.synced_at = Instant::now();
        self.answered.write(self.number).map_err(|error| self.state.fail(&error))
    }
}

/// Lets go of everybody who waits when the committer ends.
struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
