//! Follows what other nodes change in the catalog: shards that come and go, maps and policies, accounts. And opens shards
//! again whose databases were away. Nothing is wrong without it, as requests find out by themselves what has moved; it
//! bounds how long a removed key or an old policy is in force elsewhere.
//!
//! What has to do with shards is a task of its own: a database that does not answer must not hold up the rest.

use std::sync::Arc;
use std::time::Duration;

use lazuli_shardmap::ShardId;
use lazuli_store::Result;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::{FOLLOWED_WITHIN, Nodes};
use crate::home::Home;
use crate::host::Host;
use crate::registry::Registry;

/// How often the catalog is asked for its version.
const LOOK: Duration = FOLLOWED_WITHIN.checked_div(4).expect("four is not zero");
/// How often a shard is tried to be opened whose database was away.
const REOPEN: Duration = Duration::from_secs(2);
/// How often nodes that are gone are forgotten, and this node tells of itself anew if it was.
const TIDY: Duration = Duration::from_secs(20);

pub(crate) struct Follower {
    pub(crate) host: Arc<Host>,
    pub(crate) accounts: Arc<Registry>,
    pub(crate) nodes: Arc<Nodes>,
}

/// What was seen last.
#[derive(Default)]
struct Seen {
    version: u64,
    records: u64,
    removals: u64,
}

impl Follower {
    /// Begins to follow, until the tasks are aborted.
    pub(crate) fn start(self) -> Vec<JoinHandle<()>> {
        let changed = Arc::new(Notify::new());
        let shards = Shards { host: self.host.clone(), is_fleet: self.nodes.is_fleet() };
        let mut tasks = vec![tokio::spawn(shards.run(changed.clone()))];
        if self.nodes.is_fleet() {
            tasks.push(tokio::spawn(self.run(changed)));
        }
        tasks
    }

    async fn run(self, changed: Arc<Notify>) {
        let (mut seen, mut tidied, mut is_away) = (Seen::default(), Instant::now(), false);
        loop {
            tokio::time::sleep(LOOK).await;
            let mut outcome = self.follow(&mut seen, &changed).await;
            if outcome.is_ok() && tidied.elapsed() >= TIDY {
                outcome = self.tidy(&mut seen).await;
                tidied = Instant::now();
            }
            match outcome {
                Err(error) if !is_away => {
                    is_away = true;
                    tracing::warn!(%error, "cannot follow what other nodes change");
                }
                Ok(()) if is_away => {
                    is_away = false;
                    tracing::info!("follows what other nodes change again");
                }
                _ => {}
            }
        }
    }

    async fn follow(&self, seen: &mut Seen, changed: &Notify) -> Result<()> {
        let engine = &self.host.engine;
        let catalog = engine.manager().catalog();
        let followed = catalog.changed_since(seen.version).await?;
        if followed.version != seen.version {
            changed.notify_one();
            engine.router().follow(followed.containers.as_ref()).await?;
            seen.version = followed.version;
        }
        let records = catalog.records_version().await?;
        if records != seen.records {
            self.accounts.reload().await?;
            seen.records = records;
        }
        Ok(())
    }

    async fn tidy(&self, seen: &mut Seen) -> Result<()> {
        let removals = self.host.engine.removals();
        if removals != seen.removals {
            self.nodes.tell().await?;
            seen.removals = removals;
        }
        self.nodes.tidy().await
    }
}

/// What has to do with shards.
struct Shards {
    host: Arc<Host>,
    is_fleet: bool,
}

impl Shards {
    async fn run(self, changed: Arc<Notify>) {
        let mut reopened = Instant::now();
        loop {
            let is_changed = timeout(REOPEN, changed.notified()).await.is_ok();
            if reopened.elapsed() >= REOPEN {
                self.reopen().await;
                reopened = Instant::now();
            }
            if !is_changed {
                continue;
            }
            if let Err(error) = self.follow().await {
                tracing::debug!(%error, "cannot read the shards of the catalog");
            }
            for shard in self.host.live().all() {
                // Requests find out by themselves. What is shown and swept goes by what is cached.
                if let Err(error) = shard.local().refresh().await {
                    tracing::debug!(shard = %shard.id, %error, "cannot read what a shard holds");
                }
            }
        }
    }

    /// Opens shards that other nodes have added, and lets those go that they have removed.
    async fn follow(&self) -> Result<()> {
        if !self.is_fleet {
            return Ok(());
        }
        let shards = self.host.engine.manager().catalog().shards().await?;
        let is_there = |id: &ShardId| shards.iter().any(|shard| shard.id == *id);
        let known = self.host.known();
        for gone in known.iter().filter(|id| !is_there(id)) {
            tracing::info!(shard = %gone, "a shard was removed by another node");
            self.host.let_go(*gone);
        }
        for shard in shards.iter().filter(|shard| !known.contains(&shard.id)) {
            match self.host.open(shard).await {
                Ok(()) => tracing::info!(shard = shard.name, "took a shard into use"),
                Err(error) => tracing::error!(shard = shard.name, %error, "a shard is down"),
            }
        }
        Ok(())
    }

    /// Tries to open shards whose databases were away.
    async fn reopen(&self) {
        let down = self.host.down_for_now();
        if down.is_empty() {
            return;
        }
        let Ok(shards) = self.host.engine.manager().catalog().shards().await else { return };
        for shard in shards.iter().filter(|shard| down.contains(&shard.id)) {
            if !matches!(Home::of(&shard.location), Ok(Home::Server(_))) {
                continue;
            }
            if self.host.open(shard).await.is_ok() {
                tracing::info!(shard = shard.name, "a shard is in use again");
            }
        }
    }
}
