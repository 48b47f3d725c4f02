//! Queries whose parts are fetched first: set operations, WITH, and queries in FROM over several shards.
//!
//! Each part is a query by itself, with a plan of its own. Its rows become the rows of a common table expression of the
//! statement that PostgreSQL finishes on the catalog shard. Only tables that are the same everywhere may be left in it. A
//! part that stands in the reach of another one's name, or is bound to rows outside of it, is no query by itself: then
//! there is no such plan.

use std::ops::ControlFlow;

use lazuli_sharded_sql::TableKind;
use sqlparser::ast::{
    Expr, Query, Select, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, Value, Visit,
    Visitor, visit_relations,
};

use super::fanout::refuse_collations;
use super::relations::table_in_path;
use super::walk::{Walk, folded, function_names, is_faithful, parts};
use super::{Context, Plan, functions};
use crate::error::SqlError;
use lazuli_sharded_sql::TableName;

/// The most parts of one statement.
const PARTS_MAX: usize = 16;
/// What the parts are called in the statement that is left.
const NAME: &str = "lazuli_part_";

/// What is fetched, and the statement over it.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    /// Text and plan of each part, which is called `lazuli_part_1` and so on.
    pub(crate) parts: Vec<(String, Plan)>,
    /// The text that is left, behind its own WITH if it has one.
    pub(crate) rest: String,
    /// Whether the text begins with common table expressions of its own.
    pub(crate) has_with: bool,
}

impl Gather {
    pub(crate) fn name(index: usize) -> String {
        format!("{NAME}{}", index + 1)
    }
}

/// The parts of a query; none if it is not made of parts.
pub(crate) fn gather(query: &Query, walk: &Walk<'_, '_>) -> Result<Option<Gather>, SqlError> {
    let context = walk.context;
    let is_allowed = |name: &String| {
        functions::is_same_everywhere(name)
            || functions::is_aggregate(name)
            || functions::is_window(name)
    };
    if !function_names(query).iter().all(is_allowed) || has_locks(query) {
        return Ok(None);
    }
    let mut rest = query.clone();
    let mut cut = Cut { context, found: Vec::new(), ctes: Vec::new() };
    if !cut.query(&mut rest) || cut.found.is_empty() || cut.found.len() > PARTS_MAX {
        return Ok(None);
    }
    let whole = Statement::Query(Box::new(query.clone()));
    if !is_faithful(&whole) || names_part(query) {
        return Ok(None);
    }
    refuse_collations(query, walk)?;
    let mut made = Vec::new();
    for part in cut.found {
        let text = part.to_string();
        match super::query::query(&part, context)? {
            Plan::Routed(routed) => made.push((text, Plan::Routed(routed))),
            _ => return Ok(None),
        }
    }
    let has_with = rest.with.is_some();
    let text = rest.to_string();
    let rest = match has_with {
        true => text.strip_prefix("WITH ").map(str::to_owned),
        false => Some(text),
    };
    Ok(rest.map(|rest| Gather { parts: made, rest, has_with }))
}

/// Whether a query anywhere in it locks its rows.
fn has_locks(query: &Query) -> bool {
    struct Locks;
    impl Visitor for Locks {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            if query.locks.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }
    query.visit(&mut Locks).is_break()
}

/// Whether it has a relation with a name as ours.
fn names_part(query: &Query) -> bool {
    query.to_string().to_lowercase().contains(NAME)
}

/// Cuts parts out of a query.
struct Cut<'a, 'c> {
    context: &'c Context<'a>,
    found: Vec<Query>,
    /// The common table expressions that are visible.
    ctes: Vec<String>,
}

/// What the names of relations in a part of a statement mean.
#[derive(Clone, Copy, Default)]
struct Touches {
    /// Rows that are not on every shard.
    has_rows: bool,
    /// A common table expression from outside.
    has_cte: bool,
}

