//! Indexes of documents whose policy was changed are built, and old ones deleted, beside the requests.

use std::sync::Arc;
use std::time::Duration;

use lazuli_engine::Engine;
use lazuli_shapes::document::Documents;
use tokio::task::JoinHandle;

/// How often it looks whether there is something to do.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn start(engine: Arc<Engine>) -> JoinHandle<()> {
    let documents = Documents::new(engine);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(error) = documents.tend().await {
                tracing::warn!(%error, "the index of a container of documents is not built yet");
            }
        }
    })
}
