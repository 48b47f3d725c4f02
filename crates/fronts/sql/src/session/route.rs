//! From a plan and its parameters to shards.

use std::collections::BTreeSet;

use lazuli_pg::Bind;
use lazuli_sharded_sql::{ColumnType, MappingState, Place, PlaceError, Snapshot};
use lazuli_shardmap::KeyPart;

use super::{Again, Session, Stop, arrays};
use crate::error::{SqlError, code};
use crate::plan::{Bound, InsertRows, KeySource, Plan, Routed, Spread};
use crate::space::Planned;

/// The most keys of one IN list or array.
const KEYS_MAX: usize = 100_000;

/// Where a statement goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// The endpoint does it.
    Here,
    /// One shard, by its place in the snapshot: the text as it came.
    Shard(usize),
    /// Several shards, as the plan says.
    Shards(Vec<usize>),
    /// Rows of an INSERT: each shard with its rows.
    Rows(Vec<(usize, Vec<usize>)>),
}

/// What is known of the parameters.
pub(crate) struct Parameters<'a> {
    pub(crate) bind: &'a Bind,
    /// Types that the client or the catalog shard has named.
    pub(crate) types: &'a [u32],
}

impl Session {
    pub(super) fn route(
        &mut self,
        snapshot: &Snapshot,
        planned: &Planned,
        bind: &Bind,
    ) -> Result<To, Stop> {
        let described = planned.description.get().map(|known| known.parameters.clone());
        let types = described.as_deref().unwrap_or(&planned.types);
        let parameters = Parameters { bind, types };
        match &planned.plan {
            Plan::Empty | Plan::Command(_) | Plan::Copy(_) | Plan::CopyQuery(_) => Ok(To::Here),
            Plan::Anywhere => Ok(To::Shard(self.anywhere(snapshot))),
            Plan::Cursor if self.tx.leases.is_empty() => {
                Err(SqlError::new(code::BAD_CURSOR, "there is no cursor in this transaction")
                    .into())
            }
            Plan::Cursor if self.tx.leases.len() > 1 => {
                let message = "cursors are not supported in a transaction on several shards";
                Err(SqlError::refused(message).into())
            }
            Plan::Cursor => Ok(To::Shard(self.anywhere(snapshot))),
            Plan::Routed(routed) => self.route_tables(snapshot, routed, &parameters),
        }
    }

    /// A shard for what every shard can answer: one that the transaction has anyway, else the catalog shard.
    fn anywhere(&self, snapshot: &Snapshot) -> usize {
        let held = self.tx.leases.keys().next();
        let held = held.and_then(|id| snapshot.shards.iter().position(|shard| shard.id == *id));
        held.unwrap_or(snapshot.catalog_shard)
    }

    /// A shard for a read of reference tables: those take turns outside of transactions.
    fn any_shard(&mut self, snapshot: &Snapshot) -> usize {
        if !self.tx.leases.is_empty() || !self.tx.is_auto() {
            return self.anywhere(snapshot);
        }
        self.turn = self.turn.wrapping_add(1);
        self.turn % snapshot.shards.len()
    }

    fn route_tables(
        &mut self,
        snapshot: &Snapshot,
        routed: &Routed,
        parameters: &Parameters<'_>,
    ) -> Result<To, Stop> {
        if let Spread::Insert(rows) = &routed.spread {
            return insert(snapshot, routed, rows, parameters);
        }
        if let Spread::Reference = &routed.spread {
            return Ok(To::Shards((0..snapshot.shards.len()).collect()));
        }
        let Some(bounds) = &routed.bounds else { return everywhere(snapshot, routed) };
        let mut shards: BTreeSet<usize> = routed.fixed.into_iter().collect();
        for bound in bounds {
            for key in keys(bound, parameters)? {
                shards.insert(place(snapshot, bound.map, &key, routed.is_write)?.shard);
            }
        }
        let shards: Vec<_> = shards.into_iter().collect();
        match shards[..] {
            // Only NULLs: no row can match, which any shard can say.
            [] if !bounds.is_empty() => Ok(To::Shard(self.anywhere(snapshot))),
            [] => Ok(To::Shard(self.any_shard(snapshot))),
            [one] => Ok(To::Shard(one)),
            _ => match &routed.spread {
                Spread::Refused(error) => Err(error.clone().into()),
                Spread::Gather(_) => Ok(To::Shards(shards)),
                Spread::Select(_) | Spread::Write(_) if routed.fixed.is_none() => {
                    Ok(To::Shards(shards))
                }
                _ => Err(mixed().into()),
            },
        }
    }
}

