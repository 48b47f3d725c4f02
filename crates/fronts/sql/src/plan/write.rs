//! INSERT, UPDATE and DELETE.

use lazuli_sharded_sql::{TableKind, TableName};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, OnConflictAction, OnInsert,
    Query, SelectItem, SetExpr, Statement, TableFactor, TableObject, TableWithJoins, Update,
    UpdateTableFromKind, Visit,
};

use super::constants::constant;
use super::query::{co_located, over_several, routed, same_everywhere};
use super::reference::{reference, reference_insert};
use super::walk::{Walk, folded, parts};
use super::{Bound, Context, KeySource, Plan, Routed, Spread, WriteEverywhere};
use crate::error::{SqlError, code};

/// An INSERT of several rows, each with its own key.
#[derive(Clone, Debug)]
pub(crate) struct InsertRows {
    pub(crate) insert: Box<Insert>,
    pub(crate) map: usize,
    /// The key of each row.
    pub(crate) rows: Vec<Bound>,
}

impl InsertRows {
    /// The same statement with some of the rows.
    pub(crate) fn text(&self, rows: &[usize]) -> String {
        let mut insert = self.insert.clone();
        if let Some(SetExpr::Values(values)) = insert.source.as_mut().map(|it| it.body.as_mut()) {
            let kept = rows.iter().filter_map(|row| values.rows.get(*row).cloned()).collect();
            values.rows = kept;
        }
        Statement::Insert(*insert).to_string()
    }
}

pub(crate) fn insert(insert: Insert, context: &Context<'_>) -> Result<Plan, SqlError> {
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::refused("INSERT into this is not supported by the router"));
    };
    let mut walk = Walk::new(context);
    let level = walk.scope.level(None);
    let alias = insert.table_alias.as_ref().map(|it| folded(&it.alias));
    let (target, table) = walk.target(name, alias, level)?;
    let source_level = match &insert.source {
        Some(source) => walk.query(source, None)?,
        None => level,
    };
    if let Some(returning) = &insert.returning {
        walk.expressions(returning, level)?;
    }
    if let Some(on) = &insert.on {
        walk.expressions(on, level)?;
    }
    walk.check(&insert)?;
    let kind = context.snapshot.tables.get(&table).map(|it| it.kind.clone());
    match kind {
        Some(TableKind::Sharded { map, key }) => {
            refuse_key_in_conflict(insert.on.as_ref(), &key)?;
            let columns = column_list(&insert, &table, context)?;
            let positions = positions(&columns, &key, &table)?;
            let types: Vec<_> = key.iter().map(|(_, column)| *column).collect();
            let rows = row_keys(&insert, &positions, source_level, &walk)?;
            let bound = |columns: Vec<Vec<KeySource>>| Bound { map, types: types.clone(), columns };
            let rows: Vec<_> = rows.into_iter().map(bound).collect();
            sharded_insert(insert, map, rows, &walk, target)
        }
        Some(TableKind::Reference) => {
            reference_insert(&insert, &table, context)?;
            let statement = Statement::Insert(insert);
            reference(&walk, &statement)
        }
        Some(TableKind::Single { .. }) | None => single(&walk, "INSERT"),
    }
}

fn sharded_insert(
    insert: Insert,
    map: usize,
    rows: Vec<Bound>,
    walk: &Walk<'_, '_>,
    target: usize,
) -> Result<Plan, SqlError> {
    let is_values =
        matches!(insert.source.as_ref().map(|it| it.body.as_ref()), Some(SetExpr::Values(_)));
    let others = walk.scope.sharded(walk.context).filter(|index| *index != target);
    let others: Option<Vec<_>> =
        others.map(|index| walk.scope.bound(index, walk.context)).collect();
    let fixed = routed(walk, true)?.and_then(|routed| routed.fixed);
    let bounds = others.map(|others| rows.iter().cloned().chain(others).collect());
    let statement = Statement::Insert(insert.clone());
    let spread = if is_values && super::walk::is_faithful(&statement) {
        Spread::Insert(InsertRows { insert: Box::new(insert), map, rows })
    } else {
        let message = "INSERT … SELECT works where the rows come from the shard that they go to";
        let hint = "Name the key as a constant, or equal to that of the tables that are read.";
        Spread::Refused(SqlError::refused(message).hint(hint))
    };
    let maps = vec![map];
    Ok(Plan::Routed(Box::new(Routed { bounds, fixed, maps, is_write: true, spread })))
}

