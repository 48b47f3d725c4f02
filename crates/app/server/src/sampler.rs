//! Samples size and traffic of all partitions every ten seconds for the history.

use std::sync::Arc;

use lazuli_history::Recorder;
use tokio::task::JoinHandle;

/// Begins to look, until the task is aborted.
pub(crate) fn start(recorder: Arc<Recorder>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(recorder.until_next()).await;
            if let Err(error) = recorder.record().await {
                // The counters are kept; only the sizes of unused partitions are stale.
                tracing::warn!(%error, "cannot read the sizes of all partitions yet");
            }
        }
    })
}
