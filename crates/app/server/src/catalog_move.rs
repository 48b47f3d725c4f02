//! Moves the catalog of a server that is alone into a database, so that nodes of a fleet go on with its shards. Without a
//! running server, and only if nothing is left in the data folder that nodes could not reach.
//!
//! The folder is marked as that of a node before anything is copied. So there are never two catalogs in use: a copy that is
//! cut short is made again, from the old catalog, which no server opens any more.

use std::sync::Arc;

use lazuli_engine::Blocks;
use lazuli_env::real;
use lazuli_shardmap::catalog::Catalog;
use lazuli_store::{Direction, KeyRange, PageLimit, Store, after_key};
use lazuli_store_blocks::{BlockFiles, Durability as BlockDurability};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings as StoreSettings};
use lazuli_store_postgres::{PostgresStore, Settings as Database};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::folder::Folder;
use crate::folders::open_store;
use crate::home::Home;
use crate::settings::Settings;

/// Rows that are copied at once.
const PAGE: PageLimit = PageLimit::items(1_000);
/// What the old catalog is called afterwards.
const MOVED: &str = "catalog.moved";
/// Shards that a refusal names.
const SHARDS_NAMED_MAX: usize = 10;

/// Moves the catalog of a data folder to this address.
pub fn offline(settings: &Settings, to: &str) -> Result<Value> {
    let database = Database::parse(to)?;
    let folder = Folder::open_to_leave(&settings.data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new("no-threads", format!("the system gives no threads: {error}"))
    })?;
    runtime.block_on(async {
        let store_settings = StoreSettings {
            cache_bytes: settings.cache_bytes,
            durability: Durability::Synced,
            ..StoreSettings::default()
        };
        if !EmbeddedStore::exists(folder.catalog()) {
            let message = format!("there is no catalog in {}", folder.catalog().display());
            return Err(Failure::new("no-catalog", message));
        }
        let from = Arc::new(open_store(&folder.catalog(), &store_settings).await?);
        let shards = check_shards(from.clone()).await?;
        check_blocks(&folder).await?;
        let target = PostgresStore::open(database).await?;
        check_empty(&target, from.as_ref()).await?;
        folder.mark_as_left()?;
        let rows = copy(from.as_ref(), &target).await?;
        from.close().await?;
        drop(from);
        let moved = folder.path().join(MOVED);
        std::fs::rename(folder.catalog(), &moved).map_err(|error| {
            Failure::new("file-error", format!("cannot rename the old catalog: {error}"))
        })?;
        Ok(json!({ "rows": rows, "shards": shards, "old": moved.display().to_string() }))
    })
}

/// Refuses shards in folders, which no node could open. Answers how many there are in databases.
async fn check_shards(store: Arc<EmbeddedStore>) -> Result<usize> {
    let catalog = Catalog::open(store, real::env()).await?;
    let shards = catalog.shards().await?;
    let is_in_folder = |location: &str| !matches!(Home::of(location), Ok(Home::Server(_)));
    let left = shards.iter().filter(|shard| is_in_folder(&shard.location));
    let left: Vec<&str> = left.map(|shard| &*shard.name).take(SHARDS_NAMED_MAX).collect();
    if left.is_empty() {
        return Ok(shards.len());
    }
    let message = format!("shards are in this folder: {}", left.join(", "));
    Err(Failure::new("shards-in-folder", message)
        .hint("start the server, `lazuli shard drain` and `lazuli shard remove` each of them"))
}

/// Refuses block files, which no node could read.
async fn check_blocks(folder: &Folder) -> Result<()> {
    let root = folder.blocks();
    if !root.is_dir() {
        return Ok(());
    }
    let opened =
        tokio::task::spawn_blocking(move || BlockFiles::open(&root, BlockDurability::Synced));
    let files = opened.await.map_err(|error| Failure::new("file-error", error.to_string()))??;
    if files.list(None, 1).await?.is_empty() {
        return Ok(());
    }
    let message = "large blobs are files in this folder, and cannot be moved to a fleet yet";
    Err(Failure::new("blocks-in-folder", message)
        .hint("copy the containers to the fleet with `lazuli blob copy`, or delete them"))
}

/// Refuses a database that holds another catalog.
async fn check_empty(target: &dyn Store, from: &dyn Store) -> Result<()> {
    let (all, one) = (KeyRange::all(), PageLimit::items(1));
    let there = target.scan(&all, Direction::Forward, one).await?;
    let here = from.scan(&all, Direction::Forward, one).await?;
    // The same first row is that of an attempt that was cut short.
    if there.items.is_empty() || there.items == here.items {
        return Ok(());
    }
    let message = "the database holds another catalog already";
    Err(Failure::new("catalog-exists", message).hint("name another schema: ?schema=NAME"))
}

async fn copy(from: &dyn Store, target: &dyn Store) -> Result<usize> {
    while target.delete_range(&KeyRange::all(), PAGE.items).await? == PAGE.items {}
    let (mut rest, mut rows) = (KeyRange::all(), 0);
    let mut loading = target.load(Vec::new());
    loop {
        let page = from.scan(&rest, Direction::Forward, PAGE).await?;
        let Some((last, _)) = page.items.last() else { break };
        rest.start = after_key(last);
        rows += page.items.len();
        loading.add(page.items).await?;
        if !page.more {
            break;
        }
    }
    loading.finish().await?;
    Ok(rows)
}
