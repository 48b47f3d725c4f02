//! The shards that this process has in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use lazuli_shardmap::ShardId;
use lazuli_shardmap::local::LocalMap;
use lazuli_shardmap::manager::LocalMaps;
use lazuli_store::{Error, Result};

use crate::shard::LiveShard;

#[derive(Default)]
pub struct Shards {
    live: RwLock<BTreeMap<ShardId, Arc<LiveShard>>>,
    /// Shards that were removed for good. A request for one of them was routed by a stale map.
    retired: RwLock<BTreeSet<ShardId>>,
}

impl Shards {
    fn live(&self) -> RwLockReadGuard<'_, BTreeMap<ShardId, Arc<LiveShard>>> {
        self.live.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn insert(&self, shard: Arc<LiveShard>) {
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.retired().remove(&shard.id);
        let lanes: Weak<LiveShard> = Arc::downgrade(&shard);
        shard.local.set_lanes(lanes);
        live.insert(shard.id, shard);
    }

    fn retired(&self) -> RwLockWriteGuard<'_, BTreeSet<ShardId>> {
        self.retired.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes a shard out of use that the catalog does not know any more.
    pub fn retire(&self, id: ShardId) -> Option<Arc<LiveShard>> {
        self.retired().insert(id);
        self.remove(id)
    }

    /// Takes a shard out of use; requests under way finish on it.
    pub fn remove(&self, id: ShardId) -> Option<Arc<LiveShard>> {
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.remove(&id)
    }

    pub fn get(&self, id: ShardId) -> Result<Arc<LiveShard>> {
        if let Some(shard) = self.live().get(&id) {
            return Ok(shard.clone());
        }
        if self.retired.read().unwrap_or_else(|poisoned| poisoned.into_inner()).contains(&id) {
            return Err(Error::moved(format!("shard {id} was removed")));
        }
        Err(Error::unavailable("shard-down", format!("shard {id} is not in use")))
    }

    pub fn all(&self) -> Vec<Arc<LiveShard>> {
        self.live().values().cloned().collect()
    }
}

impl LocalMaps for Shards {
    fn local(&self, id: ShardId) -> Result<Arc<LocalMap>> {
        Ok(self.get(id)?.local.clone())
    }
}