/// The columns that the values are for.
pub(super) fn column_list(
    insert: &Insert,
    table: &TableName,
    context: &Context<'_>,
) -> Result<Vec<String>, SqlError> {
    if !insert.columns.is_empty() {
        let names = insert.columns.iter().map(|name| parts(name).and_then(|mut it| it.pop()));
        return names
            .collect::<Option<_>>()
            .ok_or_else(|| SqlError::refused("this list of columns is not supported"));
    }
    let facts = context.facts.tables.get(table);
    facts.map(|facts| facts.columns.iter().map(|it| it.name.clone()).collect()).ok_or_else(|| {
        SqlError::new(
            code::UNDEFINED_TABLE,
            format!("relation \"{table}\" is not on the catalog shard"),
        )
    })
}

fn positions(
    columns: &[String],
    key: &[(String, lazuli_sharded_sql::ColumnType)],
    table: &TableName,
) -> Result<Vec<usize>, SqlError> {
    key.iter()
        .map(|(name, _)| {
            columns.iter().position(|it| it == name).ok_or_else(|| {
                SqlError::new(
                    code::KEY_NULL,
                    format!("INSERT into {table} does not name its sharding key \"{name}\""),
                )
                .hint("Give the key a value; `SELECT lazuli_next_id()` makes unique ones.")
            })
        })
        .collect()
}

/// The keys of the rows that are inserted.
fn row_keys(
    insert: &Insert,
    positions: &[usize],
    source_level: usize,
    walk: &Walk<'_, '_>,
) -> Result<Vec<Vec<Vec<KeySource>>>, SqlError> {
    let Some(source) = &insert.source else {
        return Err(SqlError::new(code::KEY_NULL, "DEFAULT VALUES gives no sharding key"));
    };
    let not_constant = |expr: &Expr| {
        let text = expr.to_string();
        if text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("default") {
            return SqlError::new(code::KEY_NULL, "the sharding key of a row is NULL or DEFAULT");
        }
        SqlError::refused(format!("the sharding key of a row must be a constant, not {text}")).hint(
            "Compute it first, for instance with `SELECT lazuli_next_id()`, and insert the value.",
        )
    };
    let of_row = |row: &[Expr]| -> Result<Vec<Vec<KeySource>>, SqlError> {
        positions
            .iter()
            .map(|position| {
                let missing = || SqlError::new(code::SYNTAX, "a row has too few values");
                let expr = row.get(*position).ok_or_else(missing)?;
                constant(expr).map(|it| vec![it]).ok_or_else(|| not_constant(expr))
            })
            .collect()
    };
    match source.body.as_ref() {
        SetExpr::Values(values) if is_bare(source) => {
            values.rows.iter().map(|row| of_row(row)).collect()
        }
        SetExpr::Select(select) => {
            let items: Vec<_> = select.projection.iter().collect();
            let has_star = items.iter().any(|item| {
                matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
            });
            let refused = || {
                SqlError::refused(
                    "INSERT … SELECT must give the sharding key as a constant or a bound column",
                )
                .hint("Name the columns, and give the key as a value.")
            };
            if has_star {
                return Err(refused());
            }
            let mut key = Vec::new();
            for position in positions {
                let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) =
                    items.get(*position)
                else {
                    return Err(refused());
                };
                let values = constant(expr).map(|it| vec![it]).or_else(|| {
                    let node = walk.column(expr, source_level)?;
                    walk.scope.values_of(&node)
                });
                key.push(values.ok_or_else(refused)?);
            }
            Ok(vec![key])
        }
        _ => Err(SqlError::refused("this form of INSERT is not supported by the router")),
    }
}

/// Only VALUES, without an order or a limit.
fn is_bare(query: &Query) -> bool {
    query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none()
}

fn refuse_key_in_conflict(
    on: Option<&OnInsert>,
    key: &[(String, lazuli_sharded_sql::ColumnType)],
) -> Result<(), SqlError> {
    match on {
        Some(OnInsert::OnConflict(conflict)) => match &conflict.action {
            OnConflictAction::DoUpdate(update) => refuse_key(&update.assignments, key),
            OnConflictAction::DoNothing => Ok(()),
        },
        Some(_) => Err(SqlError::refused("this clause of INSERT is not PostgreSQL's")),
        None => Ok(()),
    }
}

