//! Rebuilds a lost catalog from the shards: their local maps, and their copies of containers, accounts and shard names.
//! The server must be stopped, and the result is shown before anything is written.
//!
//! The new catalog is built beside the place of the old one and moved there when it is complete, so an interrupted
//! rebuild can be repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use lazuli_engine::{Engine, Settings as EngineSettings};
use lazuli_env::Id;
use lazuli_shardmap::catalog::{Catalog, Expected, RecordWrite, kinds};
use lazuli_shardmap::lineage::{Standing, read_standing};
use lazuli_shardmap::local::{Arrival, Identity, LocalMap};
use lazuli_shardmap::manager::NewShard;
use lazuli_shardmap::mirror::{self, CopiedRecord, Copies};
use lazuli_shardmap::{Container, ContainerId, Partition, Shard};
use lazuli_store::{Error, Store};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings as StoreSettings};
use serde_json::{Value, json};

use crate::behind::Behind;
use crate::block_folder::Closed;
use crate::failure::{Failure, Result};
use crate::folder::Folder;
use crate::host::{Host, is_removed, open_store};
use crate::settings::Settings;

/// Where the new catalog is made.
const UNFINISHED: &str = "catalog.rebuilding";
/// How many problems are listed.
const PROBLEMS_MAX: usize = 100;

/// A folder of a shard, and all it knows.
struct Found {
    folder: String,
    identity: Identity,
    standing: Option<Standing>,
    partitions: Vec<Partition>,
    arrivals: Vec<Arrival>,
    copies: Copies,
}

/// What there is to make a catalog of.
struct Survey {
    catalog: Id,
    shards: Vec<Found>,
    problems: Vec<String>,
}

/// Looks at the shards and says what a catalog made of them would hold. Makes it if that is accepted.
pub fn offline(settings: &Settings, accept: bool) -> Result<Value> {
    let folder = Folder::open_existing(&settings.data)?;
    if EmbeddedStore::exists(folder.catalog()) {
        let message = format!("there is a catalog in {}", folder.catalog().display());
        let hint = "start the server; if that is not the catalog of these shards, move it away";
        return Err(Failure::new("catalog-exists", message).hint(hint));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new("no-threads", format!("the system gives no threads: {error}"))
    })?;
    runtime.block_on(async {
        // Nothing is served, and what is not finished is made again: the disk is waited for at the end.
        let store_settings = StoreSettings {
            cache_bytes: settings.cache_bytes,
            durability: Durability::Relaxed,
            ..StoreSettings::default()
        };
        let survey = Survey::of(&folder, &store_settings).await?;
        let left = match accept {
            true => Some(rebuild(&folder, &store_settings, &survey).await?),
            false => None,
        };
        Ok(survey.to_json(left))
    })
}

impl Survey {
    async fn of(folder: &Folder, settings: &StoreSettings) -> Result<Self> {
        let (mut shards, mut problems) = (Vec::new(), Vec::new());
        for name in shard_folders(&folder.shards()) {
            let store = open_store(&folder.shards().join(&name), settings).await;
            let found = match store {
                Ok(store) => Found::read(&name, Arc::new(store)).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(Some(found)) => shards.push(found),
                Ok(None) => problems.push(format!("{name} was never a shard and is left out")),
                Err(error) => problems.push(format!("{name} is left out: {error}")),
            }
        }
        let catalogs: BTreeSet<Id> = shards.iter().map(|it| it.identity.catalog).collect();
        let ids: BTreeSet<_> = shards.iter().map(|it| it.identity.shard).collect();
        let catalog = match (catalogs.first(), catalogs.len()) {
            (Some(catalog), 1) if ids.len() == shards.len() => *catalog,
            (None, _) => return Err(Failure::new("no-shards", "there is no shard to ask")),
            _ => {
                let message = "the folders are not shards of one catalog, or one is there twice";
                let hint = "move those that do not belong here away";
                return Err(Failure::new("shards-mixed", message).hint(hint));
            }
        };
        shards.sort_by_key(|it| it.identity.shard);
        let mut survey = Self { catalog, shards, problems };
        survey.look_for_problems();
        Ok(survey)
    }