fn mixed() -> SqlError {
    SqlError::refused("a table of one shard can be joined with rows of that shard only")
        .hint("Make it a reference table.")
}

/// Every shard that holds rows of the tables.
fn everywhere(snapshot: &Snapshot, routed: &Routed) -> Result<To, Stop> {
    if let Spread::Refused(error) = &routed.spread {
        return Err(error.clone().into());
    }
    if routed.fixed.is_some() && !matches!(routed.spread, Spread::Gather(_)) {
        return Err(mixed().into());
    }
    let mut shards: BTreeSet<usize> = routed.fixed.into_iter().collect();
    for map in routed.maps.iter().filter_map(|map| snapshot.maps.get(*map)) {
        for mapping in &map.mappings {
            check(mapping.state, routed.is_write)?;
            shards.insert(mapping.shard);
        }
    }
    match shards.into_iter().collect::<Vec<_>>() {
        shards if shards.is_empty() => {
            Err(SqlError::new(code::CARDINALITY, "the map of the tables has no mapping").into())
        }
        shards => Ok(To::Shards(shards)),
    }
}

fn insert(
    snapshot: &Snapshot,
    routed: &Routed,
    rows: &InsertRows,
    parameters: &Parameters<'_>,
) -> Result<To, Stop> {
    let mut placed: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, bound) in rows.rows.iter().enumerate() {
        let keys = keys(bound, parameters)?;
        let [key] = keys.as_slice() else {
            return Err(SqlError::new(code::KEY_NULL, "the sharding key of a row is NULL").into());
        };
        let shard = place(snapshot, rows.map, key, true)?.shard;
        match placed.iter_mut().find(|(it, _)| *it == shard) {
            Some((_, rows)) => rows.push(index),
            None => placed.push((shard, vec![index])),
        }
    }
    // Subqueries of the values must be on the same shard.
    let others = routed.bounds.as_ref().map(|all| &all[rows.rows.len()..]);
    let others =
        others.ok_or_else(|| SqlError::refused("a subquery in VALUES is not bound to a key"))?;
    let mut shards: BTreeSet<usize> = placed.iter().map(|(shard, _)| *shard).collect();
    for bound in others {
        for key in keys(bound, parameters)? {
            shards.insert(place(snapshot, bound.map, &key, false)?.shard);
        }
    }
    shards.extend(routed.fixed);
    match (shards.len(), &placed[..]) {
        (1, [(shard, _)]) => Ok(To::Shard(*shard)),
        _ if others.is_empty() && routed.fixed.is_none() => Ok(To::Rows(placed)),
        _ => Err(SqlError::refused("a subquery in VALUES reads from another shard").into()),
    }
}

/// Where a key is, if it can be used there at the moment.
pub(super) fn place(
    snapshot: &Snapshot,
    map: usize,
    key: &[KeyPart],
    is_write: bool,
) -> Result<Place, Stop> {
    let map = snapshot.maps.get(map).ok_or_else(|| SqlError::new(code::INTERNAL, "no such map"))?;
    let place = map.place(key).map_err(|error| match error {
        PlaceError::Unmapped => SqlError::new(
            code::CARDINALITY,
            format!("no mapping of map \"{}\" covers this sharding key", map.name),
        )
        .hint("Add a mapping with `lazuli sql mapping add`."),
        PlaceError::Key(why) => SqlError::new(code::INVALID_VALUE, why),
    })?;
    check(place.state, is_write)?;
    Ok(place)
}

