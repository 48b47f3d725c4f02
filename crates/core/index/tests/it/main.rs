//! Indexes on an engine whose stores are in memory.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(clippy::disallowed_methods, reason = "these tests run on the real runtime")]

mod documents;
mod following;
mod records;
mod spreading;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Engine, KeyRange, Settings};
use lazuli_index::{
    Action, ActionKind, Deletion, Follower, Index, Indexes, Outcome, Positions, Scale,
};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

pub(crate) const ACCOUNT: &str = "account";

pub(crate) struct World {
    pub(crate) indexes: Indexes,
}

impl World {
    pub(crate) async fn new() -> Self {
        let catalog = Arc::new(MemStore::new());
        let env = lazuli_env::real::env();
        let engine = Engine::on(env, Settings::default(), catalog).await.unwrap();
        for name in ["one", "two", "three"] {
            let new = NewShard {
                name: name.into(),
                location: name.into(),
                region: "here".into(),
                labels: Default::default(),
            };
            engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
        }
        engine.start();
        Self { indexes: Indexes::new(engine, false) }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.indexes.engine()
    }

    pub(crate) async fn index(&self, name: &str) -> Arc<Index> {
        self.indexes.create_index(ACCOUNT, name, "{}", Scale::default()).await.unwrap()
    }

    pub(crate) async fn write(&self, index: &Arc<Index>, actions: Vec<Action>) -> Vec<Outcome> {
        let written = self.indexes.write(index, actions).await.unwrap();
        written.into_iter().map(|one| one.outcome.unwrap()).collect()
    }

    pub(crate) async fn upload(&self, index: &Arc<Index>, keys: std::ops::Range<u32>, text: &str) {
        let actions = keys.map(|key| upload(&key.to_string(), text)).collect();
        for outcome in self.write(index, actions).await {
            assert!(matches!(outcome, Outcome::Created | Outcome::Updated));
        }
    }

    pub(crate) fn follow(&self, index: &Arc<Index>, positions: Positions) -> Naive {
        let (indexes, index) = (self.indexes.clone(), index.clone());
        let follower = Follower::new(indexes, index, KeyRange::all(), positions);
        Naive { follower, documents: BTreeMap::new(), deletions: Vec::new() }
    }
}

pub(crate) fn document(key: &str, text: &str) -> Bytes {
    Bytes::from(format!(r#"{{"id":"{key}","text":"{text}"}}"#))
}

pub(crate) fn upload(key: &str, text: &str) -> Action {
    let (key, document) = (key.to_owned(), document(key, text));
    Action { key, kind: ActionKind::Upload, document }
}

pub(crate) fn delete(key: &str) -> Action {
    Action { key: key.to_owned(), kind: ActionKind::Delete, document: Bytes::new() }
}

/// A derived index that is a plain map.
pub(crate) struct Naive {
    pub(crate) follower: Follower,
    pub(crate) documents: BTreeMap<String, String>,
    pub(crate) deletions: Vec<Deletion>,
}

impl Naive {
    /// Takes in all there is.
    pub(crate) async fn catch_up(&mut self) {
        while self.step().await {}
    }

    /// Takes in one step and says whether there is more.
    pub(crate) async fn step(&mut self) -> bool {
        let step = self.follower.step().await.unwrap();
        self.deletions.extend(step.deletions);
        for change in step.changes {
            match change.document {
                Some(text) => {
                    let text = String::from_utf8(text.to_vec()).unwrap();
                    self.documents.insert(change.key, text);
                }
                None => drop(self.documents.remove(&change.key)),
            }
        }
        step.more
    }
}
