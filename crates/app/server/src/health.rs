//! Which stores refuse writes, and why: for the health page, the status, the lists, the metrics and the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::host::Host;

/// How often it is looked what to log. A store whose write has failed stays away for longer than this.
const LOOK: Duration = Duration::from_millis(100);

/// What stores can be, as words for machines. A store that is down is not open, and one that is refused is not taken because
/// its folder is in doubt; one that is full takes deletions, one that has failed takes reads.
pub(crate) const STATES: [&str; 5] = ["well", "full", "failed", "down", "refused"];

/// A store that does not take everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unhealthy {
    /// The name of the shard, `catalog` or `blocks`.
    pub(crate) store: String,
    /// One of [`STATES`] but the first, or of the folder of block files, `in doubt`.
    pub(crate) state: &'static str,
    pub(crate) reason: String,
}

impl Unhealthy {
    pub(crate) fn json(&self) -> Value {
        json!({ "store": self.store, "state": self.state, "reason": self.reason })
    }
}

/// What the health page says: nothing but `ok` if all is well.
pub(crate) fn page(unhealthy: &[Unhealthy]) -> Option<String> {
    let line = |it: &Unhealthy| format!("{} {}: {}\n", it.store, it.state, it.reason);
    (!unhealthy.is_empty()).then(|| unhealthy.iter().map(line).collect())
}

/// Logs what stores begin and cease to be, until the task is aborted.
pub(crate) fn watch(host: Arc<Host>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut known = BTreeMap::new();
        loop {
            let found: BTreeMap<_, _> =
                host.unhealthy().into_iter().map(|it| (it.store.clone(), it)).collect();
            log_changes(&known, &found);
            known = found;
            tokio::time::sleep(LOOK).await;
        }
    })
}

fn log_changes(before: &BTreeMap<String, Unhealthy>, now: &BTreeMap<String, Unhealthy>) {
    for (store, it) in now {
        // The figures in a reason change all the time.
        if before.get(store).is_some_and(|before| before.state == it.state) {
            continue;
        }
        match it.state {
            "full" => tracing::warn!(store, reason = it.reason, "a store takes only deletions"),
            "failed" => tracing::error!(store, reason = it.reason, "a store takes no writes"),
            // The code that failed to open it has logged that.
            _ => {}
        }
    }
    for (store, it) in before.iter().filter(|(store, _)| !now.contains_key(*store)) {
        tracing::info!(store, was = it.state, "a store takes everything again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_health_page_names_store_state_and_reason() {
        assert_eq!(page(&[]), None);
        let full = Unhealthy { store: "s".to_owned(), state: "full", reason: "no room".to_owned() };
        assert!(STATES.contains(&full.state));
        assert_eq!(page(&[full]).as_deref(), Some("s full: no room\n"));
    }
}
