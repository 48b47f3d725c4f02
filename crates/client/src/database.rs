//! The cached maps of a sharded database: lookups ask nobody, and one reading of the catalog serves all who wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use lazuli_sharded_sql::{MappingState, PlaceError, ShardMap};
use serde_json::Value;

use crate::access::Access;
use crate::changes::State as MappingStateSet;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::state::State;

/// After a shard that does not answer, the catalog is read again at once, then after this time, and then after twice as
/// long each time, so that a shard that is down does not bring all its callers to the catalog.
const REFRESH_WAIT: Duration = Duration::from_secs(5);
const REFRESH_WAIT_MAX: Duration = Duration::from_secs(30);

/// How connections log in on the shards. What is not given is taken from the shards' addresses, as this process reads them.
#[derive(Clone, Default)]
pub struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
    /// The name that PostgreSQL shows for the connections.
    pub application: Option<String>,
}

/// Without the password, so that no log shows it.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "login as {:?} of {:?}", self.user, self.application)
    }
}

/// A sharded database, as this process knows it.
#[derive(Clone, Debug)]
pub struct ShardedDatabase {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    access: Access,
    name: String,
    login: Login,
    state: RwLock<Arc<State>>,
    /// Held by whoever reads the catalog.
    reading: tokio::sync::Mutex<()>,
    /// When the catalog may be read again because of a shard that does not answer, and the wait behind that.
    waits: Mutex<HashMap<String, (Instant, Duration)>>,
}

/// A mapping, as it was in the state of the catalog that this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub number: u64,
    /// Grows with every change of the mapping.
    pub epoch: u64,
    pub shard: String,
    pub state: MappingStateSet,
}

