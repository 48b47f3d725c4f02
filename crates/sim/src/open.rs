//! Opens everything that a server needs from what its disks hold, as `lazuli serve` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_engine::{Engine, LiveShard, Shards};
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::local::{Identity, LocalMap};
use lazuli_shardmap::manager::{Manager, NewShard};
use lazuli_shardmap::router::Router;
use lazuli_store::{Result, Store};

use crate::disk::Disk;
use crate::executor::World;
use crate::faults::StoreFaults;
use crate::process::Process;
use crate::settings::Settings;
use crate::store::SimStore;

/// How many engines a server has, each with a router of its own.
const ENGINES: usize = 2;

/// Everything that survives a crash.
#[derive(Clone)]
pub struct Disks {
    pub catalog: Disk,
    pub shards: Vec<Disk>,
}

impl Disks {
    pub fn new(world: &World, shards: u64) -> Self {
        let shards = (1..=shards).map(|nth| Disk::new(world, &format!("shard-{nth:04}")));
        Self { catalog: Disk::new(world, "catalog"), shards: shards.collect() }
    }
}

/// The faults of the catalog's store and of each shard's.
pub(crate) struct AllFaults {
    pub(crate) catalog: StoreFaults,
    pub(crate) shards: Vec<StoreFaults>,
}

pub(crate) async fn open(
    process: Process,
    disks: Disks,
    settings: Arc<Settings>,
    faults: AllFaults,
) -> Result<Vec<Arc<Engine>>> {
    let env = process.env();
    let store: Arc<dyn Store> = Arc::new(SimStore::open(&disks.catalog, &process, faults.catalog));
    let catalog = Arc::new(Catalog::init(store, env.clone()).await?);
    let shards = Arc::new(Shards::default());
    let manager = Arc::new(Manager::new(env.clone(), catalog.clone(), shards.clone()));
    for (disk, faults) in disks.shards.iter().zip(faults.shards) {
        let store: Arc<dyn Store> = Arc::new(SimStore::open(disk, &process, faults));
        let known = catalog.shards().await?;
        let shard = match known.into_iter().find(|shard| *shard.location == *disk.name) {
            Some(shard) => shard,
            None => manager.add_shard(&new_shard(disk)).await?,
        };
        let identity = Identity { catalog: catalog.id(), shard: shard.id };
        LocalMap::init(&store, identity).await?;
        let local = Arc::new(LocalMap::open(store.clone()).await?);
        local.expect(identity)?;
        let engine = settings.engine.clone();
        let live = LiveShard::open(env.clone(), engine, shard.id, store, local).await?;
        shards.insert(Arc::new(live));
    }
    manager.reconcile().await?;
    let engines: Vec<_> = (0..ENGINES)
        .map(|_| {
            let router = Arc::new(Router::new(env.clone(), manager.clone()));
            let (manager, shards) = (manager.clone(), shards.clone());
            Arc::new(Engine::new(env.clone(), settings.engine.clone(), router, manager, shards))
        })
        .collect();
    // One process does the background work once, whoever has asked for it.
    engines[0].start();
    Ok(engines)
}

fn new_shard(disk: &Disk) -> NewShard {
    NewShard {
        name: disk.name.to_string(),
        location: disk.name.to_string(),
        region: String::new(),
        labels: BTreeMap::new(),
    }
}
