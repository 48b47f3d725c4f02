//! The durable form of a sharded database: JSON in records of the catalog.
//!
//! One record has everything but the mappings and jobs; each of those has a record of its own, because a list map may have
//! many mappings and a job changes often.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_sharded_sql::{
    ColumnType, Login, MapKind, Mapping, MappingState, Shard, ShardMap, Snapshot, Table, TableKind,
    TableName,
};
use lazuli_store::{Error, KeyRange, Result};
use serde::{Deserialize, Serialize};

use crate::link;

/// A sharded database without its mappings and jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelForm {
    pub name: String,
    /// Grows with every change, also of mappings.
    pub version: u64,
    /// The last number that was given to a table, a map, a mapping, an operation or a job.
    pub last_number: u64,
    /// The last number that was given to a shard.
    pub last_shard: u32,
    pub shards: Vec<ShardForm>,
    pub maps: Vec<MapForm>,
    pub tables: Vec<TableForm>,
    #[serde(default)]
    pub logins: Vec<LoginForm>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardForm {
    pub id: u32,
    pub name: String,
    /// `postgres://user@host/database?…`, without a password: it says in which file or variable that is.
    pub address: String,
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether it is being emptied.
    #[serde(default)]
    pub draining: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapForm {
    pub id: u32,
    pub name: String,
    pub kind: Kind,
    /// Types of the key's columns, as PostgreSQL names them.
    pub key: Vec<String>,
    /// The jobs because of which rows may lie on two shards.
    #[serde(default)]
    pub moving: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    List,
    Range,
    Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableForm {
    pub id: u32,
    pub schema: String,
    pub name: String,
    #[serde(flatten)]
    pub place: PlaceForm,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PlaceForm {
    Sharded { map: u32, columns: Vec<ColumnForm> },
    Reference,
    Single { shard: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnForm {
    pub name: String,
    #[serde(rename = "type")]
    pub column: String,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginForm {
    pub name: String,
    pub secret: String,
    #[serde(default)]
    pub role: Option<String>,
}

/// Without the secret, so that no log shows it.
impl std::fmt::Debug for LoginForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "login {} with role {:?}", self.name, self.role)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingForm {
    pub id: u64,
    pub map: u32,
    /// Hexadecimal bytes of the first route.
    pub low: String,
    /// The first route behind it; none for the end.
    pub high: Option<String>,
    pub shard: u32,
    pub epoch: u64,
    pub state: State,
    /// Who has locked the mapping against changes. Reads and writes of rows do not care.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Online,
    ReadOnly,
    Offline,
}

impl State {
    /// How a shard's local map calls it.
    pub(crate) fn local(self) -> &'static str {
        match self {
            Self::Online => "open",
            Self::ReadOnly => "read-only",
            Self::Offline => "offline",
        }
    }
}

fn corrupt(what: &str) -> Error {
    let message = format!("the record of a sharded database has a bad {what}");
    Error::corrupt("sql-model-corrupt", message)
}

impl ModelForm {
    /// The next number of a table, a map, a mapping or a job.
    pub fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub fn shard(&self, id: u32) -> Result<&ShardForm> {
        self.shards.iter().find(|it| it.id == id).ok_or_else(|| corrupt("shard"))
    }

    pub fn shard_named(&self, name: &str) -> Result<&ShardForm> {
        let missing = || Error::not_found("no-sql-shard", format!("there is no shard {name}"));
        self.shards.iter().find(|it| it.name == name).ok_or_else(missing)
    }

    pub fn map(&self, id: u32) -> Result<&MapForm> {
        self.maps.iter().find(|it| it.id == id).ok_or_else(|| corrupt("map"))
    }

    pub fn map_named(&self, name: &str) -> Result<&MapForm> {
        let missing = || Error::not_found("no-sql-map", format!("there is no map {name}"));
        self.maps.iter().find(|it| it.name == name).ok_or_else(missing)
    }

    /// The tables that are sharded by a map.
    pub fn tables_of(&self, map: u32) -> impl Iterator<Item = &TableForm> {
        let is_its = move |it: &&TableForm| matches!(&it.place, PlaceForm::Sharded { map: of, .. } if *of == map);
        self.tables.iter().filter(is_its)
    }

    /// The snapshot that routers read.
    pub fn snapshot<'m>(
        &self,
        mappings: impl Iterator<Item = &'m MappingForm>,
    ) -> Result<Snapshot> {
        let index =
            |id: u32| self.shards.iter().position(|it| it.id == id).ok_or_else(|| corrupt("shard"));
        let mut by_map: BTreeMap<u32, Vec<Mapping>> = BTreeMap::new();
        for form in mappings {
            by_map.entry(form.map).or_default().push(form.mapping(index(form.shard)?)?);
        }
        let mut maps = Vec::new();
        for form in &self.maps {
            let mut mappings = by_map.remove(&form.id).unwrap_or_default();
            mappings.sort_by(|a, b| a.low.cmp(&b.low));
            maps.push(Arc::new(form.map(mappings)?));
        }
        let mut tables = BTreeMap::new();
        for form in &self.tables {
            let kind = match &form.place {
                PlaceForm::Sharded { map, columns } => TableKind::Sharded {
                    map: self
                        .maps
                        .iter()
                        .position(|it| it.id == *map)
                        .ok_or_else(|| corrupt("map of a table"))?,
                    key: columns.iter().map(ColumnForm::column).collect::<Result<_>>()?,
                },
                PlaceForm::Reference => TableKind::Reference,
                PlaceForm::Single { shard } => TableKind::Single { shard: index(*shard)? },
            };
            tables.insert(form.table_name(), Table { kind });
        }
        let login = |it: &LoginForm| {
            (it.name.clone(), Login { secret: it.secret.clone(), role: it.role.clone() })
        };
        Ok(Snapshot {
            name: self.name.clone(),
            version: self.version,
            tables,
            maps,
            shards: self.shards.iter().map(ShardForm::shard).collect::<Result<_>>()?,
            catalog_shard: 0,
            logins: self.logins.iter().map(login).collect(),
        })
    }
}

impl ShardForm {
    fn shard(&self) -> Result<Arc<Shard>> {
        let server = link::server(&self.address)?;
        Ok(Arc::new(Shard { id: self.id, name: self.name.clone(), server }))
    }
}

impl MapForm {
    pub fn column_types(&self) -> Result<Vec<ColumnType>> {
        let of_name = |name: &String| ColumnType::of_name(name);
        let types: Option<Vec<ColumnType>> = self.key.iter().map(of_name).collect();
        types.ok_or_else(|| corrupt("key"))
    }

    /// The map with these mappings.
    pub fn map(&self, mappings: Vec<Mapping>) -> Result<ShardMap> {
        Ok(ShardMap {
            id: self.id,
            name: self.name.clone(),
            kind: match self.kind {
                Kind::List => MapKind::List,
                Kind::Range => MapKind::Range,
                Kind::Hash => MapKind::Hash,
            },
            key: self.column_types()?,
            mappings,
            is_in_transit: !self.moving.is_empty(),
        })
    }
}

impl ColumnForm {
    pub fn column(&self) -> Result<(String, ColumnType)> {
        let column = ColumnType::of_name(&self.column).ok_or_else(|| corrupt("key column"))?;
        Ok((self.name.clone(), column))
    }
}

impl TableForm {
    pub fn table_name(&self) -> TableName {
        TableName::new(&self.schema, &self.name)
    }
}

impl MappingForm {
    pub fn routes(&self) -> Result<KeyRange> {
        let bytes = |text: &str| unhex(text).ok_or_else(|| corrupt("bound"));
        let high = self.high.as_deref().map(bytes).transpose()?;
        Ok(KeyRange::new(bytes(&self.low)?, high))
    }

    pub fn set_routes(&mut self, routes: &KeyRange) {
        self.low = hex(&routes.start);
        self.high = routes.end.as_ref().map(|end| hex(end));
    }

    fn mapping(&self, shard: usize) -> Result<Mapping> {
        let KeyRange { start, end } = self.routes()?;
        let state = match self.state {
            State::Online => MappingState::Online,
            State::ReadOnly => MappingState::ReadOnly,
            State::Offline => MappingState::Offline,
        };
        Ok(Mapping { id: self.id, low: start, high: end, shard, epoch: self.epoch, state })
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes everything");
    }
    text
}

fn unhex(text: &str) -> Option<Bytes> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}
