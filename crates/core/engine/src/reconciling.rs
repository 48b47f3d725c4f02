//! Comparing catalog and shards again and again, but only after something has changed.
//!
//! A comparison reads every row of the map. Whatever changes a local map changes the catalog first: an operation is
//! written down there before a shard takes it. So as long as the catalog is at the version that was last found in order,
//! and the same local maps are in use, a comparison would find the same again. The first one after a start is always made.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use lazuli_shardmap::local::LocalMap;
use lazuli_store::Result;

use crate::engine::Engine;

#[derive(Default)]
pub(crate) struct Reconciler {
    /// What was last found in order.
    clean: Mutex<Option<Clean>>,
}

struct Clean {
    version: u64,
    /// The local maps of the shards that were compared. One that was opened anew is another one.
    locals: Vec<Weak<LocalMap>>,
}

impl Clean {
    fn is_still(&self, version: u64, locals: &[Arc<LocalMap>]) -> bool {
        let is_same = |(then, now): (&Weak<LocalMap>, &Arc<LocalMap>)| {
            // One that does not know its own rows has to be read again.
            then.as_ptr() == Arc::as_ptr(now) && now.partition_count().is_ok()
        };
        self.version == version
            && self.locals.len() == locals.len()
            && self.locals.iter().zip(locals).all(is_same)
    }
}

impl Reconciler {
    /// Finishes what is half done and compares everything, unless nothing has changed since all was in order. Answers
    /// whether it compared.
    pub(crate) async fn run(&self, engine: &Engine) -> Result<bool> {
        // Both are read before the comparison: what changes meanwhile is compared the next time.
        let version = engine.manager.catalog().version().await?;
        let locals: Vec<Arc<LocalMap>> =
            engine.shards.all().iter().map(|shard| shard.local.clone()).collect();
        if self.clean().as_ref().is_some_and(|clean| clean.is_still(version, &locals)) {
            return Ok(false);
        }
        let report = engine.manager.reconcile().await?;
        let locals = locals.iter().map(Arc::downgrade).collect();
        *self.clean() = report.is_clean().then_some(Clean { version, locals });
        Ok(true)
    }

    fn clean(&self) -> std::sync::MutexGuard<'_, Option<Clean>> {
        self.clean.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use lazuli_shardmap::key::{KeySchema, KeyType};
    use lazuli_shardmap::manager::{Cuts, NewContainer, NewShard};
    use lazuli_shardmap::{MapKind, Policies};
    use lazuli_store::mem::MemStore;

    use super::*;
    use crate::Settings;

    #[tokio::test]
    async fn an_idle_server_compares_once_and_again_after_every_change() {
        let env = lazuli_env::real::env();
        let catalog = Arc::new(MemStore::new());
        let engine = Engine::on(env, Settings::default(), catalog).await.unwrap();
        let new = NewShard { name: "one".into(), location: "one".into(), ..NewShard::default() };
        let store = Arc::new(MemStore::new());
        let shard = engine.add_shard(&new, store.clone()).await.unwrap();
        let reconciler = Reconciler::default();
        assert!(reconciler.run(&engine).await.unwrap(), "the first time");
        assert!(!reconciler.run(&engine).await.unwrap(), "nothing has changed");
        let table = NewContainer {
            name: "t".into(),
            kind: MapKind::Range,
            key: KeySchema::one(KeyType::Text),
            schema: "test/1".into(),
            placement: vec![],
            policies: Policies::default(),
            cuts: Cuts::At(vec![]),
            shards: vec![],
        };
        engine.create_container(&table).await.unwrap();
        assert!(reconciler.run(&engine).await.unwrap(), "the catalog has changed");
        assert!(!reconciler.run(&engine).await.unwrap(), "nothing has changed since");
        engine.attach(&shard, store).await.unwrap();
        assert!(reconciler.run(&engine).await.unwrap(), "the shard was opened anew");
        assert!(!reconciler.run(&engine).await.unwrap(), "and is in order");
        engine.shards.remove(shard.id);
        for _ in 0..2 {
            assert!(reconciler.run(&engine).await.unwrap(), "a shard that is away is not in order");
        }
    }
}
