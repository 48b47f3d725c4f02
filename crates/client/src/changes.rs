//! Changes of maps, and what is done after a shard was lost or restored. The server does all of it.

use lazuli_sharded_sql::MapKind;
use lazuli_shardmap::KeySchema;
use serde_json::{Value, json};

use crate::database::{Map, ShardedDatabase};
use crate::error::{Error, Result};
use crate::key::Key;

/// What may be done with rows of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Online,
    /// Writes are refused.
    ReadOnly,
    /// Writes are refused, connections of the mapping ended and not opened any more.
    Offline,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::ReadOnly => "read-only",
            Self::Offline => "offline",
        }
    }
}

impl Map {
    /// Gives one key of a list map to a shard, and answers the number of the mapping.
    pub async fn add_point(&self, key: &Key, shard: &str) -> Result<u64> {
        self.add(&self.text(key)?, "", shard).await
    }

    /// Gives the keys from `low` to below `high` to a shard; none is the end of the domain.
    pub async fn add_range(
        &self,
        low: Option<&Key>,
        high: Option<&Key>,
        shard: &str,
    ) -> Result<u64> {
        let bound =
            |key: Option<&Key>, end: &str| key.map_or(Ok(end.to_owned()), |it| self.text(it));
        self.add(&bound(low, "min")?, &bound(high, "max")?, shard).await
    }

    async fn add(&self, low: &str, high: &str, shard: &str) -> Result<u64> {
        let body = json!({ "map": self.name, "low": low, "high": high, "shard": shard });
        number(&self.database.act("add-mapping", &body).await?)
    }

    /// Takes a mapping out, which must be offline.
    pub async fn remove_mapping(&self, mapping: u64, owner: Option<&str>) -> Result<()> {
        let body = json!({ "mapping": mapping, "owner": owner });
        self.database.act("remove-mapping", &body).await.map(drop)
    }

    /// Cuts a mapping in two at a key; the answer is their numbers. No row moves.
    pub async fn split(&self, mapping: u64, at: &Key, owner: Option<&str>) -> Result<Vec<u64>> {
        let body = json!({ "mapping": mapping, "at": self.text(at)?, "owner": owner });
        let answer = self.database.act("split", &body).await?;
        Ok(answer["mappings"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect())
    }

    /// Joins a mapping with the one behind it, which must be on the same shard.
    pub async fn merge(&self, mapping: u64, owner: Option<&str>) -> Result<u64> {
        let body = json!({ "mapping": mapping, "owner": owner });
        number(&self.database.act("merge", &body).await?)
    }

    /// Begins to move a mapping to another shard while it is in use, and answers the number of the job.
    pub async fn begin_move(&self, mapping: u64, to: &str, owner: Option<&str>) -> Result<u64> {
        let body = json!({ "mapping": mapping, "to": to, "owner": owner });
        let answer = self.database.act("move", &body).await?;
        answer["job"].as_u64().ok_or_else(|| Error::Unavailable("there is no job".into()))
    }

    /// Brings a mapping into a state. With an epoch it is done only if the mapping still has that one.
    pub async fn set_state(
        &self,
        mapping: u64,
        state: State,
        epoch: Option<u64>,
        owner: Option<&str>,
    ) -> Result<()> {
        let (state, owner) = (state.name(), json!(owner));
        let body = json!({ "mapping": mapping, "state": state, "epoch": epoch, "owner": owner });
        self.database.act("state", &body).await.map(drop)
    }

    /// Keeps everybody but this owner from changing a mapping.
    pub async fn lock(&self, mapping: u64, owner: &str) -> Result<()> {
        let body = json!({ "mapping": mapping, "owner": owner });
        self.database.act("lock", &body).await.map(drop)
    }

    /// Gives a mapping free; by force also that of another owner.
    pub async fn unlock(&self, mapping: u64, owner: Option<&str>, force: bool) -> Result<()> {
        let body = json!({ "mapping": mapping, "owner": owner, "force": force });
        self.database.act("unlock", &body).await.map(drop)
    }

    /// A key as the admin API takes it.
    fn text(&self, key: &Key) -> Result<String> {
        let state = self.database.state();
        let map = self.of(&state)?;
        if map.kind == MapKind::Hash {
            return Err(Error::Invalid("a hash map is changed by slots, not by keys".into()));
        }
        Ok(KeySchema::print(&key.parts(&map.key)?))
    }
}

fn number(answer: &Value) -> Result<u64> {
    answer["mapping"].as_u64().ok_or_else(|| Error::Unavailable("there is no mapping".into()))
}

/// What is done after a shard was lost, moved or restored.
#[derive(Debug)]
pub struct Recovery<'d>(&'d ShardedDatabase);

impl ShardedDatabase {
    pub fn recovery(&self) -> Recovery<'_> {
        Recovery(self)
    }

    /// Gives every mapping free that an owner has locked, and answers how many there were.
    pub async fn unlock_all(&self, owner: &str) -> Result<u64> {
        let answer = self.act("unlock-all", &json!({ "owner": owner })).await?;
        Ok(answer["count"].as_u64().unwrap_or(0))
    }

    /// Ids that are unique over all shards.
    pub async fn next_ids(&self, count: u32) -> Result<Vec<i64>> {
        let answer = self.act("next-id", &json!({ "count": count })).await?;
        Ok(answer["ids"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect())
    }
}

impl Recovery<'_> {
    /// Takes the mappings of a shard offline whose database is gone.
    pub async fn detach(&self, shard: &str) -> Result<()> {
        self.0.act("detach", &json!({ "name": shard })).await.map(drop)
    }

    /// Gives a shard another database, and answers where it differs from the catalog.
    pub async fn attach(&self, shard: &str, address: &str) -> Result<Vec<Value>> {
        let body = json!({ "name": shard, "address": address });
        Ok(listed(self.0.act("attach", &body).await?))
    }

    /// Where a shard differs from the catalog.
    pub async fn differences(&self, shard: &str) -> Result<Vec<Value>> {
        let shard = lazuli_http::uri::percent_encode(shard);
        Ok(listed(self.0.ask(&format!("/differences?shard={shard}")).await?))
    }

    /// Makes the shard's local map what the catalog says.
    pub async fn keep_catalog(&self, shard: &str) -> Result<()> {
        self.0.act("resolve", &json!({ "shard": shard, "keep": "catalog" })).await.map(drop)
    }

    /// Makes the catalog what the shard says.
    pub async fn keep_shard(&self, shard: &str) -> Result<()> {
        self.0.act("resolve", &json!({ "shard": shard, "keep": "shard" })).await.map(drop)
    }
}

fn listed(answer: Value) -> Vec<Value> {
    answer["differences"].as_array().cloned().unwrap_or_default()
}
