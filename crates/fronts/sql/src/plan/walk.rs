//! Reads a parsed statement into a [`Scope`]: its relations, level by level, and the equalities that bind them.
//!
//! Whatever is not understood adds no equality, so it can bind nothing. [`Walk::check`] makes sure that no relation was
//! overlooked: the parser's own visitor must have found as many as were walked.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement, Visit,
    visit_expressions, visit_relations,
};

use super::constants::{array, constant};
use super::scope::{Instance, Node, Scope, Source};
use super::{Context, KeySource};
use crate::error::SqlError;
use lazuli_sharded_sql::TableName;

pub(crate) struct Walk<'a, 'c> {
    pub(crate) context: &'c Context<'a>,
    pub(crate) scope: Scope,
    /// Relations that were met, of any kind.
    pub(super) met: usize,
    /// Names of common table expressions that are visible.
    pub(super) ctes: Vec<String>,
    /// Whether a query in FROM or WITH is being walked.
    pub(super) in_derived: bool,
    /// Whether some query has a WITH that writes.
    pub(crate) has_writing_with: bool,
    /// Things that a statement over several shards cannot have, as they were met.
    pub(crate) obstacles: Vec<&'static str>,
    /// Whether a system catalog is read.
    pub(crate) reads_catalog: bool,
}

/// A name as PostgreSQL folds it.
pub(crate) fn folded(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The parts of a name; none if one is computed.
pub(crate) fn parts(name: &ObjectName) -> Option<Vec<String>> {
    name.0.iter().map(|part| part.as_ident().map(folded)).collect()
}

/// What both sides of an AND say.
pub(crate) fn conjuncts<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Nested(inner) => conjuncts(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, found);
            conjuncts(right, found);
        }
        other => found.push(other),
    }
}

/// Which tables an equality may bind.
#[derive(Clone, Copy)]
pub(super) enum Binds<'i> {
    All,
    /// Only these: the side of an outer join that may be missing.
    Only(&'i [usize]),
}

impl<'a, 'c> Walk<'a, 'c> {
    pub(crate) fn new(context: &'c Context<'a>) -> Self {
        Self {
            context,
            scope: Scope::default(),
            met: 0,
            ctes: Vec::new(),
            in_derived: false,
            has_writing_with: false,
            obstacles: Vec::new(),
            reads_catalog: false,
        }
    }

    /// Fails if the statement names a relation that was not walked.
    pub(crate) fn check<T: Visit>(&self, whole: &T) -> Result<(), SqlError> {
        let mut count = 0;
        let _ = visit_relations(whole, |_| {
            count += 1;
            ControlFlow::<()>::Continue(())
        });
        if count == self.met {
            return Ok(());
        }
        Err(SqlError::refused("the router does not know where a table in this statement is used")
            .hint("Write it with tables in FROM and subqueries in WHERE or the select list only."))
    }

    pub(crate) fn query(
        &mut self,
        query: &Query,
        parent: Option<usize>,
    ) -> Result<usize, SqlError> {
        let visible = self.ctes.len();
        if let Some(with) = &query.with {
            if with.recursive {
                self.obstacles.push("WITH RECURSIVE");
            }
            for cte in &with.cte_tables {
                if with.recursive {
                    self.ctes.push(folded(&cte.alias.name));
                }
                self.derived(&cte.query, parent)?;
                self.ctes.push(folded(&cte.alias.name));
            }
        }
        if !query.locks.is_empty() {
            self.obstacles.push("FOR UPDATE or FOR SHARE");
        }
        let level = self.body(&query.body, parent)?;
        if let Some(order) = &query.order_by {
            self.expressions(order, level)?;
        }
        if let Some(limit) = &query.limit_clause {
            self.expressions(limit, level)?;
        }
        self.ctes.truncate(visible);
        Ok(level)
    }

    /// The answer is the level of the query.
    pub(super) fn derived(
        &mut self,
        query: &Query,
        parent: Option<usize>,
    ) -> Result<usize, SqlError> {
        let outside = std::mem::replace(&mut self.in_derived, true);
        let level = self.query(query, parent)?;
        self.in_derived = outside;
        Ok(level)
    }

    fn body(&mut self, body: &SetExpr, parent: Option<usize>) -> Result<usize, SqlError> {
        match body {
            SetExpr::Select(select) => self.select(select, parent),
            SetExpr::Query(query) => self.query(query, parent),
            SetExpr::SetOperation { left, right, .. } => {
                self.obstacles.push("UNION, INTERSECT or EXCEPT");
                self.body(left, parent)?;
                self.body(right, parent)
            }
            SetExpr::Values(values) => {
                let level = self.scope.level(parent);
                for row in &values.rows {
                    for expr in row.iter() {
                        self.expressions(expr, level)?;
                    }
                }
                Ok(level)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                self.has_writing_with = true;
                Err(SqlError::refused("a WITH query that writes is not supported by the router")
                    .hint("Write it as a statement of its own, in the same transaction."))
            }
            SetExpr::Table(_) => Err(SqlError::refused("TABLE is not supported by the router")
                .hint("Write SELECT * FROM the table.")),
        }
    }

