//! Maps and tables: what is sharded, by which columns, and what must hold of a table for that.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_sharded_sql::{ColumnType, TableName};
use lazuli_store::{Error, Result};
use serde::Deserialize;

use crate::apply::decide;
use crate::book::Draft;
use crate::control::{Control, refused};
use crate::fits::{bad_parent, key_columns, must_have_key, must_keep_parents};
use crate::form::{ColumnForm, Kind, MapForm, MappingForm, ModelForm, PlaceForm, State, TableForm};
use crate::install;
use crate::job::{ChangeWork, Work};
use crate::link::Link;
use crate::mover::reference;
use crate::routes::{self, bounds};
use crate::shape::{self, Shape};
use crate::shards::check_name;

#[derive(Clone, Debug, Deserialize)]
pub struct NewMap {
    pub name: String,
    pub kind: Kind,
    /// Types of the key's columns, as PostgreSQL names them.
    pub key: Vec<String>,
    /// The shard that gets everything at first; without it a hash map is spread over all shards, and a range map over none.
    #[serde(default)]
    pub on: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct NewTable {
    pub name: String,
    #[serde(flatten)]
    pub place: NewPlace,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum NewPlace {
    Sharded { map: String, columns: Vec<String> },
    Reference,
    Single { shard: String },
}

impl Control {
    /// Adds a map, and the mappings that it begins with.
    pub async fn add_map(self: &Arc<Self>, name: &str, new: &NewMap) -> Result<u32> {
        check_name("map", &new.name)?;
        let (reserved, draft) = self
            .change(name, |draft| Ok(u32::try_from(draft.model.next_number()).unwrap_or(u32::MAX)))
            .await?;
        let mut model = draft.model.clone();
        model.maps.push(map_form(reserved, new)?);
        for shard in &model.shards {
            install::install(&self.link(shard).await?, &model, shard).await?;
        }
        let now = self.env.clock.now_ms();
        let edit = |draft: &mut Draft| {
            if draft.model.maps.iter().any(|it| it.name == new.name) {
                let message = format!("there is a map {} already", new.name);
                return Err(Error::exists("sql-map-exists", message));
            }
            draft.model.maps.push(map_form(reserved, new)?);
            let put = first_mappings(&mut draft.model, reserved, new)?;
            draft.mappings.extend(put.iter().map(|it| (it.id, it.clone())));
            let work = ChangeWork { put, ..ChangeWork::default() };
            Ok((!work.put.is_empty()).then(|| decide(draft, work, now)))
        };
        let (job, _) = self.change(name, edit).await?;
        if let Some(job) = job {
            self.settled(name, job).await?;
        }
        Ok(reserved)
    }

    /// Removes a map that no table uses and that has no mappings.
    pub async fn remove_map(self: &Arc<Self>, name: &str, map: &str) -> Result<()> {
        let edit = |draft: &mut Draft| {
            let id = draft.model.map_named(map)?.id;
            if draft.model.tables_of(id).next().is_some()
                || draft.mappings.values().any(|it| it.map == id)
            {
                let message = format!("map {map} has tables or mappings");
                return Err(refused("sql-map-not-empty", message));
            }
            draft.model.maps.retain(|it| it.id != id);
            Ok(())
        };
        self.change(name, edit).await.map(drop)
    }

    /// Shards a table that is on all shards, or keeps it alike on all of them, or on one alone.
    pub async fn add_table(self: &Arc<Self>, name: &str, new: &NewTable) -> Result<u32> {
        let (number, draft) = self
            .change(name, |draft| Ok(u32::try_from(draft.model.next_number()).unwrap_or(u32::MAX)))
            .await?;
        let table_name = table_name(&new.name)?;
        if let Some(job) = draft.jobs.values().find(|it| !matches!(it.work, Work::Change(_))) {
            let message = format!("job {} needs the tables as they are", job.number);
            return Err(refused("sql-jobs-running", message));
        }
        if draft.model.tables.iter().any(|it| it.table_name() == table_name) {
            let message = format!("{table_name} is in the sharded database already");
            return Err(Error::exists("sql-table-exists", message));
        }
        let place = self.place(&draft, &table_name, new).await?;
        let (schema, table) = (table_name.schema.clone(), table_name.name.clone());
        let table = TableForm { id: number, schema, name: table, place };
        for shard in &draft.model.shards {
            let link = self.link(shard).await?;
            install::guard_table(&link, &draft.model, &table, shard).await?;
        }
        // From here on no row can come to a shard that does not hold it; now those that were there before are looked at.
        let strays = self.count_strays(&draft, &table).await;
        if let Err(error) = strays {
            for shard in &draft.model.shards {
                install::unguard_table(&self.link(shard).await?, &table).await?;
            }
            return Err(error);
        }
        let edit = |draft: &mut Draft| {
            if draft.model.tables.iter().any(|it| it.table_name() == table_name) {
                let message = format!("{table_name} is in the sharded database already");
                return Err(Error::exists("sql-table-exists", message));
            }
            draft.model.tables.push(table.clone());
            Ok(())
        };
        let (_, draft) = self.change(name, edit).await?;
        if matches!(table.place, PlaceForm::Reference) {
            reference::settle(self, &draft, &table).await?;
        }
        Ok(number)
    }

    /// Takes a table out of the sharded database; its rows stay where they are.
    pub async fn remove_table(self: &Arc<Self>, name: &str, table: &str) -> Result<()> {
        let table_name = table_name(table)?;
        let edit = |draft: &mut Draft| {
            if let Some(job) = draft.jobs.values().find(|it| !matches!(it.work, Work::Change(_))) {
                let message = format!("job {} needs the tables as they are", job.number);
                return Err(refused("sql-jobs-running", message));
            }
            let found = draft.model.tables.iter().find(|it| it.table_name() == table_name).cloned();
            let missing = || {
                let message = format!("{table_name} is not in the sharded database");
                Error::not_found("no-sql-table", message)
            };
            let found = found.ok_or_else(missing)?;
            draft.model.tables.retain(|it| it.id != found.id);
            Ok(found)
        };
        let (table, draft) = self.change(name, edit).await?;
        for shard in &draft.model.shards {
            install::unguard_table(&self.link(shard).await?, &table).await?;
        }
        Ok(())
    }

    /// Looks at a table on all shards and decides its place, or says why it cannot have it.
    async fn place(&self, draft: &Draft, name: &TableName, new: &NewTable) -> Result<PlaceForm> {
        let mut shapes: Vec<(String, Shape)> = Vec::new();
        for shard in &draft.model.shards {
            let link = self.link(shard).await?;
            let home = match &new.place {
                NewPlace::Single { shard } => Some(shard),
                _ => None,
            };
            match Shape::read(&link, name).await? {
                Some(shape) => shapes.push((shard.name.clone(), shape)),
                None if home.is_some_and(|home| *home != shard.name) => {}
                None => {
                    let message = format!("there is no table {name} on shard {}", shard.name);
                    return Err(Error::not_found("no-sql-table", message));
                }
            }
        }
        let Some(((first, shape), others)) = shapes.split_first() else {
            return Err(Error::not_found("no-sql-table", format!("there is no table {name}")));
        };
        for (shard, other) in others {
            shape.must_equal(other, first, shard)?;
        }
        match &new.place {
            NewPlace::Single { shard } => {
                Ok(PlaceForm::Single { shard: draft.model.shard_named(shard)?.id })
            }
            NewPlace::Reference => {
                must_have_key(shape)?;
                for parent in &shape.parents {
                    let is_reference = |it: &TableForm| {
                        it.table_name() == parent.parent && it.place == PlaceForm::Reference
                    };
                    if parent.parent != *name && !draft.model.tables.iter().any(is_reference) {
                        return Err(bad_parent(name, &parent.parent, "a reference table"));
                    }
                }
                Ok(PlaceForm::Reference)
            }
            NewPlace::Sharded { map, columns } => {
                let map = draft.model.map_named(map)?;
                let columns = key_columns(shape, map, columns)?;
                must_have_key(shape)?;
                let place = PlaceForm::Sharded { map: map.id, columns };
                must_keep_parents(draft, shape, &place)?;
                Ok(place)
            }
        }
    }

    /// Refuses a table of which a shard has rows that it does not hold.
    async fn count_strays(&self, draft: &Draft, table: &TableForm) -> Result<()> {
        let PlaceForm::Sharded { map, columns } = &table.place else { return Ok(()) };
        let map = draft.map_of(*map)?;
        let columns: Vec<_> = columns.iter().map(ColumnForm::column).collect::<Result<_>>()?;
        for (nth, shard) in draft.model.shards.iter().enumerate() {
            let owned = map.mappings.iter().filter(|it| it.shard == nth);
            let owned: Vec<String> = owned
                .map(|it| {
                    let range = lazuli_store::KeyRange::new(it.low.clone(), it.high.clone());
                    routes::within(&map, &columns, "t", &range)
                })
                .collect();
            let owned = if owned.is_empty() { "false".to_owned() } else { owned.join(" OR ") };
            let name = install::quoted(&table.table_name());
            let link = self.link(shard).await?;
            let strays = link
                .text(&format!("SELECT count(*) FROM {name} t WHERE ({owned}) IS NOT TRUE"))
                .await?;
            if strays != "0" {
                let message = format!(
                    "shard {} has {strays} rows of {} that the map {} does not place there",
                    shard.name,
                    table.table_name(),
                    map.name
                );
                return Err(refused("sql-rows-elsewhere", message));
            }
        }
        Ok(())
    }
}

/// `name` in schema `public`, or `schema.name`.
pub(crate) fn table_name(text: &str) -> Result<TableName> {
    let parts: Vec<&str> = text.split('.').collect();
    match parts[..] {
        [name] if !name.is_empty() => Ok(TableName::new("public", name)),
        [schema, name] if !schema.is_empty() && !name.is_empty() => {
            Ok(TableName::new(schema, name))
        }
        _ => Err(Error::invalid("bad-sql-name", "a table is written NAME or SCHEMA.NAME")),
    }
}

fn map_form(id: u32, new: &NewMap) -> Result<MapForm> {
    let wrong = |name: &String| {
        let known: Vec<&str> = ColumnType::ALL.iter().map(|it| it.name()).collect();
        let message = format!("{name} is no type of a key; known are {}", known.join(", "));
        Error::invalid("bad-sql-key-type", message)
    };
    let full = |name: &String| match &**name {
        "int2" => "smallint".to_owned(),
        "int" | "int4" => "integer".to_owned(),
        "int8" => "bigint".to_owned(),
        "bool" => "boolean".to_owned(),
        "varchar" => "character varying".to_owned(),
        "timestamptz" => "timestamp with time zone".to_owned(),
        "timestamp" => "timestamp without time zone".to_owned(),
        _ => name.clone(),
    };
    let key: Vec<String> = new.key.iter().map(full).collect();
    if let Some(bad) = key.iter().find(|it| ColumnType::of_name(it).is_none()) {
        return Err(wrong(bad));
    }
    let most = lazuli_shardmap::key::KEY_PARTS_MAX;
    if key.is_empty() || key.len() > most {
        return Err(Error::invalid("bad-sql-key", format!("a key has 1 to {most} columns")));
    }
    Ok(MapForm { id, name: new.name.clone(), kind: new.kind, key, moving: Vec::new() })
}

/// The mappings of a new map.
fn first_mappings(model: &mut ModelForm, map: u32, new: &NewMap) -> Result<Vec<MappingForm>> {
    let shards: Vec<u32> = match &new.on {
        Some(name) => vec![model.shard_named(name)?.id],
        None => model.shards.iter().filter(|it| !it.draining).map(|it| it.id).collect(),
    };
    let ranges = match (new.kind, &new.on) {
        (Kind::Hash, _) => bounds::cut(shards.len()),
        (Kind::Range, Some(_)) => vec![lazuli_store::KeyRange::all()],
        (Kind::Range, None) | (Kind::List, _) => Vec::new(),
    };
    Ok(ranges
        .iter()
        .zip(shards)
        .map(|(routes, shard)| {
            let mut mapping = MappingForm {
                id: model.next_number(),
                map,
                low: String::new(),
                high: None,
                shard,
                epoch: 1,
                state: State::Online,
                lock: None,
            };
            mapping.set_routes(routes);
            mapping
        })
        .collect())
}

/// The tables of a map with their shapes, parents before children, and their forms.
pub(crate) async fn shapes_of(
    draft: &Draft,
    map: u32,
    link: &Link,
) -> Result<Vec<(TableForm, Shape)>> {
    let mut shapes = BTreeMap::new();
    for table in draft.model.tables_of(map) {
        let name = table.table_name();
        let missing = || {
            let message = format!("there is no table {name} on shard {}", link.name);
            Error::not_found("no-sql-table", message)
        };
        shapes.insert(name.clone(), Shape::read(link, &name).await?.ok_or_else(missing)?);
    }
    let order = shape::in_order(&shapes)?;
    Ok(order
        .into_iter()
        .filter_map(|name| {
            let form = draft.model.tables.iter().find(|it| it.table_name() == name)?.clone();
            Some((form, shapes.remove(&name)?))
        })
        .collect())
}

/// The key columns of a sharded table.
pub(crate) fn columns_of(table: &TableForm) -> Result<Vec<(String, ColumnType)>> {
    match &table.place {
        PlaceForm::Sharded { columns, .. } => columns.iter().map(ColumnForm::column).collect(),
        PlaceForm::Reference | PlaceForm::Single { .. } => Ok(Vec::new()),
    }
}
