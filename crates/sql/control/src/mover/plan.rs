//! What must hold before a move begins. Nothing is changed if it does not.

use lazuli_store::{Error, Result};

use crate::book::Draft;
use crate::control::{Control, refused};
use crate::form::{MappingForm, ShardForm, State};
use crate::install;
use crate::moves::may_take;
use crate::shape::Shape;
use crate::{routes, tables};

/// Refuses a move whose tables differ between the shards, or whose target has rows of the range already.
pub(crate) async fn check(
    control: &Control,
    draft: &Draft,
    mapping: &MappingForm,
    target: &ShardForm,
) -> Result<()> {
    may_take(draft, mapping, target)?;
    if mapping.state == State::Offline {
        let message = format!("mapping {} is offline: bring it online, or read-only", mapping.id);
        return Err(refused("sql-mapping-offline", message));
    }
    let from = draft.model.shard(mapping.shard)?;
    let (source, new) = (control.link(from).await?, control.link(target).await?);
    // Keys are compared on both sides, in the order of their collation.
    let collation = "SELECT datcollate || ' ' || datlocprovider::text FROM pg_database \
                     WHERE datname = current_database()";
    if source.text(collation).await? != new.text(collation).await? {
        let message = format!("shards {} and {} have different collations", from.name, target.name);
        return Err(Error::invalid("sql-collations-differ", message));
    }
    let map = draft.map_of(mapping.map)?;
    let range = mapping.routes()?;
    for (form, shape) in tables::shapes_of(draft, mapping.map, &source).await? {
        let name = &shape.name;
        let missing = || {
            let message = format!("there is no table {name} on shard {}", target.name);
            Error::not_found("no-sql-table", message)
        };
        let there = Shape::read(&new, name).await?.ok_or_else(missing)?;
        shape.must_equal(&there, &from.name, &target.name)?;
        let columns = tables::columns_of(&form)?;
        let within = routes::within(&map, &columns, "t", &range);
        let table = install::quoted(name);
        let query =
            format!("SELECT count(*) FROM (SELECT 1 FROM {table} t WHERE {within} LIMIT 1) x");
        if new.text(&query).await? != "0" {
            let message = format!(
                "shard {} has rows of {name} in this range already; `lazuli sql check --repair` removes \
                 rows that are on the wrong shard",
                target.name
            );
            return Err(refused("sql-target-not-empty", message));
        }
    }
    Ok(())
}
