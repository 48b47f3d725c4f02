//! Putting an engine together from stores, for those who use it as a library.

use std::sync::Arc;

use lazuli_env::Env;
use lazuli_shardmap::Shard;
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::local::{Identity, LocalMap};
use lazuli_shardmap::manager::{Manager, NewShard};
use lazuli_shardmap::router::Router;
use lazuli_store::{Result, Store};

use crate::Settings;
use crate::engine::Engine;
use crate::shard::LiveShard;
use crate::shards::Shards;

impl Engine {
    /// An engine on the catalog that a store holds; an empty store becomes a new one. Its shards are attached one by one;
    /// then [`Engine::start`] starts the background work.
    pub async fn on(env: Env, settings: Settings, catalog: Arc<dyn Store>) -> Result<Arc<Self>> {
        let catalog = Arc::new(Catalog::init(catalog, env.clone()).await?);
        let shards = Arc::new(Shards::default());
        let manager = Arc::new(Manager::new(env.clone(), catalog, shards.clone()));
        let router = Arc::new(Router::new(env.clone(), manager.clone()));
        Ok(Arc::new(Self::new(env, settings, router, manager, shards)))
    }

    /// Adds a shard to the catalog, on an empty store, and takes it into use.
    pub async fn add_shard(&self, new: &NewShard, store: Arc<dyn Store>) -> Result<Shard> {
        let shard = self.manager.add_shard(new).await?;
        let identity = Identity { catalog: self.manager.catalog().id(), shard: shard.id };
        LocalMap::init(&store, identity).await?;
        self.attach(&shard, store).await?;
        Ok(shard)
    }

    /// Takes a shard of the catalog into use. A store that is another shard is refused.
    pub async fn attach(&self, shard: &Shard, store: Arc<dyn Store>) -> Result<()> {
        let local = Arc::new(LocalMap::open(store.clone()).await?);
        local.expect(Identity { catalog: self.manager.catalog().id(), shard: shard.id })?;
        let (env, settings) = (self.env.clone(), self.settings.clone());
        self.shards.insert(Arc::new(LiveShard::open(env, settings, shard.id, store, local).await?));
        Ok(())
    }
}
