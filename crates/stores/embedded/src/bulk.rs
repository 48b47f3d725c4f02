//! Bulk loads: items that are written straight into tables, bypassing journal and memtable, and become visible all at once.
//!
//! A separate thread writes the tables, which are not visible yet, while commits continue. Then the load waits in
//! the committer's queue like a commit. In its turn the committer checks the guards, lets the thread register the
//! tables with the engine, and publishes the result. So a load is atomic, and is refused if one of its guards is
//! gone. The engine deletes unregistered tables at the next start.
//!
//! The writing thread is a background thread: it is rate-limited.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use fjall::AbstractTree;
use lazuli_env::real::Rests;
use lazuli_store::{Error, Item, Result};
use tokio::sync::{mpsc as tokio_mpsc, oneshot};

use crate::behind::give_way;
use crate::error::{from_engine, from_io};
use crate::state::State;

/// While this many runs of tables wait for compaction, loads wait, so that commits do not have to.
const RUNS_MAX: usize = 12;
const STALL_LOOK_MS: u64 = 5;
/// Parts that wait to be written. With more, the caller waits.
const PARTS_WAITING_MAX: usize = 4;

/// Tables that are written and wait for their turn. If it is dropped, they are discarded.
pub(crate) struct Load {
    turn: mpsc::Sender<()>,
    done: mpsc::Receiver<Result<()>>,
}

impl Load {
    /// Makes the items visible. Only the committer calls it, between two batches.
    pub(crate) fn register(self) -> Result<()> {
        // The thread that wrote the tables ends only after this, unless it panics.
        self.turn.send(()).map_err(|_| panicked())?;
        self.done.recv().unwrap_or_else(|_| Err(panicked()))
    }
}

/// Tables that are being written. If it is dropped, they are discarded.
pub(crate) struct Tables {
    parts: tokio_mpsc::Sender<Vec<Item>>,
    is_written: oneshot::Receiver<Result<Load>>,
}

impl Tables {
    /// Begins to write tables of `data`.
    pub(crate) fn begin(state: Arc<State>) -> Result<Self> {
        let (parts, coming) = tokio_mpsc::channel(PARTS_WAITING_MAX);
        let (written, is_written) = oneshot::channel();
        state.tell_load(parts.downgrade());
        let thread = std::thread::Builder::new().name("lazuli:load".to_owned());
        let thread = thread.spawn(move || run(&state, coming, written));
        thread.map_err(|error| from_io("the loading thread", &error))?;
        Ok(Self { parts, is_written })
    }

    /// Adds items, all of which are in `data` and after all earlier ones.
    pub(crate) async fn add(&mut self, items: Vec<Item>) -> Result<()> {
        if self.parts.send(items).await.is_ok() {
            return Ok(());
        }
        // The thread has ended early; its result has the reason.
        let ended = (&mut self.is_written).await.unwrap_or_else(|_| Err(panicked()));
        Err(ended.err().unwrap_or_else(panicked))
    }

    pub(crate) async fn finish(self) -> Result<Load> {
        drop(self.parts);
        self.is_written.await.unwrap_or_else(|_| Err(panicked()))
    }
}

fn run(
    state: &Arc<State>,
    mut coming: tokio_mpsc::Receiver<Vec<Item>>,
    written: oneshot::Sender<Result<Load>>,
) {
    give_way();
    let _working = state.working();
    let tables = wait_for_merges(state).and_then(|()| {
        let mut tables =
            state.keyspaces.data.start_ingestion().map_err(|error| from_engine(&error))?;
        let mut rests = Rests::default();
        while let Some(items) = coming.blocking_recv() {
            state.check()?;
            rests.begin();
            for (key, value) in items {
                tables.write(key, value).map_err(|error| from_engine(&error))?;
                rests.look();
            }
        }
        Ok(tables)
    });
    let (turn, my_turn) = mpsc::channel();
    let (answer, done) = mpsc::channel();
    let tables = match tables {
        Ok(tables) => tables,
        Err(error) => {
            // The caller may have gone.
            let _ = written.send(Err(error));
            return;
        }
    };
    if written.send(Ok(Load { turn, done })).is_err() || my_turn.recv().is_err() {
        // The caller has gone, or the load was refused.
        return;
    }
    // After an error here the state on disk is unknown, so the store fails.
    let _ = answer.send(tables.finish().map_err(|error| state.fail(&error)));
}

fn wait_for_merges(state: &State) -> Result<()> {
    while state.keyspaces.data.tree.l0_run_count() >= RUNS_MAX {
        state.check_engine()?;
        std::thread::sleep(Duration::from_millis(STALL_LOOK_MS));
    }
    state.check()
}

fn panicked() -> Error {
    Error::internal("load-failed", "the thread that wrote the tables panicked")
}
