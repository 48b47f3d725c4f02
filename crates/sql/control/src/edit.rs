//! Changes of mappings: add, remove, split, merge, offline and online, locks.
//!
//! The catalog decides a change in one commit together with the job that lets the shards take it; it is never undone. A mapping is
//! named by its number or by a key in it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_sharded_sql::{MapKind, ShardMap};
use lazuli_store::{Error, KeyRange, Result};
use tokio::time::sleep;

use crate::apply::decide;
use crate::book::{Draft, MAPPINGS_MAX};
use crate::control::{Control, refused};
use crate::form::{MappingForm, State};
use crate::job::{ChangeWork, Job, Work};
use crate::routes::bounds;

/// How long a change of mappings is waited for before the caller is told that it goes on without him.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(30);

/// A mapping as people name it.
#[derive(Clone, Debug)]
pub enum Which {
    Number(u64),
    /// The mapping of a map that holds a key.
    Key {
        map: String,
        key: String,
    },
}

impl Draft {
    /// A map with its mappings.
    pub(crate) fn map(&self, name: &str) -> Result<ShardMap> {
        let form = self.model.map_named(name)?;
        self.map_of(form.id)
    }

    pub(crate) fn map_of(&self, id: u32) -> Result<ShardMap> {
        let snapshot = self.model.snapshot(self.mappings.values())?;
        let map = snapshot.maps.iter().find(|it| it.id == id);
        let missing = || Error::not_found("no-sql-map", format!("there is no map {id}"));
        map.map(|it| ShardMap::clone(it)).ok_or_else(missing)
    }

    pub(crate) fn which(&self, which: &Which) -> Result<MappingForm> {
        match which {
            Which::Number(id) => self.mapping(*id).cloned(),
            Which::Key { map, key } => {
                let map = self.map(map)?;
                let route = bounds::route(&map, &bounds::key(&map, key)?)?;
                let missing = || {
                    let message = format!("no mapping of {} holds the key {key}", map.name);
                    Error::not_found("sql-key-unmapped", message)
                };
                let found = map.mapping(&route).ok_or_else(missing)?;
                self.mapping(found.id).cloned()
            }
        }
    }

    /// Refuses a mapping that a job is at work on, or that somebody has locked for himself.
    pub(crate) fn must_be_free(&self, mapping: &MappingForm, owner: Option<&str>) -> Result<()> {
        let id = mapping.id;
        let is_at_work = |job: &&Job| match &job.work {
            Work::Change(work) => {
                work.put.iter().any(|it| it.id == id) || work.removed.iter().any(|it| it.1 == id)
            }
            Work::Move(work) => work.mapping == id,
            Work::Ddl(_) => false,
        };
        if let Some(job) = self.jobs.values().find(is_at_work) {
            let message = format!("job {} is at work on mapping {id}", job.number);
            return Err(refused("sql-mapping-busy", message));
        }
        match &mapping.lock {
            Some(lock) if Some(&**lock) != owner => {
                let message = format!("mapping {id} is locked by another owner");
                Err(refused("sql-mapping-locked", message))
            }
            _ => Ok(()),
        }
    }

    fn must_have_room(&self) -> Result<()> {
        match self.mappings.len() < MAPPINGS_MAX {
            true => Ok(()),
            false => {
                let message = format!("a database has at most {MAPPINGS_MAX} mappings");
                Err(Error::too_large("too-many-sql-mappings", message))
            }
        }
    }

    /// Refuses routes of which another mapping has some.
    fn must_not_overlap(&self, map: u32, routes: &KeyRange, except: &[u64]) -> Result<()> {
        for other in self.mappings.values().filter(|it| it.map == map && !except.contains(&it.id)) {
            if other.routes()?.overlaps(routes) {
                let message = format!("mapping {} holds some of these keys already", other.id);
                return Err(Error::exists("sql-mapping-exists", message));
            }
        }
        Ok(())
    }
}

impl Control {
    /// Decides a change and waits until the shards have taken it.
    async fn decided<T: Clone>(
        self: &Arc<Self>,
        name: &str,
        mut edit: impl FnMut(&mut Draft) -> Result<(T, Option<ChangeWork>)>,
    ) -> Result<T> {
        let now = self.env.clock.now_ms();
        let decide_it = |draft: &mut Draft| {
            let (made, work) = edit(draft)?;
            Ok((made, work.map(|work| decide(draft, work, now))))
        };
        let ((made, number), _) = self.change(name, decide_it).await?;
        if let Some(number) = number {
            self.settled(name, number).await?;
        }
        Ok(made)
    }

