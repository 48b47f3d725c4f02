//! Moves the catalog of a server that is alone into a database, so that nodes of a fleet go on with its shards. Without a
//! running server, and only if nothing is left in the data folder that nodes could not reach.
//!
//! The folder is marked as that of a node before anything is copied. So there are never two catalogs in use: a copy that is
//! cut short is made again, from the old catalog, which no server opens any more. Block files are copied before the catalog,
//! under the ids by which rows of the shards name them.

use std::collections::VecDeque;
use std::sync::Arc;

use lazuli_engine::{BlockId, Blocks, FoundFile};
use lazuli_env::real;
use lazuli_shardmap::catalog::Catalog;
use lazuli_store::{Direction, KeyRange, PageLimit, Store, after_key};
use lazuli_store_blocks::{BlockFiles, Durability as BlockDurability};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings as StoreSettings};
use lazuli_store_postgres::{PostgresBlocks, PostgresStore, Settings as Database};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::folder::Folder;
use crate::folders::open_store;
use crate::home::Home;
use crate::settings::{BlocksAt, Settings};

/// Rows that are copied at once.
const PAGE: PageLimit = PageLimit::items(1_000);
/// What the old catalog is called afterwards.
const MOVED: &str = "catalog.moved";
/// Shards that a refusal names.
const SHARDS_NAMED_MAX: usize = 10;

/// What block files that came from a folder are known by, in place of the node that wrote them.
const FORMER_FOLDER: &str = "folder";
/// Block files that are listed at once.
const FILES_AT_ONCE: usize = 1_000;

/// Moves the catalog of a data folder to this address, and its block files to where the fleet keeps them: beside the catalog
/// unless another place is named.
pub fn offline(settings: &Settings, to: &str, blocks_to: Option<&str>) -> Result<Value> {
    let database = Database::parse(to)?;
    let blocks_at = BlocksAt::parse(&database, blocks_to)?;
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
        let files = open_blocks(&folder).await?;
        let target = PostgresStore::open(database.clone()).await?;
        check_empty(&target, from.as_ref()).await?;
        let blocks = match &files {
            Some(files) => Some((files, check_target(files, &blocks_at).await?)),
            None => None,
        };
        folder.mark_as_left()?;
        let moved_files = match blocks {
            Some((files, target)) => copy_blocks(files, &target).await?,
            None => 0,
        };
        let rows = copy(from.as_ref(), &target).await?;
        from.close().await?;
        drop(from);
        let moved = folder.path().join(MOVED);
        std::fs::rename(folder.catalog(), &moved).map_err(|error| {
            Failure::new("file-error", format!("cannot rename the old catalog: {error}"))
        })?;
        let old = moved.display().to_string();
        Ok(json!({ "rows": rows, "shards": shards, "files": moved_files, "old": old }))
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

/// The block files of the folder; none if there never were any.
async fn open_blocks(folder: &Folder) -> Result<Option<BlockFiles>> {
    let root = folder.blocks();
    if !root.is_dir() {
        return Ok(None);
    }
    let opened =
        tokio::task::spawn_blocking(move || BlockFiles::open(&root, BlockDurability::Synced));
    let files = opened.await.map_err(|error| Failure::new("file-error", error.to_string()))??;
    match files.list(None, 1).await?.is_empty() {
        true => Ok(None),
        false => Ok(Some(files)),
    }
}

/// Opens the place that the block files go to. Refuses one that holds files of others: their ids may be the same.
async fn check_target(files: &BlockFiles, at: &BlocksAt) -> Result<PostgresBlocks> {
    let objects = at.objects()?;
    let target = PostgresBlocks::open_at(at.database.clone(), objects, FORMER_FOLDER).await?;
    let (mut theirs, mut ours) = (Listed::of(&target), Listed::of(files));
    // What an attempt has copied that was cut short is also in the folder. Both lists ascend.
    let mut here = ours.next().await?;
    while let Some(there) = theirs.next().await? {
        while here.as_ref().is_some_and(|here| here.file.id < there.file.id) {
            here = ours.next().await?;
        }
        if here.as_ref() != Some(&there) {
            let message = "the place of the blocks holds files of other servers already";
            return Err(Failure::new("blocks-exist", message)
                .hint("name another place with --blocks, such as another schema"));
        }
    }
    Ok(target)
}

/// Copies all block files under their own ids, and answers how many there are. Those that are there already stay.
async fn copy_blocks(files: &BlockFiles, target: &PostgresBlocks) -> Result<u64> {
    let mut listed = Listed::of(files);
    let (mut count, mut generation) = (0, None);
    while let Some(found) = listed.next().await? {
        let id = found.file.id;
        if generation != Some(id.generation) {
            target.adopt_generation(id.generation, FORMER_FOLDER).await?;
            generation = Some(id.generation);
        }
        target.adopt(files, &found).await?;
        count += 1;
    }
    Ok(count)
}

/// Walks along all files of a keeper.
struct Listed<'b> {
    blocks: &'b dyn Blocks,
    page: VecDeque<FoundFile>,
    after: Option<BlockId>,
}

impl<'b> Listed<'b> {
    fn of(blocks: &'b dyn Blocks) -> Self {
        Self { blocks, page: VecDeque::new(), after: None }
    }

    async fn next(&mut self) -> Result<Option<FoundFile>> {
        if self.page.is_empty() {
            self.page = self.blocks.list(self.after, FILES_AT_ONCE).await?.into();
            self.after = self.page.back().map(|found| found.file.id).or(self.after);
        }
        Ok(self.page.pop_front())
    }
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
