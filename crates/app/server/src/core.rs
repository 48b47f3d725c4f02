//! The core of a server without its listeners: catalog, shards, engine and block files on a data folder.
//!
//! `serve` starts its background work; `fsck` only looks.

use std::sync::Arc;

use lazuli_engine::{Engine, Settings as EngineSettings};
use lazuli_shapes::blob::Blobs;
use lazuli_shardmap::manager::NewShard;
use lazuli_store::{Error, Result};
use lazuli_store_blocks::BlockFiles;
use lazuli_store_embedded::Settings as StoreSettings;

use crate::behind::Behind;
use crate::folder::Folder;
use crate::host::{Host, open_store};
use crate::settings::{Durability, Settings};

/// The shard that a new data folder begins with.
const FIRST_SHARD: &str = "shard-0001";

pub(crate) struct Core {
    pub(crate) host: Arc<Host>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) files: BlockFiles,
    pub(crate) blobs: Blobs,
    /// Where the engine works behind the requests.
    _behind: Behind,
}

impl Core {
    /// Opens everything. A catalog without shards gets its first one.
    pub(crate) async fn open(folder: &Folder, settings: &Settings) -> Result<Self> {
        let store_settings = store_settings(settings);
        let catalog = Arc::new(open_store(&folder.catalog(), &store_settings).await?);
        let behind = Behind::start().map_err(|error| Error::internal("no-threads", error))?;
        let (env, kept) = (behind.env(), catalog.clone());
        let engine_settings = EngineSettings::default();
        // Those of the balancer are not to wait for each other.
        let moves_at_once =
            engine_settings.moves_at_once.max(settings.balance.planner.moves_at_once);
        let outside = lazuli_shapes::blob::outside();
        let engine_settings = EngineSettings { moves_at_once, outside, ..engine_settings };
        let engine = Engine::on(env, engine_settings, kept).await?;
        if engine.manager().catalog().shards().await?.is_empty() {
            engine.manager().add_shard(&first_shard()).await?;
        }
        let host = Arc::new(Host::new(folder.shards(), store_settings, engine.clone(), catalog));
        host.open_all().await?;
        let files = open_files(folder, settings).await?;
        let blobs = Blobs::new(engine.clone(), Arc::new(files.clone()));
        Ok(Self { host, engine, files, blobs, _behind: behind })
    }

    /// Finishes what a crash left half done, and reports what it cannot decide.
    pub(crate) async fn recover(&self) {
        let report = match self.engine.manager().reconcile().await {
            Ok(report) => report,
            Err(error) => return tracing::error!(%error, "catalog and shards cannot be compared"),
        };
        if !report.finished.is_empty() {
            tracing::info!(operations = ?report.finished, "finished what was left half done");
        }
        for (operation, error) in &report.stuck {
            tracing::warn!(operation, %error, "an operation cannot be finished yet");
        }
        for (container, error) in &report.undeleted {
            tracing::warn!(%container, %error, "a deletion cannot be finished yet");
        }
        for shard in &report.ahead {
            tracing::error!(%shard, "a shard is ahead of the catalog, which was restored from a copy");
        }
        if !report.differences.is_empty() {
            let count = report.differences.len();
            tracing::error!(count, "catalog and shards differ: `lazuli fsck` says where");
        }
    }

    /// Closes all stores, so that the next start is fast.
    pub(crate) async fn close(self) {
        self.host.close_all().await;
        if let Err(error) = self.files.close().await {
            tracing::warn!(%error, "block files were not closed cleanly");
        }
    }
}

/// Opens the block files without holding up other tasks: there may be leftovers to remove.
async fn open_files(folder: &Folder, settings: &Settings) -> Result<BlockFiles> {
    let durability = match settings.durability {
        Durability::Synced => lazuli_store_blocks::Durability::Synced,
        Durability::Relaxed => lazuli_store_blocks::Durability::Relaxed,
    };
    let path = folder.blocks();
    let opening = tokio::task::spawn_blocking(move || BlockFiles::open(&path, durability));
    opening.await.map_err(|error| Error::internal("blocks-panicked", error))?
}

fn store_settings(settings: &Settings) -> StoreSettings {
    StoreSettings {
        cache_bytes: settings.cache_bytes,
        durability: match settings.durability {
            Durability::Synced => lazuli_store_embedded::Durability::Synced,
            Durability::Relaxed => lazuli_store_embedded::Durability::Relaxed,
        },
        ..StoreSettings::default()
    }
}

fn first_shard() -> NewShard {
    NewShard {
        name: FIRST_SHARD.to_owned(),
        location: FIRST_SHARD.to_owned(),
        region: "local".to_owned(),
        ..NewShard::default()
    }
}