    /// Carries a change of mappings to its end.
    pub(crate) async fn settled(self: &Arc<Self>, name: &str, number: u64) -> Result<()> {
        self.lead(name, number);
        let begun = tokio::time::Instant::now();
        while self.read(name).await?.jobs.contains_key(&number) {
            if begun.elapsed() > CHANGE_TIME_MAX {
                let trouble = self.told(name, number).trouble.unwrap_or_default();
                let message = format!("job {number} is decided and not yet done: {trouble}");
                return Err(Error::unavailable("sql-change-pending", message));
            }
            sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Gives a range of keys, or one key of a list map, to a shard.
    pub async fn add_mapping(
        self: &Arc<Self>,
        name: &str,
        map: &str,
        range: (&str, &str),
        shard: &str,
    ) -> Result<u64> {
        self.decided(name, |draft| {
            draft.must_have_room()?;
            let map = draft.map(map)?;
            let routes = match map.kind {
                MapKind::List => bounds::routes_of(&map, &bounds::key(&map, range.0)?)?,
                MapKind::Range | MapKind::Hash => {
                    let low = bounds::parse(&map, range.0)?.unwrap_or_default();
                    KeyRange::new(low, bounds::parse(&map, range.1)?)
                }
            };
            if routes.is_empty() {
                return Err(Error::invalid("sql-range-empty", "the range holds no key"));
            }
            draft.must_not_overlap(map.id, &routes, &[])?;
            let shard = draft.model.shard_named(shard)?.id;
            let id = draft.model.next_number();
            let mut mapping = MappingForm {
                id,
                map: map.id,
                low: String::new(),
                high: None,
                shard,
                epoch: 1,
                state: State::Online,
                lock: None,
            };
            mapping.set_routes(&routes);
            draft.mappings.insert(id, mapping.clone());
            Ok((id, Some(ChangeWork { put: vec![mapping], ..ChangeWork::default() })))
        })
        .await
    }

    /// Takes keys out of a map. Their mapping must be offline; the rows stay where they are.
    pub async fn remove_mapping(
        self: &Arc<Self>,
        name: &str,
        which: &Which,
        owner: Option<&str>,
    ) -> Result<u64> {
        self.decided(name, |draft| {
            let mapping = draft.which(which)?;
            draft.must_be_free(&mapping, owner)?;
            if mapping.state != State::Offline {
                let message = format!("mapping {} is not offline", mapping.id);
                return Err(refused("sql-mapping-online", message));
            }
            draft.mappings.remove(&mapping.id);
            let removed = vec![(mapping.shard, mapping.id)];
            Ok((mapping.id, Some(ChangeWork { removed, ..ChangeWork::default() })))
        })
        .await
    }

    /// Brings a mapping online, offline or into the read-only state. `expected` is the epoch that the caller knows.
    pub async fn set_state(
        self: &Arc<Self>,
        name: &str,
        which: &Which,
        state: State,
        options: StateOptions<'_>,
    ) -> Result<MappingForm> {
        self.decided(name, |draft| {
            let mut mapping = draft.which(which)?;
            draft.must_be_free(&mapping, options.owner)?;
            if options.expected.is_some_and(|epoch| epoch != mapping.epoch) {
                let message = format!("mapping {} has epoch {}", mapping.id, mapping.epoch);
                return Err(refused("sql-mapping-changed", message));
            }
            if mapping.state == state {
                return Ok((mapping, None));
            }
            mapping.state = state;
            mapping.epoch += 1;
            draft.mappings.insert(mapping.id, mapping.clone());
            let ends_sessions = options.ends_sessions && state == State::Offline;
            let put = vec![mapping.clone()];
            Ok((mapping, Some(ChangeWork { put, ends_sessions, removed: Vec::new() })))
        })
        .await
    }

    /// Locks a mapping against changes by others, or unlocks it.
    pub async fn set_lock(
        &self,
        name: &str,
        which: &Which,
        lock: Option<&str>,
        owner: Option<&str>,
        by_force: bool,
    ) -> Result<MappingForm> {
        let edit = |draft: &mut Draft| {
            let mut mapping = draft.which(which)?;
            match (&mapping.lock, lock) {
                (Some(_), Some(_)) => {
                    let message = format!("mapping {} is locked already", mapping.id);
                    return Err(refused("sql-mapping-locked", message));
                }
                (Some(held), None) if !by_force && Some(&**held) != owner => {
                    let message = format!("mapping {} is locked by another owner", mapping.id);
                    return Err(refused("sql-mapping-locked", message));
                }
                _ => mapping.lock = lock.map(str::to_owned),
            }
            draft.mappings.insert(mapping.id, mapping.clone());
            Ok(mapping)
        };
        Ok(self.change(name, edit).await?.0)
    }

    /// Frees all mappings that an owner has locked, and says how many.
    pub async fn unlock_all(&self, name: &str, owner: &str) -> Result<usize> {
        let edit = |draft: &mut Draft| {
            let mut count = 0;
            for mapping in draft.mappings.values_mut() {
                if mapping.lock.as_deref() == Some(owner) {
                    mapping.lock = None;
                    count += 1;
                }
            }
            Ok(count)
        };
        Ok(self.change(name, edit).await?.0)
    }

    /// Cuts a mapping in two at a key (of a hash map: a slot), or isolates one key. Metadata only: no row moves.
    pub async fn split(
        self: &Arc<Self>,
        name: &str,
        which: &Which,
        at: &Cut,
        owner: Option<&str>,
    ) -> Result<Vec<u64>> {
        self.decided(name, |draft| {
            draft.must_have_room()?;
            let mapping = draft.which(which)?;
            draft.must_be_free(&mapping, owner)?;
            let map = draft.map_of(mapping.map)?;
            let routes = mapping.routes()?;
            let cuts: Vec<Bytes> = match at {
                Cut::At(text) => bounds::parse(&map, text)?.into_iter().collect(),
                Cut::Isolate(key) => {
                    let key = bounds::routes_of(&map, &bounds::key(&map, key)?)?;
                    Some(key.start).into_iter().chain(key.end).collect()
                }
            };
            let is_inside = |cut: &Bytes| {
                *cut > routes.start && routes.end.as_ref().is_none_or(|end| cut < end)
            };
            let cuts: Vec<Bytes> = cuts.into_iter().filter(is_inside).collect();
            if cuts.is_empty() && matches!(at, Cut::At(_)) || map.kind == MapKind::List {
                let message = format!("mapping {} cannot be cut there", mapping.id);
                return Err(Error::invalid("sql-cut-outside", message));
            }
            let mut work = ChangeWork::default();
            let mut ids = vec![mapping.id];
            let mut low = routes.start.clone();
            let ends = cuts.iter().cloned().map(Some).chain([routes.end.clone()]);
            for (nth, end) in ends.enumerate() {
                let mut part = mapping.clone();
                part.epoch += 1;
                if nth > 0 {
                    part.id = draft.model.next_number();
                    ids.push(part.id);
                }
                part.set_routes(&KeyRange::new(low.clone(), end.clone()));
                draft.mappings.insert(part.id, part.clone());
                work.put.push(part);
                low = end.unwrap_or_default();
            }
            Ok((ids, (!cuts.is_empty()).then_some(work)))
        })
        .await
    }

    /// Joins a mapping with its right neighbour on the same shard. Metadata only.
    pub async fn merge(
        self: &Arc<Self>,
        name: &str,
        which: &Which,
        owner: Option<&str>,
    ) -> Result<u64> {
        self.decided(name, |draft| {
            let mut left = draft.which(which)?;
            draft.must_be_free(&left, owner)?;
            let right = neighbour(draft, &left)?;
            draft.must_be_free(&right, owner)?;
            if left.shard != right.shard {
                let message = format!(
                    "mappings {} and {} are on different shards: move one of them first",
                    left.id, right.id
                );
                return Err(refused("sql-merge-apart", message));
            }
            if left.state != right.state {
                let message = format!("mappings {} and {} differ in state", left.id, right.id);
                return Err(refused("sql-merge-states", message));
            }
            left.epoch = left.epoch.max(right.epoch) + 1;
            left.high.clone_from(&right.high);
            draft.mappings.remove(&right.id);
            draft.mappings.insert(left.id, left.clone());
            let removed = vec![(right.shard, right.id)];
            Ok((left.id, Some(ChangeWork { removed, put: vec![left], ends_sessions: false })))
        })
        .await
    }
}

/// Where a mapping is cut.
#[derive(Clone, Debug)]
pub enum Cut {
    At(String),
    /// Around one key.
    Isolate(String),
}

/// What a change of a mapping's state is made with.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateOptions<'a> {
    /// Who has locked the mapping.
    pub owner: Option<&'a str>,
    /// The epoch that the caller knows; another one refuses the change.
    pub expected: Option<u64>,
    /// Whether going offline ends the sessions that were opened for the mapping.
    pub ends_sessions: bool,
}

/// The mapping that begins where this one ends.
fn neighbour(draft: &Draft, left: &MappingForm) -> Result<MappingForm> {
    let right = draft
        .mappings
        .values()
        .find(|it| it.map == left.map && left.high.as_ref().is_some_and(|high| *high == it.low));
    let missing = || {
        let message = format!("mapping {} has no neighbour behind it", left.id);
        Error::not_found("no-sql-neighbour", message)
    };
    right.cloned().ok_or_else(missing)
}
