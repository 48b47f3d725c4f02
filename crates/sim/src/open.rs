//! Opens everything that a server needs from its disks, as `lazuli serve` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_engine::{Deriving, Engine, Settings as EngineSettings};
use lazuli_shapes::document::{self, Documents};
use lazuli_shapes::queue::Queues;
use lazuli_shardmap::local::{Identity, LocalMap};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::{Result, Store};

use crate::disk::Disk;
use crate::executor::World;
use crate::faults::{Planted, StoreFaults};
use crate::process::Process;
use crate::settings::Settings;
use crate::store::SimStore;

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

/// The engine of one process. It does the background work if `works`.
pub(crate) async fn open(
    process: Process,
    disks: Disks,
    settings: Arc<Settings>,
    faults: AllFaults,
    works: bool,
) -> Result<Arc<Engine>> {
    let env = process.env();
    let store: Arc<dyn Store> = Arc::new(SimStore::open(&disks.catalog, &process, faults.catalog));
    let keeps_none = settings.planted == Planted::NoEntries && !works;
    let deriving = if keeps_none { Deriving::default() } else { document::deriving() };
    let engine_settings = EngineSettings { deriving, ..settings.engine.clone() };
    let engine = Engine::on(env.clone(), engine_settings, store).await?;
    let manager = engine.manager().clone();
    for (disk, faults) in disks.shards.iter().zip(faults.shards) {
        let store: Arc<dyn Store> = Arc::new(SimStore::open(disk, &process, faults));
        let known = manager.catalog().shards().await?;
        let shard = match known.into_iter().find(|shard| *shard.location == *disk.name) {
            Some(shard) => shard,
            None => manager.add_shard(&new_shard(disk)).await?,
        };
        // The process that added the shard may have died before the store heard of it.
        let identity = Identity { catalog: manager.catalog().id(), shard: shard.id };
        LocalMap::init(&store, identity).await?;
        engine.attach(&shard, store).await?;
    }
    manager.reconcile().await?;
    // What expires in queues, and former versions of documents, are ended by their shapes.
    drop(Queues::new(engine.clone()));
    drop(Documents::new(engine.clone()));
    if works {
        engine.start();
    }
    Ok(engine)
}

fn new_shard(disk: &Disk) -> NewShard {
    NewShard {
        name: disk.name.to_string(),
        location: disk.name.to_string(),
        region: String::new(),
        labels: BTreeMap::new(),
    }
}
