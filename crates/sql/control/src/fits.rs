//! What must hold of a table, or of a shard that joins, before rows are placed by a map.

use lazuli_sharded_sql::{ColumnType, TableName};
use lazuli_store::{Error, Result};

use crate::book::Draft;
use crate::control::{Control, refused};
use crate::form::{ColumnForm, MapForm, PlaceForm, TableForm};
use crate::install;
use crate::link::Link;
use crate::shape::Shape;

/// The key columns of a table, checked against the map's key.
pub(crate) fn key_columns(
    shape: &Shape,
    map: &MapForm,
    names: &[String],
) -> Result<Vec<ColumnForm>> {
    let types = map.column_types()?;
    if types.len() != names.len() {
        let message = format!("the key of map {} has {} columns", map.name, types.len());
        return Err(Error::invalid("bad-sql-key", message));
    }
    let column = |(name, wanted): (&String, ColumnType)| {
        let found = shape.columns.iter().find(|it| it.name == *name);
        let missing = || {
            let message = format!("table {} has no stored column {name}", shape.name);
            Error::not_found("no-sql-column", message)
        };
        let found = found.ok_or_else(missing)?;
        // The length of a varchar does not matter.
        let base = found.sql_type.split('(').next().unwrap_or_default();
        let column = ColumnType::of_name(base).filter(|it| it.is_comparable_with(wanted));
        let wrong = || {
            let (table, have) = (&shape.name, &found.sql_type);
            let message = format!(
                "column {name} of {table} is {have}, and the key of the map {}",
                wanted.name()
            );
            Error::invalid("bad-sql-key-type", message)
        };
        let column = column.ok_or_else(wrong)?;
        Ok(ColumnForm { name: name.clone(), column: column.name().to_owned() })
    };
    names.iter().zip(types).map(column).collect()
}

/// A table whose rows cannot be told apart cannot be moved.
pub(crate) fn must_have_key(shape: &Shape) -> Result<()> {
    if shape.key.is_empty() {
        let message = format!("table {} has no primary key", shape.name);
        return Err(Error::invalid("sql-table-without-key", message));
    }
    Ok(())
}

pub(crate) fn bad_parent(table: &TableName, parent: &TableName, what: &str) -> Error {
    let message = format!("{table} has a foreign key to {parent}, which is not {what}");
    Error::invalid("sql-foreign-key-apart", message)
}

/// Foreign keys of a sharded table stay on its shard: they lead to reference tables, or to tables of the same map by columns
/// that hold the sharding key.
pub(crate) fn must_keep_parents(draft: &Draft, shape: &Shape, place: &PlaceForm) -> Result<()> {
    let PlaceForm::Sharded { map, columns } = place else { return Ok(()) };
    for foreign in &shape.parents {
        let parent = draft.model.tables.iter().find(|it| it.table_name() == foreign.parent);
        let own = TableForm {
            id: 0,
            schema: shape.name.schema.clone(),
            name: shape.name.name.clone(),
            place: place.clone(),
        };
        let parent = if foreign.parent == shape.name { Some(&own) } else { parent };
        match parent.map(|it| &it.place) {
            Some(PlaceForm::Reference) => {}
            Some(PlaceForm::Sharded { map: of, columns: theirs }) if of == map => {
                let pairs = || foreign.columns.iter().zip(&foreign.parent_columns);
                let follows = |(mine, theirs): (&ColumnForm, &ColumnForm)| {
                    pairs().any(|(child, parent)| *child == mine.name && *parent == theirs.name)
                };
                if !columns.iter().zip(theirs).all(follows) {
                    let what = "referred to by the sharding key, so parent and child may be apart";
                    return Err(bad_parent(&shape.name, &foreign.parent, what));
                }
            }
            _ => {
                let what = "a reference table, nor sharded by the same map";
                return Err(bad_parent(&shape.name, &foreign.parent, what));
            }
        }
    }
    Ok(())
}

/// Refuses a shard whose tables are not those of the others, or that has rows already.
pub(crate) async fn must_fit(control: &Control, draft: &Draft, new: &Link) -> Result<()> {
    let Some(first) = draft.model.shards.first() else { return Ok(()) };
    let link = control.link(first).await?;
    for table in &draft.model.tables {
        let name = table.table_name();
        if matches!(table.place, PlaceForm::Single { .. }) {
            continue;
        }
        let here = Shape::read(&link, &name).await?;
        let there = Shape::read(new, &name).await?;
        match (here, there) {
            (Some(here), Some(there)) => here.must_equal(&there, &first.name, &new.name)?,
            _ => {
                let message = format!("there is no table {name} on shard {}", new.name);
                return Err(Error::not_found("no-sql-table", message));
            }
        }
        let rows =
            format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) t", install::quoted(&name));
        if new.text(&rows).await? != "0" {
            let message = format!("table {name} on shard {} has rows already", new.name);
            return Err(refused("sql-shard-not-empty", message));
        }
    }
    Ok(())
}
