//! The core of a server without its listeners: catalog, shards, engine and block files on a data folder.
//!
//! `serve` starts its background work; `fsck` only looks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lazuli_engine::{Engine, Settings as EngineSettings};
use lazuli_shapes::blob::Blobs;
use lazuli_shardmap::manager::NewShard;
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Result};
use lazuli_store_blocks::BlockFiles;
use lazuli_store_embedded::{EmbeddedStore, Settings as StoreSettings};
use tokio::task::JoinHandle;

use crate::behind::Behind;
use crate::block_folder::{BlockFolder, Closed};
use crate::folder::Folder;
use crate::host::{Host, open_store};
use crate::settings::{Durability, Settings};

/// The shard that a new data folder begins with.
const FIRST_SHARD: &str = "shard-0001";
/// The folder in which its store is made.
const FIRST_STORE: &str = "first-shard.new";

pub(crate) struct Core {
    pub(crate) host: Arc<Host>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) files: BlockFiles,
    pub(crate) folder: Arc<BlockFolder>,
    pub(crate) blobs: Blobs,
    /// Where the engine works behind the requests.
    _behind: Behind,
}

impl Core {
    /// Opens everything. A catalog without shards gets its first one.
    pub(crate) async fn open(folder: &Folder, settings: &Settings) -> Result<Self> {
        let store_settings = store_settings(settings);
        check_catalog(folder)?;
        let first_store = FirstStore::begin(folder, &store_settings);
        let catalog = Arc::new(open_store(&folder.catalog(), &store_settings).await?);
        check_blank(folder, &lazuli_store::Newest::of(&*catalog)).await?;
        let behind = Behind::start().map_err(|error| Error::internal("no-threads", error))?;
        let (env, kept) = (behind.env(), catalog.clone());
        let engine_settings = EngineSettings::default();
        // Those of the balancer are not to wait for each other.
        let moves_at_once =
            engine_settings.moves_at_once.max(settings.balance.planner.moves_at_once);
        let outside = lazuli_shapes::blob::outside();
        let deriving = lazuli_shapes::document::deriving();
        let engine_settings =
            EngineSettings { moves_at_once, outside, deriving, ..engine_settings };
        let engine = Engine::on(env, engine_settings, kept).await?;
        if engine.manager().catalog().shards().await?.is_empty() {
            engine.manager().add_shard(&first_shard()).await?;
            if let Some(first_store) = first_store {
                first_store.put(&folder.shards().join(FIRST_SHARD)).await?;
            }
        }
        let host = Arc::new(Host::new(folder.shards(), store_settings, engine.clone(), catalog));
        let closed = Closed::look(folder.blocks(), &host.lineage).await?;
        let older_catalog = host.open_all(closed.highest_start()).await?;
        let durability = block_durability(settings);
        let folder = Arc::new(closed.open(durability, &host.lineage, older_catalog).await?);
        let files = folder.files().clone();
        let blobs = Blobs::new(engine.clone(), Arc::new(files.clone()));
        Ok(Self { host, engine, files, folder, blobs, _behind: behind })
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
        if let Err(error) = self.files.close().await {
            tracing::warn!(%error, "block files were not closed cleanly");
        }
        self.host.close_all(&self.folder).await;
    }
}

/// The store of the first shard, made while that of the catalog is made: on a new folder both take the same time, most of
/// it fsyncs. It is made beside the shards and gets its place when the catalog knows the shard, so that a crash in between
/// leaves no shard without a catalog.
struct FirstStore {
    path: PathBuf,
    making: JoinHandle<Result<()>>,
}

impl FirstStore {
    /// None if the folder is not new.
    fn begin(folder: &Folder, settings: &StoreSettings) -> Option<Self> {
        if EmbeddedStore::exists(folder.catalog()) {
            return None;
        }
        let (path, settings) = (folder.path().join(FIRST_STORE), settings.clone());
        let made = path.clone();
        let making = tokio::task::spawn_blocking(move || {
            // A start that ended half-way may have left one.
            let _ = std::fs::remove_dir_all(&made);
            EmbeddedStore::create(&made, &settings)
        });
        Some(Self { path, making })
    }

    async fn put(self, place: &Path) -> Result<()> {
        self.making.await.map_err(|error| Error::internal("store-panicked", error))??;
        let moved = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        let moved = moved.and_then(|()| std::fs::rename(&self.path, place));
        moved.map_err(|error| Error::internal("file-error", error))
    }
}

/// Refuses to begin an empty catalog beside shards that have one: everything in them would seem to be gone.
fn check_catalog(folder: &Folder) -> Result<()> {
    if EmbeddedStore::exists(folder.catalog()) || !has_shards(folder) {
        return Ok(());
    }
    Err(no_catalog(folder, "is missing"))
}

/// The same for a catalog in which nothing was ever written.
async fn check_blank(folder: &Folder, catalog: &dyn Reader) -> Result<()> {
    let page = catalog.scan(&KeyRange::all(), Direction::Forward, PageLimit::items(1)).await?;
    if page.items.is_empty() && has_shards(folder) {
        return Err(no_catalog(folder, "is empty"));
    }
    Ok(())
}

fn no_catalog(folder: &Folder, what: &str) -> Error {
    let message = format!(
        "the catalog in {} {what}, and there are shards beside it. Put its folder back, or see \
         what `lazuli catalog rebuild` can make of the shards",
        folder.catalog().display()
    );
    Error::corrupt("catalog-gone", message)
}

fn has_shards(folder: &Folder) -> bool {
    let entries = std::fs::read_dir(folder.shards()).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| EmbeddedStore::exists(entry.path()))
}

fn block_durability(settings: &Settings) -> lazuli_store_blocks::Durability {
    match settings.durability {
        Durability::Synced => lazuli_store_blocks::Durability::Synced,
        Durability::Relaxed => lazuli_store_blocks::Durability::Relaxed,
    }
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