impl Cut<'_, '_> {
    fn touches<T: Visit>(&self, part: &T) -> Touches {
        let mut touches = Touches::default();
        let _ = visit_relations(part, |name| {
            let table = match parts(name).unwrap_or_default().as_slice() {
                [one] if self.ctes.contains(one) => {
                    touches.has_cte = true;
                    None
                }
                [one] => table_in_path(one, self.context),
                [schema, one] => Some(TableName::new(schema, one)),
                _ => None,
            };
            let tables = &self.context.snapshot.tables;
            let kind = table.and_then(|table| tables.get(&table)).map(|table| &table.kind);
            touches.has_rows |= !matches!(kind, None | Some(TableKind::Reference));
            ControlFlow::<()>::Continue(())
        });
        touches
    }

    /// Puts a part in the place of a query. False if it is none by itself.
    fn take(&mut self, query: &mut Query) -> bool {
        let touches = self.touches(query);
        if !touches.has_rows {
            return true;
        }
        let name = Gather::name(self.found.len());
        let Ok(Statement::Query(reading)) = super::parse(&format!("SELECT * FROM {name}")) else {
            return false;
        };
        self.found.push(std::mem::replace(query, *reading));
        !touches.has_cte
    }

    /// The whole statement. False if it cannot be done in this way.
    fn query(&mut self, query: &mut Query) -> bool {
        if let Some(with) = &mut query.with {
            if with.recursive {
                return false;
            }
            for cte in &mut with.cte_tables {
                if !self.take(&mut cte.query) {
                    return false;
                }
                self.ctes.push(folded(&cte.alias.name));
            }
        }
        let has_rows = |cut: &Self| {
            cut.touches(&query.order_by).has_rows || cut.touches(&query.limit_clause).has_rows
        };
        !has_rows(self) && self.body(&mut query.body)
    }

    fn body(&mut self, body: &mut SetExpr) -> bool {
        match body {
            SetExpr::Query(inner) if inner.with.is_none() => self.query(inner),
            SetExpr::SetOperation { left, right, .. } => self.arm(left) && self.arm(right),
            SetExpr::Select(select) => self.select(select),
            other => !self.touches(other).has_rows,
        }
    }

    /// One side of a set operation, which is a part as a whole.
    fn arm(&mut self, body: &mut Box<SetExpr>) -> bool {
        match body.as_mut() {
            SetExpr::SetOperation { left, right, .. } => self.arm(left) && self.arm(right),
            SetExpr::Select(select) => {
                // Beside the other arms such a value takes their type, and alone it is a text.
                if !self.touches(select.as_ref()).has_rows {
                    return true;
                }
                if select.projection.iter().any(has_no_type) {
                    return false;
                }
                let Ok(Statement::Query(mut query)) = super::parse("SELECT 1") else {
                    return false;
                };
                std::mem::swap(&mut query.body, body);
                let is_taken = self.take(&mut query);
                std::mem::swap(&mut query.body, body);
                is_taken
            }
            SetExpr::Query(query) => {
                let has_rows = self.touches(query.as_ref()).has_rows;
                let is_typed = match query.body.as_ref() {
                    SetExpr::Select(select) => !select.projection.iter().any(has_no_type),
                    _ => false,
                };
                !has_rows || (is_typed && self.take(query))
            }
            other => !self.touches(other).has_rows,
        }
    }

    /// A SELECT whose rows of tables are all in queries in FROM.
    fn select(&mut self, select: &mut Select) -> bool {
        let mut from = std::mem::take(&mut select.from);
        let has_rows = self.touches(select).has_rows;
        let is_cut = !has_rows && from.iter_mut().all(|item| self.tables(item));
        select.from = from;
        is_cut
    }

    fn tables(&mut self, item: &mut TableWithJoins) -> bool {
        let is_cut = self.factor(&mut item.relation);
        is_cut
            && item.joins.iter_mut().all(|join| {
                !self.touches(&join.join_operator).has_rows && self.factor(&mut join.relation)
            })
    }

    fn factor(&mut self, factor: &mut TableFactor) -> bool {
        match factor {
            TableFactor::Derived { lateral: false, subquery, .. } => self.take(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.tables(table_with_joins),
            other => !self.touches(other).has_rows,
        }
    }
}

/// Whether an item of a select list is a value without a type of its own.
fn has_no_type(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return false;
    };
    let mut expr = expr;
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Number(..) | Value::Boolean(_)),
        _ => false,
    }
}
