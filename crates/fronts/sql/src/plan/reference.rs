//! Writes to reference tables: the same statement runs on every shard, so it must do the same there.

use lazuli_sharded_sql::TableName;
use sqlparser::ast::{Insert, Statement};

use super::query::routed;
use super::walk::{Walk, function_names};
use super::write::column_list;
use super::{Context, Plan, Spread, functions};
use crate::error::SqlError;

/// The same statement on every shard must do the same.
pub(super) fn reference(walk: &Walk<'_, '_>, statement: &Statement) -> Result<Plan, SqlError> {
    if let Some(name) = function_names(statement).iter().find(|it| !functions::is_constant(it)) {
        return Err(SqlError::refused(format!(
            "{name} in a write to a reference table could give each shard another value"
        ))
        .hint("Compute the value first and write it as a constant."));
    }
    if walk.scope.sharded(walk.context).next().is_some() {
        return Err(SqlError::refused("a write to a reference table cannot read sharded tables"));
    }
    let Some(mut plan) = routed(walk, true)? else { return Ok(Plan::Anywhere) };
    if plan.fixed.is_some() {
        return Err(SqlError::refused(
            "a write to a reference table cannot read a table of one shard",
        ));
    }
    plan.bounds = None;
    plan.spread = Spread::Reference;
    Ok(Plan::Routed(Box::new(plan)))
}

pub(super) fn reference_insert(
    insert: &Insert,
    table: &TableName,
    context: &Context<'_>,
) -> Result<(), SqlError> {
    let named = column_list(insert, table, context)?;
    let facts = context.facts.tables.get(table);
    for column in facts.iter().flat_map(|facts| &facts.columns) {
        if column.is_volatile && (insert.columns.is_empty() || !named.contains(&column.name)) {
            let name = &column.name;
            let message =
                format!("the default of column \"{name}\" would differ from shard to shard");
            return Err(SqlError::refused(message).hint(format!("Give \"{name}\" a value.")));
        }
    }
    let defaults = insert
        .source
        .as_ref()
        .is_none_or(|source| source.to_string().to_uppercase().contains("DEFAULT"));
    if defaults {
        return Err(SqlError::refused("DEFAULT in a write to a reference table is not supported"));
    }
    if insert.source.as_ref().is_some_and(|source| source.limit_clause.is_some()) {
        return Err(SqlError::refused("LIMIT in a write to a reference table is not supported"));
    }
    Ok(())
}
