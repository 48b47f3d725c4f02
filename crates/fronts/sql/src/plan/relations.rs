//! Relations in FROM: tables, joins, functions and queries.

use std::collections::BTreeMap;

use sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, JoinOperator, ObjectName, Query, SelectItem, SetExpr,
    TableAlias, TableFactor, TableWithJoins,
};

use lazuli_sharded_sql::TableName;

use super::query::{has_aggregate, has_window};
use super::scope::{Instance, Node, Source};
use super::walk::{Binds, Walk, folded, function_names, parts};
use super::{Context, functions};
use crate::error::{SqlError, code};

impl Walk<'_, '_> {
    /// A FROM item with its joins.
    pub(crate) fn tables(
        &mut self,
        from: &TableWithJoins,
        level: usize,
    ) -> Result<Vec<usize>, SqlError> {
        let mut left = self.factor(&from.relation, level)?;
        for join in &from.joins {
            let right = self.factor(&join.relation, level)?;
            let (constraint, nullable) = match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) => (on, Vec::new()),
                JoinOperator::CrossJoin(on) => (on, Vec::new()),
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (on, right.clone()),
                JoinOperator::Right(on) | JoinOperator::RightOuter(on) => (on, left.clone()),
                JoinOperator::FullOuter(on) => (on, [left.clone(), right.clone()].concat()),
                _ => return Err(SqlError::refused("this kind of join is not supported")),
            };
            let is_full = matches!(join.join_operator, JoinOperator::FullOuter(_));
            self.side_obstacles(&join.join_operator, &left, &right);
            for index in &nullable {
                self.scope.instances[*index].is_nullable = true;
            }
            let only: &[usize] = if is_full { &[] } else { &nullable };
            let binds = if nullable.is_empty() { Binds::All } else { Binds::Only(only) };
            match constraint {
                JoinConstraint::On(expr) => self.condition(expr, level, binds)?,
                JoinConstraint::Using(columns) => self.using(columns, &left, &right, binds),
                JoinConstraint::Natural => self.obstacles.push("NATURAL JOIN"),
                JoinConstraint::None => {}
            }
            left.extend(right);
        }
        Ok(left)
    }

    /// A row that a join keeps without a partner must exist on one shard only.
    fn side_obstacles(&mut self, join: &JoinOperator, left: &[usize], right: &[usize]) {
        let has = |walk: &Self, side: &[usize]| {
            side.iter().any(|index| walk.scope.key(*index, walk.context).is_some())
        };
        let (left, right) = (has(self, left), has(self, right));
        let is_wrong = match join {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => right && !left,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => left && !right,
            JoinOperator::FullOuter(_) => left || right,
            _ => false,
        };
        if is_wrong {
            self.obstacles.push("an outer join that keeps rows of a table that is not sharded");
        }
    }

    fn using(&mut self, columns: &[ObjectName], left: &[usize], right: &[usize], binds: Binds<'_>) {
        for column in columns.iter().filter_map(parts).filter_map(|mut it| it.pop()) {
            // Without knowing all columns of the left side, only a single table there is certain.
            let ([left], [right]) = (left, right) else { continue };
            let (left, right) = ((*left, column.clone()), (*right, column));
            self.equal(&left, &right, binds);
        }
    }

    fn factor(&mut self, factor: &TableFactor, level: usize) -> Result<Vec<usize>, SqlError> {
        match factor {
            TableFactor::Table { name, alias, args, sample, .. } => {
                self.met += 1;
                if sample.is_some() {
                    self.obstacles.push("TABLESAMPLE");
                }
                let source = match args {
                    Some(args) => {
                        self.expressions(args, level)?;
                        self.function(name);
                        Source::Other
                    }
                    None => self.source(name)?,
                };
                let own = parts(name).and_then(|mut it| it.pop()).unwrap_or_default();
                Ok(vec![self.instance(alias.as_ref(), own, level, source)])
            }
            TableFactor::Derived { subquery, alias, sample, .. } => {
                if sample.is_some() {
                    self.obstacles.push("TABLESAMPLE");
                }
                let inner = self.derived(subquery, Some(level))?;
                let is_renamed = alias.as_ref().is_none_or(|alias| !alias.columns.is_empty());
                let columns = if is_renamed { None } else { self.chosen(subquery, inner) };
                let source = columns.map_or(Source::Other, Source::Columns);
                Ok(vec![self.instance(alias.as_ref(), String::new(), level, source)])
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                if alias.is_some() {
                    self.obstacles.push("a join with an alias");
                }
                self.tables(table_with_joins, level)
            }
            TableFactor::Function { name, args, alias, .. } => {
                self.met += 1;
                for arg in args {
                    self.expressions(arg, level)?;
                }
                self.function(name);
                Ok(vec![self.instance(alias.as_ref(), String::new(), level, Source::Other)])
            }
            TableFactor::UNNEST { array_exprs, alias, .. } => {
                for expr in array_exprs {
                    self.expressions(expr, level)?;
                }
                Ok(vec![self.instance(alias.as_ref(), String::new(), level, Source::Other)])
            }
            _ => Err(SqlError::refused("this kind of item in FROM is not supported by the router")),
        }
    }

    /// The columns of a query in FROM if it does nothing but choose rows and columns: then a condition on one of them is one
    /// on the table's own column.
    fn chosen(&self, query: &Query, level: usize) -> Option<BTreeMap<String, Option<Node>>> {
        let SetExpr::Select(select) = query.body.as_ref() else { return None };
        let has_no_groups = matches!(&select.group_by, GroupByExpr::Expressions(list, more) if list.is_empty() && more.is_empty());
        let is_plain = has_no_groups
            && query.with.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty()
            && select.distinct.is_none()
            && select.having.is_none()
            && select.qualify.is_none()
            && !has_aggregate(&select.projection)
            && !has_window(&select.projection)
            // Only functions that are known to be none of either kind.
            && function_names(&select.projection).iter().all(|it| functions::is_same_everywhere(it));
        if !is_plain {
            return None;
        }
        let mut columns = BTreeMap::new();
        for item in &select.projection {
            let (name, expr) = match item {
                SelectItem::ExprWithAlias { expr, alias } => (folded(alias), expr),
                SelectItem::UnnamedExpr(expr @ Expr::Identifier(ident)) => (folded(ident), expr),
                SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(idents)) => {
                    (folded(idents.last()?), expr)
                }
                _ => return None,
            };
            // Two columns of one name are none that could be named.
            if columns.insert(name, self.column(expr, level)).is_some() {
                return None;
            }
        }
        Some(columns)
    }

    fn function(&mut self, name: &ObjectName) {
        let known = parts(name).and_then(|mut it| it.pop());
        if !known.is_some_and(|it| super::functions::is_same_everywhere(&it)) {
            self.obstacles.push("a function in FROM that the router does not know");
        }
    }

    fn instance(
        &mut self,
        alias: Option<&TableAlias>,
        own: String,
        level: usize,
        source: Source,
    ) -> usize {
        let alias_name = alias.map_or(own, |alias| folded(&alias.name));
        // With a list of columns the table's own names mean something else.
        let renamed = alias.is_some_and(|alias| !alias.columns.is_empty());
        if renamed && matches!(source, Source::Table(_)) {
            self.obstacles.push("a table with renamed columns");
        }
        let is_derived = self.in_derived;
        let instance =
            Instance { alias: alias_name, level, source, is_nullable: false, is_derived };
        self.scope.instances.push(instance);
        self.scope.instances.len() - 1
    }

    /// What a name in FROM means.
    pub(super) fn source(&mut self, name: &ObjectName) -> Result<Source, SqlError> {
        let unknown = || {
            SqlError::new(
                code::UNDEFINED_TABLE,
                format!("relation \"{name}\" is not part of the sharded database"),
            )
            .hint("Tables are made known with `lazuli sql table add`; views are read when the sharded database changes.")
        };
        match parts(name).ok_or_else(unknown)?.as_slice() {
            [one] if self.ctes.contains(one) => Ok(Source::Other),
            [one] => match table_in_path(one, self.context) {
                Some(table) => Ok(Source::Table(table)),
                None if one.starts_with("pg_") => {
                    self.reads_catalog = true;
                    Ok(Source::Other)
                }
                None => Err(unknown()),
            },
            [schema, _] if matches!(schema.as_str(), "pg_catalog" | "information_schema") => {
                self.reads_catalog = true;
                Ok(Source::Other)
            }
            [schema, table] => {
                let table = TableName::new(schema, table);
                let known = self.context.snapshot.tables.contains_key(&table);
                if known { Ok(Source::Table(table)) } else { Err(unknown()) }
            }
            _ => Err(unknown()),
        }
    }
}

/// The table that a name without a schema means.
pub(crate) fn table_in_path(name: &str, context: &Context<'_>) -> Option<TableName> {
    let mut candidates = context.search_path.iter().map(|schema| TableName::new(schema, name));
    candidates.find(|table| context.snapshot.tables.contains_key(table))
}
