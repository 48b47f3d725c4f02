//! GROUP BY and aggregates over several shards.
//!
//! If every aggregate follows from those of the shards, each shard groups its rows and the last step groups the groups.
//! Otherwise each shard sends the values that the groups and aggregates are made of, and the last step computes them.

use std::ops::ControlFlow;

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, GroupByExpr, Ident, OrderByExpr, Query, Select, SelectItem, VisitMut,
    VisitorMut,
};

use super::fanout::{FanOut, Last, direction, expression, limits, output, without_order};
use super::functions;
use super::query::over_several;
use super::walk::parts;
use crate::error::SqlError;

/// What must hold for the types of the rows' columns, which are known only when a shard has described them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// This column (from 1 on) is a sum; a sum of sums of 32-bit floats is not the sum.
    Sum(usize),
}

/// Collects the columns that a shard sends, each expression once.
struct Columns {
    exprs: Vec<Expr>,
    groups: Vec<Expr>,
    is_partial: bool,
    checks: Vec<Check>,
    error: Option<SqlError>,
    /// Inside of a call that was already replaced.
    done: usize,
}

impl Columns {
    /// The name of the column that holds this expression's value.
    fn name(&mut self, expr: &Expr) -> String {
        let index = match self.exprs.iter().position(|it| it == expr) {
            Some(index) => index,
            None => {
                self.exprs.push(expr.clone());
                self.exprs.len() - 1
            }
        };
        format!("c{}", index + 1)
    }

    fn refuse(&mut self, error: SqlError) -> ControlFlow<()> {
        self.error.get_or_insert(error);
        ControlFlow::Break(())
    }

    /// The call of an aggregate over the groups of the shards.
    fn combined(&mut self, function: &Function) -> Result<Expr, SqlError> {
        let name = aggregate_name(function);
        let whole = |columns: &mut Self| columns.name(&Expr::Function(function.clone()));
        let text = match name.as_str() {
            "count" => format!("coalesce(sum({})::bigint, 0)", whole(self)),
            "avg" => {
                let sum = self.name(&Expr::Function(renamed(function, "sum")));
                let count = self.name(&Expr::Function(renamed(function, "count")));
                self.check(&sum);
                format!("lazuli_avg({sum}, {count})")
            }
            "sum" => {
                let column = whole(self);
                self.check(&column);
                format!("lazuli_sum({column})")
            }
            other => format!("{other}({})", whole(self)),
        };
        expression(&text)
    }

    fn check(&mut self, column: &str) {
        let number = column.get(1..).and_then(|it| it.parse().ok());
        let check = number.map(Check::Sum).filter(|check| !self.checks.contains(check));
        self.checks.extend(check);
    }

    /// The same aggregate over the columns that hold its arguments.
    fn over_rows(&mut self, function: &Function) -> Result<Expr, SqlError> {
        let mut function = function.clone();
        let column = |columns: &mut Self, expr: &mut Expr| {
            if !is_literal(expr) {
                let name = columns.name(expr);
                *expr = Expr::Identifier(Ident::new(name));
            }
        };
        if let FunctionArguments::List(list) = &mut function.args {
            for arg in &mut list.args {
                match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => column(self, expr),
                    FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {}
                    _ => return Err(over_several("an aggregate with such an argument")),
                }
            }
            for clause in &mut list.clauses {
                match clause {
                    FunctionArgumentClause::OrderBy(order) => {
                        order.iter_mut().for_each(|item| column(self, &mut item.expr));
                    }
                    _ => return Err(over_several("an aggregate with such a clause")),
                }
            }
        }
        function.within_group.iter_mut().for_each(|item| column(self, &mut item.expr));
        if let Some(filter) = &mut function.filter {
            column(self, filter);
        }
        Ok(Expr::Function(function))
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if !matches!(value.value, sqlparser::ast::Value::Placeholder(_)))
}

fn aggregate_name(function: &Function) -> String {
    parts(&function.name).and_then(|mut it| it.pop()).unwrap_or_default()
}

fn renamed(function: &Function, name: &str) -> Function {
    let mut function = function.clone();
    function.name = vec![Ident::new(name)].into();
    function
}

/// Whether the aggregate over all rows follows from those over the rows of each shard.
fn follows_from_parts(function: &Function) -> bool {
    let is_plain = match &function.args {
        FunctionArguments::List(list) => {
            list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
                && list.clauses.is_empty()
        }
        _ => false,
    };
    is_plain
        && function.within_group.is_empty()
        && functions::is_from_parts(&aggregate_name(function))
}

impl VisitorMut for Columns {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.done > 0 {
            self.done += 1;
            return ControlFlow::Continue(());
        }
        if self.groups.contains(expr) {
            let name = self.name(&expr.clone());
            *expr = Expr::Identifier(Ident::new(name));
            self.done = 1;
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Function(function) if functions::is_aggregate(&aggregate_name(function)) => {
                let replaced = match self.is_partial {
                    true => self.combined(&function.clone()),
                    false => self.over_rows(&function.clone()),
                };
                match replaced {
                    Ok(replaced) => *expr = replaced,
                    Err(error) => return self.refuse(error),
                }
                self.done = 1;
                ControlFlow::Continue(())
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let name = expr.to_string();
                self.refuse(over_several(&format!(
                    "the column {name} beside aggregates and not in GROUP BY"
                )))
            }
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                self.refuse(over_several("a subquery beside aggregates"))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.done = self.done.saturating_sub(1);
        ControlFlow::Continue(())
    }
}

