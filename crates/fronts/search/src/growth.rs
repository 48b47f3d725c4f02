//! Building the graphs of neighbours of a text index behind its back. It may take minutes, and ends early with the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lazuli_search_engine::ShardIndex;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::limits::GROWTH_RETRY_PAUSE;

#[derive(Default)]
pub(crate) struct Growth {
    stop: Arc<AtomicBool>,
    task: Option<JoinHandle<lazuli_search_engine::Result<()>>>,
    /// When building has failed.
    failed: Option<Instant>,
}

impl Growth {
    /// Begins to build what is missing, unless that is under way, or another index has its turn.
    pub(crate) async fn go_on(&mut self, shard: &Arc<ShardIndex>, turns: &Arc<Semaphore>) {
        if let Some(task) = self.task.take_if(|task| task.is_finished())
            && let Ok(Err(error)) = task.await
        {
            tracing::warn!(error = error.message, "a graph of neighbours is not built");
            self.failed = Some(Instant::now());
        }
        let waits = self.failed.is_some_and(|at| at.elapsed() < GROWTH_RETRY_PAUSE);
        if self.task.is_some() || waits || !shard.lacks_graph() {
            return;
        }
        let Ok(turn) = turns.clone().try_acquire_owned() else { return };
        let (shard, stop) = (shard.clone(), self.stop.clone());
        self.task = Some(spawn_blocking(move || {
            while shard.build_graph(&stop)? {}
            drop(turn);
            Ok(())
        }));
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
