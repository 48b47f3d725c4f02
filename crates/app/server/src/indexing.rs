//! Work on documents beside the requests: indexes whose policy was changed are built and old ones deleted, and ranges are
//! split where a throughput asks for more of them or one has become too large. Containers whose writes were held back are let go.

use std::sync::Arc;
use std::time::Duration;

use lazuli_engine::Engine;
use lazuli_shapes::document::{Documents, Sizing};
use tokio::task::JoinHandle;

/// How often it looks whether there is something to do.
const INTERVAL: Duration = Duration::from_secs(1);

/// An index that takes hours does not keep ranges from being split.
pub(crate) fn start(engine: Arc<Engine>, sizing: Sizing) -> [JoinHandle<()>; 2] {
    let documents = Documents::new(engine).sized(sizing);
    let indexing = documents.clone();
    let tend = async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(error) = indexing.tend().await {
                tracing::warn!(%error, "the index of a container of documents is not built yet");
            }
        }
    };
    let resize = async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(error) = documents.resize().await {
                tracing::warn!(%error, "a range of documents is not split yet");
            }
            if let Err(error) = documents.release_lapsed().await {
                tracing::warn!(%error, "a container of documents does not take writes again yet");
            }
        }
    };
    [tokio::spawn(tend), tokio::spawn(resize)]
}
