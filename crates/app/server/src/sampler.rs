//! Samples size and traffic of all partitions every ten seconds for the history. In a fleet, each node then tells the others
//! what it has sampled, and adds what they tell.

use std::sync::Arc;
use std::time::Duration;

use lazuli_history::Recorder;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How long after the begin of a step a node tells of the one before.
const TOLD_AFTER: Duration = Duration::from_secs(1);
/// How long after that it reads what others have told. With clocks that agree nearly, that is the same step.
const HEARD_AFTER: Duration = Duration::from_secs(2);

/// Begins to look, until the tasks are aborted.
pub(crate) fn start(recorder: Arc<Recorder>) -> Vec<JoinHandle<()>> {
    let mut tasks = vec![tokio::spawn(sample(recorder.clone()))];
    if recorder.is_of_fleet() {
        // A task of its own: a catalog that does not answer must not make a step longer.
        tasks.push(tokio::spawn(exchange(recorder)));
    }
    tasks
}

async fn sample(recorder: Arc<Recorder>) {
    loop {
        sleep(recorder.until_next()).await;
        if let Err(error) = recorder.record().await {
            // The counters are kept; only the sizes of unused partitions are stale.
            tracing::warn!(%error, "cannot read the sizes of all partitions yet");
        }
    }
}

async fn exchange(recorder: Arc<Recorder>) {
    let mut is_away = false;
    // The first look: from here on everything counts that others tell.
    let mut outcome = recorder.hear().await;
    loop {
        match outcome {
            Err(error) if !is_away => {
                is_away = true;
                tracing::warn!(%error, "figures of other nodes are old, or theirs of this one");
            }
            Ok(()) if is_away => {
                is_away = false;
                tracing::info!("exchanges figures with other nodes again");
            }
            _ => {}
        }
        sleep(recorder.until_next() + TOLD_AFTER).await;
        let told = recorder.tell().await;
        sleep(HEARD_AFTER).await;
        outcome = told.and(recorder.hear().await);
    }
}