pub(crate) fn aggregate(
    query: &Query,
    select: &Select,
    groups: &[Expr],
    order: &[OrderByExpr],
) -> Result<FanOut, SqlError> {
    // The last step has names of ours in it.
    if query.to_string().to_lowercase().contains("lazuli_") {
        return Err(over_several("a name that begins with lazuli_"));
    }
    let mut is_partial = true;
    let mut look = |expr: &Expr| {
        if let Expr::Function(function) = expr {
            let is_aggregate = functions::is_aggregate(&aggregate_name(function));
            is_partial &= !is_aggregate || follows_from_parts(function);
        }
        ControlFlow::<()>::Continue(())
    };
    let _ = sqlparser::ast::visit_expressions(query, &mut look);
    let mut columns = Columns {
        exprs: groups.to_vec(),
        groups: groups.to_vec(),
        is_partial,
        checks: Vec::new(),
        error: None,
        done: 0,
    };
    let mut rewrite = |expr: &Expr| -> Result<String, SqlError> {
        let mut expr = expr.clone();
        columns.done = 0;
        let _ = expr.visit(&mut columns);
        columns.error.take().map_or(Ok(expr.to_string()), Err)
    };
    let mut items = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                items.push(rewrite(expr)?);
            }
            _ => return Err(over_several("* beside aggregates")),
        }
    }
    let having = select.having.as_ref().map(&mut rewrite).transpose()?;
    let mut sorted = Vec::new();
    for item in order {
        let direction = direction(&item.options)?;
        let key = match output(&item.expr, select) {
            Some(column) => column.to_string(),
            None => rewrite(&item.expr)?,
        };
        sorted.push(format!("{key}{direction}"));
    }
    let (_, limit) = limits(query)?;
    let distinct = if select.distinct.is_some() { "DISTINCT " } else { "" };
    let tail = tail(groups.len(), having.as_deref(), &sorted, &limit);
    let Columns { exprs, checks, .. } = columns;
    let last = Last::Compute { select: format!("{distinct}{}", items.join(", ")), tail, checks };
    let groups = if is_partial { groups.to_vec() } else { Vec::new() };
    Ok(FanOut { query: Box::new(shard_query(query, select, exprs, groups)), last })
}

/// What follows the rows in the last step.
fn tail(groups: usize, having: Option<&str>, sorted: &[String], limit: &str) -> String {
    let names: Vec<_> = (1..=groups).map(|number| format!("c{number}")).collect();
    let mut tail = String::new();
    if !names.is_empty() {
        tail.push_str(&format!(" GROUP BY {}", names.join(", ")));
    }
    if let Some(having) = having {
        tail.push_str(&format!(" HAVING {having}"));
    }
    if !sorted.is_empty() {
        tail.push_str(&format!(" ORDER BY {}", sorted.join(", ")));
    }
    tail.push_str(limit);
    tail
}

/// What each shard computes: its groups, or the values that they are made of.
fn shard_query(query: &Query, select: &Select, exprs: Vec<Expr>, groups: Vec<Expr>) -> Query {
    let mut shard = select.clone();
    shard.distinct = None;
    shard.having = None;
    shard.projection = exprs.into_iter().map(SelectItem::UnnamedExpr).collect();
    // count(*) alone needs no value, but a row for each row.
    if shard.projection.is_empty() {
        let one = Expr::value(sqlparser::ast::Value::Boolean(true));
        shard.projection.push(SelectItem::UnnamedExpr(one));
    }
    shard.group_by = GroupByExpr::Expressions(groups, Vec::new());
    without_order(query, shard)
}

/// Numbers of PostgreSQL's types.
const FLOAT4: u32 = 700;
const FLOAT8: u32 = 701;
const INTERVAL: u32 = 1186;
const INT8: u32 = 20;
const NUMERIC: u32 = 1700;

impl Check {
    /// Replaces our own words for sums and averages in a text by PostgreSQL's, now that the types are known.
    pub(crate) fn apply(
        self,
        types: &[(u32, i32)],
        names: &[String],
        text: &mut String,
    ) -> Result<(), SqlError> {
        let Self::Sum(number) = self;
        let index = number.wrapping_sub(1);
        let (Some((oid, _)), Some(name)) = (types.get(index), names.get(index)) else {
            return Err(over_several("such an aggregate"));
        };
        if *oid == FLOAT4 {
            return Err(
                over_several("sum or avg of type real").hint("Cast it to double precision.")
            );
        }
        *text =
            text.replace(&format!("lazuli_sum(c{number})"), &format!("(sum(c{number}))::{name}"));
        let begin = format!("lazuli_avg(c{number}, c");
        while let Some(at) = text.find(&begin) {
            let digits: String =
                text[at + begin.len()..].chars().take_while(char::is_ascii_digit).collect();
            let end = at + begin.len() + digits.len() + 1;
            let count = format!("nullif(sum(c{digits}), 0)");
            let average = match *oid {
                INT8 | NUMERIC => format!("(sum(c{number}) / {count})"),
                FLOAT8 | INTERVAL => format!("(sum(c{number}) / {count}::float8)"),
                _ => return Err(over_several("avg of this type")),
            };
            text.replace_range(at..end, &average);
        }
        Ok(())
    }
}