/// A row's key cannot change, because the row would have to change its shard.
fn refuse_key(
    assignments: &[Assignment],
    key: &[(String, lazuli_sharded_sql::ColumnType)],
) -> Result<(), SqlError> {
    let is_key = |name: &sqlparser::ast::ObjectName| {
        parts(name).is_none_or(|parts| key.iter().any(|(column, _)| parts.last() == Some(column)))
    };
    for assignment in assignments {
        let changes = match &assignment.target {
            AssignmentTarget::ColumnName(name) => is_key(name),
            AssignmentTarget::Tuple(names) => names.iter().any(is_key),
        };
        if changes {
            return Err(SqlError::refused("the sharding key of a row cannot be changed")
                .hint("Insert the row with the new key and delete the old one."));
        }
    }
    Ok(())
}

fn single(walk: &Walk<'_, '_>, what: &str) -> Result<Plan, SqlError> {
    let Some(mut plan) = routed(walk, true)? else { return Ok(Plan::Anywhere) };
    plan.spread = Spread::Refused(over_several(what));
    Ok(Plan::Routed(Box::new(plan)))
}

fn target_of(
    table: &TableWithJoins,
) -> Result<(&sqlparser::ast::ObjectName, Option<String>), SqlError> {
    match &table.relation {
        TableFactor::Table { name, alias, .. } if table.joins.is_empty() => {
            Ok((name, alias.as_ref().map(|alias| folded(&alias.name))))
        }
        _ => Err(SqlError::refused("a write to such a target is not supported by the router")),
    }
}

pub(crate) fn update(update: Update, context: &Context<'_>) -> Result<Plan, SqlError> {
    let (name, alias) = target_of(&update.table)?;
    let mut walk = Walk::new(context);
    let level = walk.scope.level(None);
    let (target, table) = walk.target(name, alias, level)?;
    let froms = match &update.from {
        Some(UpdateTableFromKind::BeforeSet(froms) | UpdateTableFromKind::AfterSet(froms)) => {
            &froms[..]
        }
        None => &[],
    };
    for from in froms {
        walk.tables(from, level)?;
    }
    if let Some(selection) = &update.selection {
        walk.where_clause(selection, level)?;
    }
    for assignment in &update.assignments {
        walk.expressions(&assignment.value, level)?;
    }
    if let Some(returning) = &update.returning {
        walk.expressions(returning, level)?;
    }
    if let Some(TableKind::Sharded { key, .. }) =
        context.snapshot.tables.get(&table).map(|it| &it.kind)
    {
        refuse_key(&update.assignments, key)?;
    }
    let statement = Statement::Update(update);
    changing(walk, level, target, table, statement, "UPDATE")
}

pub(crate) fn delete(delete: Delete, context: &Context<'_>) -> Result<Plan, SqlError> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = from.as_slice() else {
        return Err(SqlError::refused("DELETE from several tables is not PostgreSQL's"));
    };
    let (name, alias) = target_of(from)?;
    let mut walk = Walk::new(context);
    let level = walk.scope.level(None);
    let (target, table) = walk.target(name, alias, level)?;
    for using in delete.using.iter().flatten() {
        walk.tables(using, level)?;
    }
    if let Some(selection) = &delete.selection {
        walk.where_clause(selection, level)?;
    }
    if let Some(returning) = &delete.returning {
        walk.expressions(returning, level)?;
    }
    let statement = Statement::Delete(delete);
    changing(walk, level, target, table, statement, "DELETE")
}

/// What UPDATE and DELETE have in common.
fn changing(
    walk: Walk<'_, '_>,
    level: usize,
    target: usize,
    table: TableName,
    statement: Statement,
    what: &str,
) -> Result<Plan, SqlError> {
    walk.check(&statement)?;
    let context = walk.context;
    match context.snapshot.tables.get(&table).map(|it| &it.kind) {
        Some(TableKind::Sharded { .. }) => {
            let Some(mut plan) = routed(&walk, true)? else { return Ok(Plan::Anywhere) };
            plan.spread = match everywhere(&walk, level, &statement) {
                Ok(()) => {
                    let alias = walk.scope.instances[target].alias.clone();
                    let statement = Box::new(statement);
                    Spread::Write(WriteEverywhere { table, alias, statement })
                }
                Err(error) => Spread::Refused(error),
            };
            Ok(Plan::Routed(Box::new(plan)))
        }
        Some(TableKind::Reference) => reference(&walk, &statement),
        Some(TableKind::Single { .. }) | None => single(&walk, what),
    }
}

fn everywhere<T: Visit>(walk: &Walk<'_, '_>, level: usize, whole: &T) -> Result<(), SqlError> {
    if let Some(obstacle) = walk.obstacles.first() {
        return Err(over_several(obstacle));
    }
    co_located(walk, level)?;
    same_everywhere(whole)
}