    fn select(&mut self, select: &Select, parent: Option<usize>) -> Result<usize, SqlError> {
        let level = self.scope.level(parent);
        if select.into.is_some() {
            return Err(SqlError::refused("SELECT INTO is not supported by the router"));
        }
        for from in &select.from {
            self.tables(from, level)?;
        }
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                self.expressions(expr, level)?;
            }
        }
        if let Some(selection) = &select.selection {
            self.condition(selection, level, Binds::All)?;
        }
        self.expressions(&select.group_by, level)?;
        for expr in select.having.iter().chain(&select.qualify) {
            self.expressions(expr, level)?;
        }
        for expr in select.distinct.iter() {
            self.expressions(expr, level)?;
        }
        Ok(level)
    }

    /// A table that a statement writes to.
    pub(crate) fn target(
        &mut self,
        name: &ObjectName,
        alias: Option<String>,
        level: usize,
    ) -> Result<(usize, TableName), SqlError> {
        self.met += 1;
        let Source::Table(table) = self.source(name)? else {
            return Err(SqlError::refused(format!(
                "{name} cannot be written to through the router"
            )));
        };
        let alias = alias.unwrap_or_else(|| table.name.clone());
        let source = Source::Table(table.clone());
        let instance = Instance { alias, level, source, is_nullable: false, is_derived: false };
        self.scope.instances.push(instance);
        Ok((self.scope.instances.len() - 1, table))
    }

    /// A condition that every row fulfils.
    pub(crate) fn where_clause(&mut self, expr: &Expr, level: usize) -> Result<(), SqlError> {
        self.condition(expr, level, Binds::All)
    }

    pub(super) fn condition(
        &mut self,
        expr: &Expr,
        level: usize,
        binds: Binds<'_>,
    ) -> Result<(), SqlError> {
        let mut all = Vec::new();
        conjuncts(expr, &mut all);
        for conjunct in all {
            self.conjunct(conjunct, level, binds);
        }
        self.expressions(expr, level)
    }

    fn conjunct(&mut self, expr: &Expr, level: usize, binds: Binds<'_>) {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                match (self.column(left, level), self.column(right, level)) {
                    (Some(left), Some(right)) => self.equal(&left, &right, binds),
                    (Some(node), None) => {
                        self.constants(&node, constant(right).map(|it| vec![it]), binds)
                    }
                    (None, Some(node)) => {
                        self.constants(&node, constant(left).map(|it| vec![it]), binds)
                    }
                    (None, None) => {}
                }
            }
            Expr::InList { expr, list, negated: false } => {
                if let Some(node) = self.column(expr, level) {
                    self.constants(&node, list.iter().map(constant).collect(), binds);
                }
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
                if let (Some(node), Some(values)) = (self.column(left, level), array(right)) {
                    self.constants(&node, Some(values), binds);
                }
            }
            _ => {}
        }
    }

    fn constants(&mut self, node: &Node, values: Option<Vec<KeySource>>, binds: Binds<'_>) {
        let is_plain = self.scope.plain_type(node, self.context).is_some();
        if let Some(values) = values.filter(|_| is_plain && self.may_bind(node, binds)) {
            self.scope.constant(node, values);
        }
    }

    fn may_bind(&self, node: &Node, binds: Binds<'_>) -> bool {
        match binds {
            Binds::All => true,
            Binds::Only(instances) => instances.contains(&node.0),
        }
    }

    pub(super) fn equal(&mut self, left: &Node, right: &Node, binds: Binds<'_>) {
        // An outer query's row is not bound by what its subquery says.
        let levels = [left, right].map(|node| self.scope.instances[node.0].level);
        // Columns of different types are equal by a cast, which may change a value: blanks, cases, digits.
        let types = [left, right].map(|node| self.scope.plain_type(node, self.context));
        let [Some(one), Some(other)] = types else { return };
        if !one.is_comparable_with(other) {
            return;
        }
        if levels[0] >= levels[1] && self.may_bind(left, binds) {
            self.scope.imply(left, right);
        }
        if levels[1] >= levels[0] && self.may_bind(right, binds) {
            self.scope.imply(right, left);
        }
    }

    /// The column that an expression is, if it is nothing but a column.
    pub(crate) fn column(&self, expr: &Expr, level: usize) -> Option<Node> {
        match expr {
            Expr::Nested(inner) => self.column(inner, level),
            Expr::Identifier(ident) => {
                self.scope.resolve(level, None, &folded(ident), self.context)
            }
            Expr::CompoundIdentifier(idents) => match idents.as_slice() {
                [qualifier, column] => {
                    let (qualifier, column) = (folded(qualifier), folded(column));
                    self.scope.resolve(level, Some(&qualifier), &column, self.context)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Walks the subqueries in an expression, and notes what they hinder.
    pub(crate) fn expressions<T: Visit>(&mut self, part: &T, level: usize) -> Result<(), SqlError> {
        let mut subqueries = Subqueries { depth: 0, found: Vec::new() };
        let _ = part.visit(&mut subqueries);
        for subquery in subqueries.found {
            self.query(&subquery, Some(level))?;
        }
        Ok(())
    }
}

/// Finds the outermost queries in a part of a statement.
struct Subqueries {
    depth: usize,
    found: Vec<Query>,
}

impl sqlparser::ast::Visitor for Subqueries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if self.depth == 0 {
            self.found.push(query.clone());
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Every function that a statement calls, by its last name.
pub(crate) fn function_names<T: Visit>(whole: &T) -> Vec<String> {
    let mut names = Vec::new();
    let _ = visit_expressions(whole, |expr| {
        if let Expr::Function(function) = expr {
            names.push(parts(&function.name).and_then(|mut it| it.pop()).unwrap_or_default());
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

/// A statement whose text means the same after it was parsed and written again.
pub(crate) fn is_faithful(statement: &Statement) -> bool {
    super::parse(&statement.to_string()).is_ok_and(|again| again == *statement)
}