    /// The containers of which a shard holds a partition, by id.
    fn containers(&self) -> BTreeMap<ContainerId, Container> {
        let mut newest: BTreeMap<ContainerId, Container> = BTreeMap::new();
        for shard in &self.shards {
            for partition in &shard.partitions {
                let Some(copy) = shard.copies.containers.get(&partition.id) else { continue };
                let known = newest.entry(copy.id).or_insert_with(|| copy.clone());
                if known.version < copy.version {
                    *known = copy.clone();
                }
            }
        }
        newest
    }

    /// The records of the shard that has the newest ones.
    fn records(&self) -> &[CopiedRecord] {
        let newest = |it: &&Found| it.copies.records.iter().map(|record| record.version).max();
        self.shards.iter().max_by_key(newest).map_or(&[], |it| &it.copies.records)
    }

    fn highest_start(&self) -> u64 {
        let starts = self.shards.iter().filter_map(|it| it.standing);
        starts.map(|standing| standing.start.number).max().unwrap_or(0)
    }

    fn look_for_problems(&mut self) {
        let (highest, known) = (self.highest_start(), self.containers());
        let mut problems = Vec::new();
        for shard in &self.shards {
            let name = &shard.folder;
            let start = shard.standing.map_or(0, |standing| standing.start.number);
            if start < highest {
                problems.push(format!(
                    "{name} was last in use with start {start}, others with {highest}: it may be \
                     an older copy, and the catalog cannot tell any more"
                ));
            }
            let is_unknown = |it: &&Partition| !known.contains_key(&it.container);
            let unknown = shard.partitions.iter().filter(is_unknown).count();
            if unknown > 0 {
                problems.push(format!(
                    "{name} holds {unknown} partitions of maps that nobody knows: they are not \
                     served"
                ));
            }
        }
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.partitions.iter().map(|row| (row, shard)));
        }
        all.sort_by(|(a, _), (b, _)| {
            (a.container, &a.routes.start).cmp(&(b.container, &b.routes.start))
        });
        for pair in all.windows(2) {
            let [(one, first), (other, second)] = pair else { continue };
            if one.container == other.container && one.routes.overlaps(&other.routes) {
                let (first, second) = (&first.folder, &second.folder);
                problems.push(format!(
                    "{first} and {second} both hold routes of partitions {} and {}",
                    one.id, other.id
                ));
            }
        }
        self.problems.extend(problems);
    }

    /// A partition that had left one shard and had not arrived on the other is in no local map. Its data is there, and
    /// would be taken for what a cancelled move left behind.
    fn check_moves(&self) -> Result<()> {
        for shard in &self.shards {
            for arrival in &shard.arrivals {
                let holds = |it: &Partition| {
                    it.container == arrival.container && it.routes.overlaps(&arrival.routes)
                };
                if !self.shards.iter().flat_map(|it| &it.partitions).any(holds) {
                    let message = format!(
                        "partition {} was just about to arrive on {} when the catalog was lost: \
                         only a copy of the catalog can tell where it belongs",
                        arrival.partition, shard.folder
                    );
                    return Err(Failure::new("move-unfinished", message));
                }
            }
        }
        Ok(())
    }

    fn to_json(&self, left: Option<usize>) -> Value {
        let shard = |it: &Found| {
            json!({
                "name": it.copies.shard.as_ref().map_or(&it.folder, |shard| &shard.name),
                "folder": it.folder,
                "partitions": it.partitions.len(),
                "start": it.standing.map(|standing| standing.start.number),
            })
        };
        let is_account = |it: &&CopiedRecord| it.kind == kinds::ACCOUNT;
        json!({
            "catalog": self.catalog.to_string(),
            "shards": self.shards.iter().map(shard).collect::<Vec<_>>(),
            "maps": self.containers().len(),
            "partitions": self.shards.iter().map(|it| it.partitions.len()).sum::<usize>(),
            "accounts": self.records().iter().filter(is_account).count(),
            "problems": self.problems.iter().take(PROBLEMS_MAX).collect::<Vec<_>>(),
            "rebuilt": left.is_some(),
            "differences_left": left,
        })
    }
}

