//! The keyspace of the cache: made before its front, because a durable one is read from the store first.

use std::sync::Arc;
use std::time::Duration;

use lazuli_keyspace::{Journal, Keyspace, Persistence, Shelf, UserShelf};
use tokio::task::JoinHandle;

use crate::core::Core;
use crate::endpoints::NotStarted;
use crate::failure::{Failure, Result};
use crate::settings::{FrontSettings, Port, Settings};

/// The name of the front.
pub(crate) const FRONT: &str = "cache";

/// How long the end of the server waits for what the cache has not written yet.
const FLUSH_MAX: Duration = Duration::from_secs(30);

/// Why the front is not served in a fleet.
const NO_FLEET: &str =
    "the cache keeps its keys in the memory of one process, and a fleet has several";

/// The keys, and where they lie on the shards if that matters.
pub(crate) struct OpenedCache {
    pub(crate) keyspace: Arc<Keyspace>,
    /// The users with rules, and where they are kept.
    pub(crate) users: Arc<UserShelf>,
    pub(crate) rules: Vec<(String, String)>,
    /// The map of the slots, in cluster mode.
    pub(crate) shelf: Option<Arc<Shelf>>,
    /// What writes to the store; none until the server serves, so that a start that is refused leaves no task behind.
    keeping: Option<JoinHandle<()>>,
}

impl OpenedCache {
    /// Makes the keyspace, with what the store has of it if it is durable. None where the front is not served.
    pub(crate) async fn open(settings: &Settings, core: &Core) -> Result<Option<Self>> {
        if !settings.serves(FRONT) || settings.fleet.is_some() {
            return Ok(None);
        }
        let failed = |error| {
            let message = format!("the cache cannot be read from the store: {error}");
            Failure::new("cache-not-loaded", message)
        };
        let (persistence, is_cluster) =
            (settings.cache.persistence, !settings.cache.cluster_ports.is_empty());
        let is_durable = persistence != Persistence::None;
        let shelf = match is_durable || is_cluster {
            true => Some(Arc::new(Shelf::open(core.engine.clone()).await.map_err(failed)?)),
            false => None,
        };
        let kept = shelf.clone().filter(|_| is_durable);
        let journal = kept.map(|shelf| Arc::new(Journal::new(shelf, persistence)));
        let (env, databases) = (core.engine.env().clone(), lazuli_cache::DATABASES);
        let keyspace = Arc::new(Keyspace::new(env, databases, journal));
        keyspace.load().await.map_err(failed)?;
        let users = Arc::new(UserShelf::new(core.engine.clone()));
        let rules = users.load().await.map_err(failed)?;
        let shelf = shelf.filter(|_| is_cluster);
        Ok(Some(Self { keyspace, users, rules, shelf, keeping: None }))
    }

    /// Begins to write to the store what commands change. To be called before the first of them.
    pub(crate) fn start(&mut self) {
        self.keeping = Some(tokio::spawn(self.keyspace.clone().keep()));
    }

    /// Writes what waits for the store, and lets go of it.
    pub(crate) async fn close(self) {
        if tokio::time::timeout(FLUSH_MAX, self.keyspace.flush()).await.is_err() {
            tracing::error!("the last writes of the cache could not be stored");
        }
        if let Some(keeping) = self.keeping {
            keeping.abort();
            let _ = keeping.await;
        }
    }
}

/// In a fleet the cache is left out, and refused where its port is asked for by number: free ports are for all fronts.
pub(crate) fn leave_out(own: &FrontSettings) -> Result<Option<NotStarted>> {
    match own.port {
        Port::Off => Ok(None),
        Port::Default(_) | Port::Asked(0) => {
            Ok(Some(NotStarted { name: own.front.name, reason: NO_FLEET.to_owned() }))
        }
        Port::Asked(_) => Err(Failure::new("cache-in-fleet", NO_FLEET)
            .hint("set cache-port to off on the nodes of a fleet")),
    }
}
