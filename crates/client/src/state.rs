//! What is known of a sharded database: one state of the catalog, read from the answer of the admin API.

use bytes::Bytes;
use lazuli_sharded_sql::{ColumnType, MapKind, Mapping, MappingState, ShardMap};
use lazuli_store_postgres::Settings;
use serde_json::Value;

use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) version: u64,
    pub(crate) shards: Vec<Shard>,
    pub(crate) maps: Vec<ShardMap>,
    pub(crate) tables: Vec<Table>,
    /// The maps as they came, by which two states are compared.
    pub(crate) places: Value,
}

#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) name: String,
    pub(crate) settings: Settings,
}

/// A sharded table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
    /// An index into the maps.
    pub(crate) map: usize,
    pub(crate) columns: Vec<(String, ColumnType)>,
}

fn bad(what: &str) -> Error {
    Error::Unavailable(format!(
        "the admin API answers with a {what} that this library does not know"
    ))
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str> {
    value[name].as_str().ok_or_else(|| bad(name))
}

fn number(value: &Value, name: &str) -> Result<u64> {
    value[name].as_u64().ok_or_else(|| bad(name))
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v Vec<Value>> {
    value[name].as_array().ok_or_else(|| bad(name))
}

fn column(value: &Value) -> Result<ColumnType> {
    value.as_str().and_then(ColumnType::of_name).ok_or_else(|| bad("type of keys"))
}

fn route(hex: &str) -> Result<Bytes> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|it| it as u8);
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
    bytes.filter(|_| rest.is_empty()).map(Bytes::from).ok_or_else(|| bad("bound"))
}

impl State {
    pub(crate) fn read(answer: &Value) -> Result<Self> {
        let shard = |value: &Value| {
            let name = text(value, "name")?.to_owned();
            Ok(Shard { name, settings: Settings::parse(text(value, "address")?)? })
        };
        let shards = list(answer, "shards")?.iter().map(shard).collect::<Result<Vec<_>>>()?;
        let maps = list(answer, "maps")?.iter().map(|it| map(it, &shards));
        let maps = maps.collect::<Result<Vec<_>>>()?;
        let mut tables = Vec::new();
        for value in list(answer, "tables")?.iter().filter(|it| it["kind"] == "sharded") {
            let of = text(value, "map")?;
            let columns = list(value, "columns")?
                .iter()
                .map(|it| Ok((text(it, "name")?.to_owned(), column(&it["type"])?)));
            tables.push(Table {
                schema: text(value, "schema")?.to_owned(),
                name: text(value, "name")?.to_owned(),
                map: maps.iter().position(|it| it.name == of).ok_or_else(|| bad("map"))?,
                columns: columns.collect::<Result<_>>()?,
            });
        }
        let (version, places) = (number(answer, "version")?, answer["maps"].clone());
        Ok(Self { version, shards, maps, tables, places })
    }

    pub(crate) fn shard(&self, name: &str) -> Result<usize> {
        let found = self.shards.iter().position(|it| it.name == name);
        found.ok_or_else(|| Error::Unknown(format!("shard {name}")))
    }

    /// Whether rows of any map may lie on two shards.
    pub(crate) fn is_moving(&self) -> bool {
        self.maps.iter().any(|it| it.is_in_transit)
    }
}

fn map(value: &Value, shards: &[Shard]) -> Result<ShardMap> {
    let kind = match text(value, "kind")? {
        "list" => MapKind::List,
        "range" => MapKind::Range,
        "hash" => MapKind::Hash,
        _ => return Err(bad("kind of maps")),
    };
    let mapping = |value: &Value| {
        let state = match text(value, "state")? {
            "online" => MappingState::Online,
            "read-only" => MappingState::ReadOnly,
            "offline" => MappingState::Offline,
            _ => return Err(bad("state of mappings")),
        };
        let shard = text(value, "shard")?;
        Ok(Mapping {
            id: number(value, "id")?,
            low: route(text(value, "low")?)?,
            high: value["high"].as_str().map(route).transpose()?,
            shard: shards.iter().position(|it| it.name == shard).ok_or_else(|| bad("shard"))?,
            epoch: number(value, "epoch")?,
            state,
        })
    };
    let mut mappings = list(value, "mappings")?.iter().map(mapping).collect::<Result<Vec<_>>>()?;
    mappings.sort_by(|one, other| one.low.cmp(&other.low));
    Ok(ShardMap {
        id: u32::try_from(number(value, "id")?).map_err(|_| bad("map"))?,
        name: text(value, "name")?.to_owned(),
        kind,
        key: list(value, "key")?.iter().map(column).collect::<Result<_>>()?,
        mappings,
        is_in_transit: !list(value, "moving")?.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> Value {
        json!({
            "version": 3,
            "shards": [{ "name": "a", "address": "postgres://me@host/one" }],
            "maps": [{
                "id": 1, "name": "m", "kind": "range", "key": ["bigint"], "moving": [4],
                "mappings": [
                    { "id": 2, "low": "80ff", "high": null, "shard": "a", "epoch": 1, "state": "online" },
                    { "id": 1, "low": "", "high": "80ff", "shard": "a", "epoch": 1, "state": "offline" },
                ],
            }],
            "tables": [
                { "schema": "public", "name": "t", "kind": "sharded", "map": "m",
                  "columns": [{ "name": "k", "type": "bigint" }] },
                { "schema": "public", "name": "r", "kind": "reference" },
            ],
        })
    }

    #[test]
    fn a_state_is_read_with_its_mappings_in_order() {
        let state = State::read(&answer()).unwrap();
        let map = &state.maps[0];
        assert_eq!(map.mappings.iter().map(|it| it.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(map.mappings[1].low.as_ref(), [0x80, 0xff]);
        assert!(state.is_moving() && state.tables.len() == 1 && state.shard("b").is_err());
    }

    #[test]
    fn what_is_not_understood_is_an_error_and_never_a_guess() {
        for (path, value) in [
            ("/maps/0/kind", json!("ring")),
            ("/maps/0/key/0", json!("money")),
            ("/maps/0/mappings/0/state", json!("melting")),
            ("/maps/0/mappings/0/low", json!("8")),
            ("/maps/0/mappings/0/low", json!("zz")),
            ("/maps/0/mappings/0/shard", json!("b")),
            ("/tables/0/map", json!("other")),
            ("/version", json!("three")),
        ] {
            let mut answer = answer();
            *answer.pointer_mut(path).unwrap() = value;
            assert!(State::read(&answer).is_err(), "{path}");
        }
    }
}