fn check(state: MappingState, is_write: bool) -> Result<(), Stop> {
    match state {
        MappingState::Online => Ok(()),
        MappingState::Fenced if is_write => Err(Stop::Again(Again::Fenced)),
        MappingState::Fenced => Ok(()),
        MappingState::ReadOnly if !is_write => Ok(()),
        MappingState::ReadOnly => {
            Err(SqlError::new("25006", "the rows of this sharding key are read-only").into())
        }
        MappingState::Offline => {
            Err(SqlError::new(code::OFFLINE, "the rows of this sharding key are offline").into())
        }
    }
}

/// All keys that a table is bound to. Those with a NULL match no row and are left out.
pub(crate) fn keys(
    bound: &Bound,
    parameters: &Parameters<'_>,
) -> Result<Vec<Vec<KeyPart>>, SqlError> {
    let mut keys: Vec<Vec<KeyPart>> = vec![Vec::new()];
    for (column, sources) in bound.types.iter().zip(&bound.columns) {
        let mut values = Vec::new();
        for source in sources {
            parts(*column, source, parameters, &mut values)?;
        }
        if keys.len() * values.len() > KEYS_MAX {
            return Err(SqlError::new(code::LIMIT, "too many keys in one statement"));
        }
        keys = keys
            .iter()
            .flat_map(|key| {
                values.iter().map(|value| key.iter().cloned().chain([value.clone()]).collect())
            })
            .collect();
    }
    Ok(keys)
}

fn parts(
    column: ColumnType,
    source: &KeySource,
    parameters: &Parameters<'_>,
    found: &mut Vec<KeyPart>,
) -> Result<(), SqlError> {
    let bad = |error: lazuli_sharded_sql::KeyError| {
        SqlError::new(
            code::INVALID_VALUE,
            format!("the router cannot read a sharding key: {error}"),
        )
        .hint(format!("Give a plain value of type {}.", column.name()))
    };
    let value_of = |number: &usize| {
        let index = number.wrapping_sub(1);
        let value = parameters.bind.values.get(index);
        let value = value.ok_or_else(|| {
            SqlError::new(code::PROTOCOL, format!("there is no parameter ${number}"))
        })?;
        let oid = parameters.types.get(index).copied().unwrap_or(0);
        Ok::<_, SqlError>((index, value.clone(), oid))
    };
    match source {
        KeySource::Literal(text) => found.push(column.parse(text).map_err(bad)?),
        KeySource::Parameter(number) => {
            let (index, value, oid) = value_of(number)?;
            let Some(value) = value else { return Ok(()) };
            if parameters.bind.is_binary(index) {
                found.push(column.decode(oid, &value).map_err(bad)?);
                return Ok(());
            }
            let sent = ColumnType::of_oid(oid);
            if oid != 0
                && oid != UNKNOWN
                && !sent.is_some_and(|sent| column.is_comparable_with(sent))
            {
                let message =
                    format!("parameter ${number} is of another type than the sharding key");
                let hint = format!("Cast it to {}.", column.name());
                return Err(SqlError::new(code::INVALID_VALUE, message).hint(hint));
            }
            found.push(column.parse(&text(&value)?).map_err(bad)?);
        }
        KeySource::ParameterArray(number) => {
            let (index, value, _) = value_of(number)?;
            let Some(value) = value else { return Ok(()) };
            let unclear = || {
                SqlError::new(
                    code::INVALID_VALUE,
                    format!("the router cannot read the array ${number}"),
                )
                .hint("Give an array of one dimension, of the sharding key's type.")
            };
            if parameters.bind.is_binary(index) {
                let (oid, elements) = arrays::from_binary(value).ok_or_else(unclear)?;
                for element in elements.into_iter().flatten() {
                    found.push(column.decode(oid, &element).map_err(bad)?);
                }
            } else {
                let elements = arrays::from_text(&text(&value)?).ok_or_else(unclear)?;
                for element in elements.into_iter().flatten() {
                    found.push(column.parse(&element).map_err(bad)?);
                }
            }
        }
    }
    Ok(())
}

/// The number of PostgreSQL's type for literals that have none yet.
const UNKNOWN: u32 = 705;

fn text(value: &[u8]) -> Result<String, SqlError> {
    let text = std::str::from_utf8(value);
    text.map(str::to_owned).map_err(|_| SqlError::new("22021", "a parameter is not UTF-8"))
}