impl Found {
    async fn read(
        folder: &str,
        embedded: Arc<EmbeddedStore>,
    ) -> std::result::Result<Option<Self>, Error> {
        let store: Arc<dyn Store> = embedded;
        let Some(identity) = LocalMap::identify(&store).await? else { return Ok(None) };
        let map = LocalMap::open(store.clone()).await?;
        Ok(Some(Self {
            folder: folder.to_owned(),
            identity,
            standing: read_standing(&store).await?,
            partitions: map.partitions()?,
            arrivals: map.arrivals()?,
            copies: mirror::read(&store).await?,
        }))
    }

    fn as_new(&self) -> NewShard {
        let known = self.copies.shard.clone();
        let (name, region, labels) = match known {
            Some(Shard { name, region, labels, .. }) => (name, region, labels),
            None => (self.folder.clone(), "local".to_owned(), BTreeMap::new()),
        };
        NewShard { name, location: self.folder.clone(), region, labels }
    }
}

fn shard_folders(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let stores = entries.filter(|entry| EmbeddedStore::exists(entry.path()));
    let names = stores.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| !is_removed(name)).collect();
    names.sort();
    names
}

/// Makes the catalog, and answers in how many places it and the shards differ.
async fn rebuild(folder: &Folder, settings: &StoreSettings, survey: &Survey) -> Result<usize> {
    survey.check_moves()?;
    let unfinished = folder.path().join(UNFINISHED);
    let io = |error: std::io::Error| {
        Failure::new("file-error", format!("cannot replace the catalog: {error}"))
    };
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(io)?;
    }
    let left = fill(folder, settings, survey, &unfinished).await?;
    if folder.catalog().exists() {
        // There is no store in it.
        std::fs::remove_dir_all(folder.catalog()).map_err(io)?;
    }
    std::fs::rename(&unfinished, folder.catalog()).map_err(io)?;
    std::fs::File::open(folder.path()).and_then(|it| it.sync_all()).map_err(io)?;
    Ok(left)
}

async fn fill(
    folder: &Folder,
    settings: &StoreSettings,
    survey: &Survey,
    path: &Path,
) -> Result<usize> {
    let store = Arc::new(open_store(path, settings).await?);
    let behind = Behind::start()
        .map_err(|error| Failure::new("no-threads", format!("no threads: {error}")))?;
    let env = behind.env();
    drop(Catalog::init_as(store.clone(), env.clone(), survey.catalog).await?);
    let engine = Engine::on(env, EngineSettings::default(), store.clone()).await?;
    let manager = engine.manager().clone();
    let host = Host::new(folder.shards(), settings.clone(), engine, store);
    let mut shards = Vec::new();
    for found in &survey.shards {
        shards.push(manager.attach_shard(&found.as_new(), found.identity).await?);
    }
    let blocks = Closed::look(folder.blocks(), &host.lineage).await?;
    host.lineage.begin(survey.highest_start().max(blocks.highest_start())).await?;
    for shard in &shards {
        host.accept(shard).await?;
    }
    for container in survey.containers().values() {
        manager.adopt_container(container).await?;
    }
    let mut left = 0;
    for shard in &shards {
        left += manager.rebuild_catalog(shard.id).await?.len();
    }
    let write = |it: &CopiedRecord| RecordWrite {
        kind: it.kind,
        key: it.key.clone(),
        expected: Expected::Anything,
        value: Some(it.value.clone()),
    };
    let records: Vec<_> = survey.records().iter().map(write).collect();
    if !records.is_empty() {
        manager.catalog().write_records(&records).await?;
    }
    let durability = lazuli_store_blocks::Durability::Synced;
    let blocks = blocks.open(durability, &host.lineage, None).await?;
    blocks.accept(&host.lineage).await?;
    host.close_all(&blocks).await;
    Ok(left)
}
