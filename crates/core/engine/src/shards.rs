//! The shards that this process has in use.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use lazuli_shardmap::ShardId;
use lazuli_shardmap::local::LocalMap;
use lazuli_shardmap::manager::LocalMaps;
use lazuli_store::{Error, Result};

use crate::shard::LiveShard;

#[derive(Default)]
pub struct Shards {
    live: RwLock<BTreeMap<ShardId, Arc<LiveShard>>>,
}

impl Shards {
    fn live(&self) -> RwLockReadGuard<'_, BTreeMap<ShardId, Arc<LiveShard>>> {
        self.live.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn insert(&self, shard: Arc<LiveShard>) {
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.insert(shard.id, shard);
    }

    /// Takes a shard out of use; requests under way finish on it.
    pub fn remove(&self, id: ShardId) -> Option<Arc<LiveShard>> {
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.remove(&id)
    }

    pub fn get(&self, id: ShardId) -> Result<Arc<LiveShard>> {
        let down = || Error::unavailable("shard-down", format!("shard {id} is not in use"));
        self.live().get(&id).cloned().ok_or_else(down)
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
