//! One SELECT over several shards: the statement for each shard, and the last step that makes one answer of theirs.
//!
//! Rows are put one behind the other where that is right. Everything else (order, DISTINCT, groups) is done by PostgreSQL
//! itself in a last step over the rows of all shards, so that collations, NULLs and types are its own.

use std::ops::ControlFlow;

use lazuli_sharded_sql::{Snapshot, TableName};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, LimitClause, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, OrderBySort, Query, Select, SelectItem, SetExpr, Statement, TableFactor, Value,
    VisitMut, VisitorMut,
};

use super::query::{has_aggregate, has_window, over_several};
use super::scope::Source;
use super::walk::{Walk, folded, parts};
use super::{aggregate, functions, windows};
use crate::error::SqlError;

/// What is sent to every shard, and what is done with the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FanOut {
    pub(crate) query: Box<Query>,
    pub(crate) last: Last,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// The rows of one shard behind those of the other.
    Concatenate,
    /// Ordered, limited, each once. The last columns of the rows are there to order by alone.
    Arrange { keys: Vec<(OrderKey, String)>, hidden: usize, is_distinct: bool, tail: String },
    /// A statement over the rows, whose columns are called `c1`, `c2` and so on.
    Compute { select: String, tail: String, checks: Vec<aggregate::Check> },
}

/// What rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderKey {
    /// A column of the result, from 1 on.
    Output(usize),
    /// One of the columns behind them, from 1 on.
    Hidden(usize),
}

pub(crate) fn fan_out(
    query: &Query,
    level: usize,
    root: usize,
    walk: &Walk<'_, '_>,
) -> Result<FanOut, SqlError> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Err(over_several("a query in parentheses"));
    };
    refuse_clauses(query, select)?;
    let order = order_by(query)?;
    let groups = group_by(select)?;
    let keyed = has_key(&groups, level, root, walk);
    let is_distinct = select.distinct.is_some();
    let is_grouped =
        !groups.is_empty() || has_aggregate(&select.projection) || select.having.is_some();
    let is_final = is_grouped && !keyed;
    let has_windows =
        has_window(&select.projection) || order.iter().any(|item| has_window(&item.expr));
    if has_windows && (is_final || !windows::are_by_key(select, &order, level, root, walk)) {
        return Err(over_several("a window function that is not partitioned by the sharding key"));
    }
    let needs_last = is_final || is_distinct || !order.is_empty() || query.limit_clause.is_some();
    if needs_last {
        refuse_collations(query, walk)?;
    }
    if is_final {
        return aggregate::aggregate(query, select, &groups, &order);
    }
    if !needs_last {
        return Ok(FanOut { query: Box::new(query.clone()), last: Last::Concatenate });
    }
    arrange(query, select, &order, is_distinct)
}

fn refuse_clauses(query: &Query, select: &Select) -> Result<(), SqlError> {
    if query.with.is_some() {
        return Err(over_several("WITH"));
    }
    if query.fetch.is_some() {
        return Err(over_several("FETCH FIRST").hint("Write LIMIT."));
    }
    if matches!(select.distinct, Some(Distinct::On(_))) {
        return Err(over_several("DISTINCT ON"));
    }
    if select.named_window.iter().len() > 0 {
        return Err(over_several("WINDOW"));
    }
    let is_odd = select.top.is_some()
        || select.qualify.is_some()
        || select.prewhere.is_some()
        || !select.lateral_views.is_empty()
        || !select.connect_by.is_empty()
        || !query.pipe_operators.is_empty()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || query.for_clause.is_some();
    if is_odd { Err(over_several("a clause that is not PostgreSQL's")) } else { Ok(()) }
}

pub(crate) fn order_by(query: &Query) -> Result<Vec<OrderByExpr>, SqlError> {
    let Some(order) = &query.order_by else { return Ok(Vec::new()) };
    match &order.kind {
        OrderByKind::Expressions(list) => Ok(list.clone()),
        OrderByKind::All(_) => Err(over_several("ORDER BY ALL")),
    }
}

fn group_by(select: &Select) -> Result<Vec<Expr>, SqlError> {
    let GroupByExpr::Expressions(list, modifiers) = &select.group_by else {
        return Err(over_several("GROUP BY ALL"));
    };
    let is_set = |expr: &Expr| {
        matches!(expr, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) | Expr::Tuple(_))
    };
    if !modifiers.is_empty() || list.iter().any(is_set) {
        return Err(over_several("GROUPING SETS, CUBE or ROLLUP"));
    }
    // A number or an alias means an item of the select list.
    list.iter().map(|expr| group_expr(expr, select)).collect()
}