impl ShardedDatabase {
    /// Reads the maps of a sharded database and keeps them.
    pub async fn open(access: Access, name: &str, login: Login) -> Result<Self> {
        let state = read(&access, name).await?;
        let inner = Inner {
            access,
            name: name.to_owned(),
            login,
            state: RwLock::new(Arc::new(state)),
            reading: tokio::sync::Mutex::default(),
            waits: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The number of the state that is known. It grows with every change.
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// The names of the shards.
    pub fn shards(&self) -> Vec<String> {
        self.state().shards.iter().map(|it| it.name.clone()).collect()
    }

    /// The names of the maps.
    pub fn maps(&self) -> Vec<String> {
        self.state().maps.iter().map(|it| it.name.clone()).collect()
    }

    pub fn map(&self, name: &str) -> Result<Map> {
        let map = Map { database: self.clone(), name: name.to_owned() };
        map.of(&self.state())?;
        Ok(map)
    }

    /// Reads the newest state of the catalog. Nobody has to call this: whoever is told that his state is old does it.
    pub async fn refresh(&self) -> Result<()> {
        let seen = self.state();
        self.refresh_from(&seen).await
    }

    /// Reads the newest state unless somebody has done so since `seen` was the state.
    pub(crate) async fn refresh_from(&self, seen: &Arc<State>) -> Result<()> {
        let _turn = self.inner.reading.lock().await;
        if !Arc::ptr_eq(seen, &self.state()) {
            return Ok(());
        }
        let state = read(&self.inner.access, &self.inner.name).await?;
        *self.inner.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
        Ok(())
    }

    /// Reads the newest state because a shard does not answer, unless that was done for it a short time ago.
    pub(crate) async fn refresh_for(&self, shard: &str, seen: &Arc<State>) -> bool {
        let is_due = {
            let now = Instant::now();
            let mut waits = self.inner.waits.lock().unwrap_or_else(PoisonError::into_inner);
            match waits.get_mut(shard) {
                None => {
                    waits.insert(shard.to_owned(), (now + REFRESH_WAIT, REFRESH_WAIT));
                    true
                }
                Some((at, wait)) if *at <= now => {
                    *wait = (*wait * 2).min(REFRESH_WAIT_MAX);
                    *at = now + *wait;
                    true
                }
                Some(_) => false,
            }
        };
        is_due && self.refresh_from(seen).await.is_ok()
    }

    /// A shard has answered.
    pub(crate) fn answers(&self, shard: &str) {
        self.inner.waits.lock().unwrap_or_else(PoisonError::into_inner).remove(shard);
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.inner.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn login(&self) -> &Login {
        &self.inner.login
    }

    /// Has the server do something, after which the state that is known is old.
    pub(crate) async fn act(&self, action: &str, body: &Value) -> Result<Value> {
        let path = format!("{}/{action}", path(&self.inner.name));
        let answer = self.inner.access.post(&path, body).await?;
        self.refresh().await?;
        Ok(answer)
    }

    pub(crate) async fn ask(&self, rest: &str) -> Result<Value> {
        self.inner.access.get(&format!("{}{rest}", path(&self.inner.name))).await
    }
}

fn path(database: &str) -> String {
    format!("/v1/sql/{}", lazuli_http::uri::percent_encode(database))
}

async fn read(access: &Access, name: &str) -> Result<State> {
    State::read(&access.get(&path(name)).await?)
}

/// A map of a sharded database: from keys to mappings and shards.
#[derive(Clone, Debug)]
pub struct Map {
    pub(crate) database: ShardedDatabase,
    pub(crate) name: String,
}

impl Map {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn of<'s>(&self, state: &'s State) -> Result<&'s ShardMap> {
        let found = state.maps.iter().find(|it| it.name == self.name);
        found.ok_or_else(|| Error::Unknown(format!("map {}", self.name)))
    }

    /// The mapping that covers a key, by the state that is known: no question is asked.
    pub fn mapping_for_key(&self, key: &Key) -> Result<Mapping> {
        self.place(&self.database.state(), key)
    }

    /// The same where a key without a mapping is no error.
    pub fn find_mapping_for_key(&self, key: &Key) -> Result<Option<Mapping>> {
        match self.mapping_for_key(key) {
            Err(Error::MappingNotFound) => Ok(None),
            found => found.map(Some),
        }
    }

    /// All mappings, in the order of their ranges.
    pub fn mappings(&self) -> Result<Vec<Mapping>> {
        let state = self.database.state();
        Ok(self.of(&state)?.mappings.iter().map(|it| shown(&state, it)).collect())
    }

    /// The mappings on a shard.
    pub fn mappings_on(&self, shard: &str) -> Result<Vec<Mapping>> {
        let mut all = self.mappings()?;
        all.retain(|it| it.shard == shard);
        Ok(all)
    }

    /// The mappings that keys from `low` to below `high` may be in. For list and range maps.
    pub fn mappings_between(&self, low: &Key, high: &Key) -> Result<Vec<Mapping>> {
        let state = self.database.state();
        let map = self.of(&state)?;
        if map.kind == lazuli_sharded_sql::MapKind::Hash {
            return Err(Error::Invalid("the keys of a hash map have no order".into()));
        }
        let (low, high) = (route(map, low)?, route(map, high)?);
        let meets = |it: &&lazuli_sharded_sql::Mapping| {
            it.low < high && it.high.as_ref().is_none_or(|end| *end > low)
        };
        Ok(map.mappings.iter().filter(meets).map(|it| shown(&state, it)).collect())
    }

    pub(crate) fn place(&self, state: &State, key: &Key) -> Result<Mapping> {
        let map = self.of(state)?;
        let route = route(map, key)?;
        let mapping = map.mapping(&route).ok_or(Error::MappingNotFound)?;
        Ok(shown(state, mapping))
    }
}

fn route(map: &ShardMap, key: &Key) -> Result<bytes::Bytes> {
    map.route(&key.parts(&map.key)?).map_err(|error| match error {
        PlaceError::Unmapped => Error::MappingNotFound,
        PlaceError::Key(why) => Error::Invalid(why),
    })
}

fn shown(state: &State, mapping: &lazuli_sharded_sql::Mapping) -> Mapping {
    Mapping {
        number: mapping.id,
        epoch: mapping.epoch,
        shard: state.shards[mapping.shard].name.clone(),
        state: match mapping.state {
            MappingState::ReadOnly => MappingStateSet::ReadOnly,
            MappingState::Offline => MappingStateSet::Offline,
            MappingState::Online | MappingState::Fenced => MappingStateSet::Online,
        },
    }
}
