//! The core of a server without its listeners: catalog, shards, engine and block files, on a data folder or in a fleet.
//!
//! `serve` starts its background work; `fsck` only looks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lazuli_bus_shape::Bus;
use lazuli_engine::lease::Leasing;
use lazuli_engine::{Engine, Settings as EngineSettings};
use lazuli_index::Indexes;
use lazuli_log::Logs;
use lazuli_shapes::blob::Blobs;
use lazuli_shardmap::manager::NewShard;
use lazuli_sql_control::Control;
use lazuli_store::limits::STALENESS_MAX;
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Result, Store};
use lazuli_store_embedded::{EmbeddedStore, Settings as StoreSettings};
use lazuli_store_postgres::{PostgresStore, Settings as Database};
use tokio::task::JoinHandle;

use crate::behind::Behind;
use crate::block_folder::Closed;
use crate::block_home::BlockHome;
use crate::fleet::RowBlocks;
use crate::folder::Folder;
use crate::folders::{Folders, open_store};
use crate::host::Host;
use crate::lineage::Lineage;
use crate::settings::{Durability, Fleet, Settings};

/// The shard that a new data folder begins with.
const FIRST_SHARD: &str = "shard-0001";
/// The folder in which its store is made.
const FIRST_STORE: &str = "first-shard.new";

/// How much the clocks of nodes may differ: blocks that nothing names any more stay for so much longer than the longest
/// request lasts, because another node may still read them.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(600);

pub(crate) struct Core {
    pub(crate) host: Arc<Host>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) blocks: BlockHome,
    pub(crate) blobs: Blobs,
    /// One for all fronts: an append over one of them wakes the readers of the others.
    pub(crate) logs: Logs,
    /// The same: what the admin API sends wakes those who receive over the front.
    pub(crate) bus: Bus,
    /// One for all who write documents of search indexes, so that they wake those who derive text indexes from them.
    pub(crate) indexes: Indexes,
    /// Sharded SQL databases of users.
    pub(crate) sql: Arc<Control>,
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
        let engine = Engine::on(env, engine_settings(settings), kept).await?;
        if engine.manager().catalog().shards().await?.is_empty() {
            engine.manager().add_shard(&first_shard()).await?;
            if let Some(first_store) = first_store {
                first_store.put(&folder.shards().join(FIRST_SHARD)).await?;
            }
        }
        let known = engine.manager().catalog().clone();
        let lineage = Lineage::new(engine.env().clone(), known, catalog.clone());
        let folders = Folders::new(folder.shards(), store_settings, catalog, lineage);
        let host = Arc::new(Host::alone(engine.clone(), folders));
        let lineage = &host.need_folders()?.lineage;
        let closed = Closed::look(folder.blocks(), lineage).await?;
        let older_catalog = host.open_all(closed.highest_start()).await?;
        let durability = block_durability(settings);
        let blocks = closed.open(durability, lineage, older_catalog).await?;
        let blocks = BlockHome::Folder(Arc::new(blocks));
        let blobs = Blobs::new(engine.clone(), blocks.blocks());
        let (logs, bus) = (logs(&engine, false), bus(&engine, settings));
        let indexes = Indexes::new(engine.clone(), false);
        let sql = sharded_sql(&engine, false);
        Ok(Self { host, engine, blocks, blobs, logs, bus, indexes, sql, _behind: behind })
    }

    /// Opens everything as one of several processes. A new catalog has no shards: they are added by their addresses.
    pub(crate) async fn join(fleet: &Fleet, settings: &Settings) -> Result<Self> {
        // What is read of the catalog must be new.
        let catalog = Database { reads_standbys: false, ..fleet.catalog.clone() };
        let catalog: Arc<dyn Store> = Arc::new(PostgresStore::open(catalog).await?);
        let behind = Behind::start().map_err(|error| Error::internal("no-threads", error))?;
        let engine = Engine::on(behind.env(), engine_settings(settings), catalog.clone()).await?;
        let host = Arc::new(Host::of_fleet(engine.clone(), catalog));
        host.open_all(0).await?;
        // Before anything is written that others would take for left behind.
        engine.renew_leases().await?;
        let rows = RowBlocks::open(&fleet.blocks, engine.clone()).await?;
        let blocks = BlockHome::Rows(Arc::new(rows));
        let longest_read = settings.longest_request() + CLOCKS_DIFFER_MAX + STALENESS_MAX;
        let blobs = Blobs::new(engine.clone(), blocks.blocks()).shared(longest_read);
        let (logs, bus) = (logs(&engine, true), bus(&engine, settings));
        let indexes = Indexes::new(engine.clone(), true);
        let sql = sharded_sql(&engine, true);
        Ok(Self { host, engine, blocks, blobs, logs, bus, indexes, sql, _behind: behind })
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
        if let Err(error) = self.blocks.close().await {
            tracing::warn!(%error, "blocks were not closed cleanly");
        }
        self.host.close_all(self.blocks.folder().map(|it| &**it)).await;
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

fn logs(engine: &Arc<Engine>, is_shared: bool) -> Logs {
    Logs::new(engine.clone(), is_shared).reading(lazuli_kafka::reader())
}

fn bus(engine: &Arc<Engine>, settings: &Settings) -> Bus {
    Bus::new(engine.clone(), lazuli_bus::reader(), settings.bus.clone())
}

fn engine_settings(settings: &Settings) -> EngineSettings {
    let default = EngineSettings::default();
    EngineSettings {
        // Those of the balancer are not to wait for each other.
        moves_at_once: default.moves_at_once.max(settings.balance.planner.moves_at_once),
        outside: lazuli_shapes::blob::outside(),
        deriving: lazuli_shapes::document::deriving(),
        leasing: match settings.fleet {
            Some(_) => Leasing::Shared,
            None => Leasing::Alone,
        },
        ..default
    }
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

fn sharded_sql(engine: &Engine, is_shared: bool) -> Arc<Control> {
    Control::new(engine.manager().catalog().clone(), engine.env().clone(), is_shared)
}

fn first_shard() -> NewShard {
    NewShard {
        name: FIRST_SHARD.to_owned(),
        location: FIRST_SHARD.to_owned(),
        region: "local".to_owned(),
        ..NewShard::default()
    }
}