fn group_expr(expr: &Expr, select: &Select) -> Result<Expr, SqlError> {
    if let Some(number) = ordinal(expr) {
        let item = number.checked_sub(1).and_then(|index| select.projection.get(index));
        return match item {
            Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
                Ok(expr.clone())
            }
            _ => Err(over_several("GROUP BY a number that is not of an expression")),
        };
    }
    // A name in GROUP BY is a column of the tables first; an alias that hides nothing is the exception.
    if let Expr::Identifier(ident) = expr {
        let named = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if folded(alias) == folded(ident) => {
                Some(expr)
            }
            _ => None,
        });
        if named.is_some_and(|named| named != expr) {
            return Err(over_several("GROUP BY an alias").hint("Repeat the expression."));
        }
    }
    Ok(expr.clone())
}

/// The number that an item of GROUP BY or ORDER BY is.
fn ordinal(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the columns of the sharding key are among these expressions, so that rows that are equal in all are on one shard.
pub(super) fn has_key(groups: &[Expr], level: usize, root: usize, walk: &Walk<'_, '_>) -> bool {
    let Some((_, key)) = walk.scope.key(root, walk.context) else { return false };
    let nodes: Vec<_> = groups.iter().filter_map(|expr| walk.column(expr, level)).collect();
    key.iter().all(|(name, _)| {
        let wanted = (root, name.clone());
        nodes.iter().any(|node| *node == wanted || walk.scope.is_equal(node, &wanted))
    })
}

/// The last step sorts and compares by the database's collation, so nothing may have another one.
pub(super) fn refuse_collations(query: &Query, walk: &Walk<'_, '_>) -> Result<(), SqlError> {
    use sqlparser::ast::visit_expressions;
    use std::ops::ControlFlow;
    let collates = visit_expressions(query, |expr| match expr {
        Expr::Collate { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    let is_collated = walk.scope.instances.iter().any(|instance| match &instance.source {
        Source::Table(name) => walk
            .context
            .facts
            .tables
            .get(name)
            .is_some_and(|facts| facts.columns.iter().any(|column| column.is_collated)),
        Source::Columns(_) | Source::Other => false,
    });
    if collates.is_break() || is_collated {
        return Err(over_several("sorting or grouping with a collation of its own"));
    }
    Ok(())
}

/// ORDER BY, DISTINCT and LIMIT: on every shard, and once more over the rows of all.
fn arrange(
    query: &Query,
    select: &Select,
    order: &[OrderByExpr],
    is_distinct: bool,
) -> Result<FanOut, SqlError> {
    let mut shard_select = select.clone();
    let (mut keys, mut hidden) = (Vec::new(), 0);
    for item in order {
        let direction = direction(&item.options)?;
        let key = match output(&item.expr, select) {
            Some(column) => OrderKey::Output(column),
            None if is_distinct => return Err(over_several("DISTINCT with another order")),
            None => {
                hidden += 1;
                let alias = Ident::new(format!("lazuli_sort_{hidden}"));
                let expr = item.expr.clone();
                shard_select.projection.push(SelectItem::ExprWithAlias { expr, alias });
                OrderKey::Hidden(hidden)
            }
        };
        keys.push((key, direction));
    }
    let (pushed, tail) = limits(query)?;
    let mut shard_query = query.clone();
    shard_query.body = Box::new(SetExpr::Select(Box::new(shard_select)));
    shard_query.limit_clause = pushed;
    // Without a limit the order of each shard's rows does not matter.
    if shard_query.limit_clause.is_none() {
        shard_query.order_by = None;
    }
    let last = Last::Arrange { keys, hidden, is_distinct, tail };
    Ok(FanOut { query: Box::new(shard_query), last })
}

/// ASC, DESC and NULLS as text.
pub(crate) fn direction(options: &OrderByOptions) -> Result<String, SqlError> {
    let sort = match &options.sort {
        None => "",
        Some(OrderBySort::Asc) => " ASC",
        Some(OrderBySort::Desc) => " DESC",
        Some(_) => return Err(over_several("ORDER BY USING")),
    };
    let nulls = match options.nulls_first {
        None => "",
        Some(true) => " NULLS FIRST",
        Some(false) => " NULLS LAST",
    };
    Ok(format!("{sort}{nulls}"))
}

/// The column of the result that an item of ORDER BY means, from 1 on: by its number or by its name.
pub(crate) fn output(expr: &Expr, select: &Select) -> Option<usize> {
    if let Some(number) = ordinal(expr) {
        return Some(number);
    }
    let has_wildcard = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    // Behind a wildcard the positions of the others are not known; ordering by the expression is the same.
    if has_wildcard {
        return None;
    }
    let name = match expr {
        Expr::Identifier(ident) => Some(folded(ident)),
        _ => None,
    };
    let position = select.projection.iter().position(|item| match item {
        SelectItem::ExprWithAlias { alias, expr: named } => {
            name.as_ref() == Some(&folded(alias)) || (name.is_none() && named == expr)
        }
        SelectItem::UnnamedExpr(own) => own == expr || (name.is_some() && own_name(own) == name),
        _ => false,
    });
    position.map(|index| index + 1)
}

/// The name that a column of the result has by itself.
fn own_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(folded(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(folded),
        Expr::Function(function) => parts(&function.name).and_then(|mut it| it.pop()),
        _ => None,
    }
}

/// The limit of each shard, which is that of the whole and its offset, and the text of both for the last step.
pub(crate) fn limits(query: &Query) -> Result<(Option<LimitClause>, String), SqlError> {
    let Some(clause) = &query.limit_clause else { return Ok((None, String::new())) };
    let LimitClause::LimitOffset { limit, offset, limit_by } = clause else {
        return Err(over_several("LIMIT with a comma"));
    };
    if !limit_by.is_empty() {
        return Err(over_several("LIMIT BY"));
    }
    for expr in limit.iter().chain(offset.as_ref().map(|offset| &offset.value)) {
        if has_aggregate(expr)
            || !super::walk::function_names(expr).iter().all(|it| functions::is_constant(it))
        {
            return Err(over_several("LIMIT or OFFSET with such an expression"));
        }
    }
    let offset = offset.as_ref().map(|offset| &offset.value);
    let mut tail = String::new();
    if let Some(limit) = limit {
        tail.push_str(&format!(" LIMIT {limit}"));
    }
    if let Some(offset) = offset {
        tail.push_str(&format!(" OFFSET {offset}"));
    }
    let pushed = match (limit, offset) {
        (None, _) => None,
        (Some(limit), None) => Some(limit.clone()),
        (Some(limit), Some(offset)) => {
            let sum = format!("({limit})::bigint + coalesce(({offset})::bigint, 0)");
            Some(expression(&sum)?)
        }
    };
    let pushed = pushed.map(|limit| LimitClause::LimitOffset {
        limit: Some(limit),
        offset: None,
        limit_by: Vec::new(),
    });
    Ok((pushed, tail))
}

/// Parses an expression that we have written ourselves.
pub(crate) fn expression(text: &str) -> Result<Expr, SqlError> {
    let dialect = sqlparser::dialect::PostgreSqlDialect {};
    sqlparser::parser::Parser::new(&dialect)
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|_| over_several("an expression that the router cannot write out again"))
}

/// The same query without its order, for the rows of a last step.
pub(crate) fn without_order(query: &Query, select: Select) -> Query {
    let mut query = query.clone();
    query.body = Box::new(SetExpr::Select(Box::new(select)));
    query.order_by = None::<OrderBy>;
    query.limit_clause = None;
    query
}

impl FanOut {
    /// The statement for one shard. While rows move, each sharded table is replaced by those of its rows that the shard owns.
    pub(crate) fn text(&self, snapshot: &Snapshot, shard: usize, search_path: &[String]) -> String {
        if !snapshot.maps.iter().any(|map| map.is_in_transit) {
            return self.query.to_string();
        }
        let mut query = self.query.clone();
        let _ = VisitMut::visit(query.as_mut(), &mut Owned { snapshot, shard, search_path });
        query.to_string()
    }
}

/// Puts the condition of ownership around sharded tables.
struct Owned<'a> {
    snapshot: &'a Snapshot,
    shard: usize,
    search_path: &'a [String],
}

impl VisitorMut for Owned<'_> {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = &*factor else {
            return ControlFlow::Continue(());
        };
        let table = match parts(name).unwrap_or_default().as_slice() {
            [one] => {
                let names = self.search_path.iter().map(|schema| TableName::new(schema, one));
                names.into_iter().find(|it| self.snapshot.tables.contains_key(it))
            }
            [schema, one] => Some(TableName::new(schema, one)),
            _ => None,
        };
        let known = table.as_ref().and_then(|table| self.snapshot.tables.get(table));
        let condition =
            known.and_then(|known| self.snapshot.owned_sql(known, self.shard, "lazuli_owned"));
        if let (Some(condition), Some(table)) = (condition, table) {
            let shown =
                alias.as_ref().map_or_else(|| table.name.clone(), |alias| folded(&alias.name));
            let text = format!(
                "SELECT 1 FROM (SELECT * FROM {name} AS lazuli_owned WHERE {condition}) AS {}",
                lazuli_sharded_sql::quote_ident(&shown)
            );
            let parsed = super::parse(&text);
            if let Ok(Statement::Query(query)) = parsed
                && let SetExpr::Select(select) = *query.body
                && let Some(from) = select.from.into_iter().next()
            {
                *factor = from.relation;
            }
        }
        ControlFlow::Continue(())
    }
}
