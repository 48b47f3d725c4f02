//! SELECT: one shard if every sharded table is bound to a key, several shards if the rows can be put together again.

use std::ops::ControlFlow;

use lazuli_sharded_sql::TableKind;
use sqlparser::ast::{Expr, Query, Statement, Visit, Visitor};

use super::scope::Source;
use super::walk::{Walk, function_names, parts};
use super::{Context, Plan, Routed, Spread, fanout, functions, gather};
use crate::error::SqlError;

pub(crate) fn query(query: &Query, context: &Context<'_>) -> Result<Plan, SqlError> {
    let mut walk = Walk::new(context);
    let level = walk.query(query, None)?;
    walk.check(query)?;
    let is_write = has_locks(query);
    let Some(mut routed) = routed(&walk, is_write)? else { return Ok(Plan::Anywhere) };
    routed.spread = match spread(query, level, &walk) {
        Ok(fan_out) => Spread::Select(fan_out),
        // A part may be refused for a reason of its own, which says more.
        Err(error) => match gather::gather(query, &walk) {
            Ok(Some(gather)) => Spread::Gather(gather),
            Ok(None) => Spread::Refused(error),
            Err(error) => Spread::Refused(error),
        },
    };
    Ok(Plan::Routed(Box::new(routed)))
}

fn has_locks(query: &Query) -> bool {
    let mut found = !query.locks.is_empty();
    if let sqlparser::ast::SetExpr::Query(inner) = query.body.as_ref() {
        found |= has_locks(inner);
    }
    found
}

/// Where the tables of a statement are; none if it has no tables of users.
pub(crate) fn routed(walk: &Walk<'_, '_>, is_write: bool) -> Result<Option<Routed>, SqlError> {
    let context = walk.context;
    let (mut fixed, mut has_tables, mut maps) = (None, false, Vec::new());
    for instance in &walk.scope.instances {
        let Source::Table(name) = &instance.source else { continue };
        has_tables = true;
        match context.snapshot.tables.get(name).map(|table| &table.kind) {
            Some(TableKind::Single { shard }) if fixed.is_some_and(|other| other != *shard) => {
                return Err(SqlError::refused("tables of different shards cannot be joined")
                    .hint("Make the smaller one a reference table."));
            }
            Some(TableKind::Single { shard }) => fixed = Some(*shard),
            Some(TableKind::Sharded { map, .. }) if !maps.contains(map) => maps.push(*map),
            Some(TableKind::Sharded { .. } | TableKind::Reference) | None => {}
        }
    }
    if !has_tables {
        return Ok(None);
    }
    if walk.reads_catalog {
        return Err(SqlError::refused(
            "a statement reads either system catalogs or tables of the sharded database",
        ));
    }
    let bounds =
        walk.scope.sharded(context).map(|index| walk.scope.bound(index, context)).collect();
    let spread = Spread::Refused(SqlError::refused("this statement needs one shard"));
    Ok(Some(Routed { bounds, fixed, maps, is_write, spread }))
}

/// The statements for several shards, or why there are none.
fn spread(query: &Query, level: usize, walk: &Walk<'_, '_>) -> Result<fanout::FanOut, SqlError> {
    if let Some(obstacle) = walk.obstacles.first() {
        return Err(over_several(obstacle));
    }
    let root = co_located(walk, level)?;
    same_everywhere(query)?;
    let statement = Statement::Query(Box::new(query.clone()));
    if !super::walk::is_faithful(&statement) {
        return Err(over_several("an expression that the router cannot write out again"));
    }
    fanout::fan_out(query, level, root, walk)
}

/// All sharded tables are joined by their keys. The answer is the one that says on which shard a row is.
pub(crate) fn co_located(walk: &Walk<'_, '_>, level: usize) -> Result<usize, SqlError> {
    let (scope, context) = (&walk.scope, walk.context);
    let at_top = |index: &usize| {
        let instance = &scope.instances[*index];
        instance.level == level && !instance.is_nullable && !instance.is_derived
    };
    let root = scope.sharded(context).find(at_top);
    let root = root.ok_or_else(|| over_several("a subquery over a sharded table"))?;
    for index in scope.sharded(context) {
        if index == root {
            continue;
        }
        let (name, other) = (&scope.instances[index].alias, &scope.instances[root].alias);
        if scope.instances[index].is_derived || !scope.is_beside(index, root, context) {
            return Err(SqlError::refused(format!(
                "the rows of {name} are not on the shards of the rows of {other} that they belong to"
            ))
            .detail("Sharded tables can be joined over several shards only if their keys are equal.")
            .hint(format!("Add an equality of the key columns of {name} and {other}, or name one key.")));
        }
    }
    Ok(root)
}

/// Only functions that give the same answer everywhere are called.
pub(crate) fn same_everywhere<T: Visit>(whole: &T) -> Result<(), SqlError> {
    for name in function_names(whole) {
        let is_known = functions::is_same_everywhere(&name)
            || functions::is_aggregate(&name)
            || functions::is_window(&name);
        if !is_known {
            return Err(over_several(&format!("the function {name}")));
        }
    }
    Ok(())
}

pub(crate) fn over_several(what: &str) -> SqlError {
    SqlError::refused(format!("{what} is not supported over several shards"))
        .hint("Name one key for every sharded table in WHERE, or ask each shard for itself.")
}

/// Whether a part of a statement holds a call of an aggregate, outside of subqueries.
pub(crate) fn has_aggregate<T: Visit>(part: &T) -> bool {
    part.visit(&mut Calls { depth: 0, is_window: false }).is_break()
}

/// Whether a part of a statement holds a call of a window function, outside of subqueries.
pub(crate) fn has_window<T: Visit>(part: &T) -> bool {
    part.visit(&mut Calls { depth: 0, is_window: true }).is_break()
}

/// Looks for calls of aggregates or window functions. Those of subqueries are about other rows.
struct Calls {
    depth: usize,
    is_window: bool,
}

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = parts(&function.name).and_then(|mut it| it.pop()).unwrap_or_default();
        let is_wanted = match self.is_window {
            true => function.over.is_some(),
            false => function.over.is_none() && functions::is_aggregate(&name),
        };
        if is_wanted && self.depth == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
