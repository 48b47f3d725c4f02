//! Checking: the tree as it was written becomes the tree that is executed, or the errors of the service.

mod expressions;
mod grouped;
mod rank;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use lazuli_value::Value;

use crate::error::{QueryError, Span, code};
use crate::limits::{JOINS_MAX, SORT_EXPRESSIONS_MAX};
use crate::syntax::{Collection, Count, Expr, ExprKind, FromItem, PathStep, Projection, Select};
use crate::tree::{Expression, Level, Sort, Source};

pub(crate) use grouped::{aggregate_kind, has_aggregate};

/// Values of parameters by name, with their `@`.
pub type Parameters = BTreeMap<String, Value>;

/// Properties that a container computes: name, and the expression over the item in slot 0.
pub type ComputedProperties = [(String, Expression)];

/// A query that can be planned and executed.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What is done with the items, or with the rows of `before`.
    pub level: Level,
    /// A query in FROM that has to be complete before this one can begin.
    pub before: Option<Box<Checked>>,
}

/// Checks a whole query.
pub(crate) fn check(
    select: &Select,
    parameters: &Parameters,
    computed: &ComputedProperties,
) -> Result<Checked, QueryError> {
    let mut checker = Checker {
        parameters,
        computed,
        names: Vec::new(),
        slots: 0,
        has_item: false,
        root: Root::Items,
        is_in_rank: false,
        joins: 0,
        calls: 0,
        parameter_bytes: 0,
    };
    checker.whole(select)
}

/// What a name in FROM stands for if nothing in scope has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    /// The items of the container.
    Items,
    /// The item in a slot: in a subquery that is itself the first source.
    Slot(usize),
    /// Nothing: it is an error.
    Unknown,
}

struct Checker<'c> {
    parameters: &'c Parameters,
    computed: &'c ComputedProperties,
    /// Names in scope, the innermost last.
    names: Vec<(String, usize)>,
    /// How many slots are bound where the check has come to.
    slots: usize,
    /// Whether slot 0 holds an item of the container, which may have computed properties.
    has_item: bool,
    root: Root,
    /// Whether the expression of ORDER BY RANK is checked, which may hold scores.
    is_in_rank: bool,
    joins: usize,
    /// Calls of user-defined functions.
    calls: usize,
    /// Bytes of all uses of parameters.
    parameter_bytes: usize,
}

/// What the sources of a level bind.
struct Bound {
    sources: Vec<Source>,
    /// The slot of the only source as it was written, for `SELECT *`.
    only: Option<usize>,
}

impl Checker<'_> {
    fn whole(&mut self, select: &Select) -> Result<Checked, QueryError> {
        if let Some(FromItem { collection: Collection::Subquery(inner), .. }) = select.from.first()
            && !is_per_item(inner)
        {
            let before = Some(Box::new(self.whole(inner)?));
            self.names.clear();
            self.has_item = false;
            let level = self.level(select, 0, true)?;
            return Ok(Checked { level, before });
        }
        Ok(Checked { level: self.level(select, 0, false)?, before: None })
    }

    /// A level whose sources bind slots from `outer` on. `is_fed` says that the first source is the rows of a query that
    /// was run before.
    fn level(&mut self, select: &Select, outer: usize, is_fed: bool) -> Result<Level, QueryError> {
        let (names_before, slots_before) = (self.names.len(), self.slots);
        let bound = self.sources(select, outer, is_fed)?;
        self.slots = outer + bound.sources.len();
        let root = std::mem::replace(&mut self.root, Root::Unknown);
        let filter = select.filter.as_ref().map(|filter| self.expression(filter)).transpose()?;
        let limit = match (&select.top, &select.limit) {
            (Some(_), Some(_)) => {
                let message = "TOP and OFFSET LIMIT cannot be used in the same query.";
                return Err(QueryError::invalid(message).at(code::SYNTAX, select.span));
            }
            (top, limit) => self.count(top.as_ref().or(limit.as_ref()))?,
        };
        let offset = self.count(select.offset.as_ref())?.unwrap_or(0);
        let (grouping, output) = self.output(select, outer, &bound)?;
        let sort = if grouping.is_some() { Vec::new() } else { self.sort(select)? };
        let ranking = rank::ranking(select, &sort, outer)?;
        self.names.truncate(names_before);
        self.slots = slots_before;
        self.root = root;
        Ok(Level {
            outer,
            sources: bound.sources,
            filter,
            grouping,
            output,
            is_distinct: select.is_distinct,
            sort,
            ranking,
            offset,
            limit,
        })
    }

    fn count(&self, count: Option<&Count>) -> Result<Option<u64>, QueryError> {
        match count {
            None => Ok(None),
            Some(Count::Number(number)) => Ok(Some(*number)),
            Some(Count::Parameter(name, span)) => match self.parameter(name, *span)? {
                Value::Int64(number) if *number >= 0 => Ok(Some(number.unsigned_abs())),
                _ => {
                    let message =
                        format!("The value of parameter '{name}' must be a non-negative integer.");
                    Err(QueryError::invalid(message).at(code::SYNTAX, *span))
                }
            },
        }
    }

    fn parameter(&self, name: &str, span: Span) -> Result<&Value, QueryError> {
        self.parameters.get(name).ok_or_else(|| unresolved(name, span))
    }

    fn sources(
        &mut self,
        select: &Select,
        outer: usize,
        is_fed: bool,
    ) -> Result<Bound, QueryError> {
        self.joins += select.from.len().saturating_sub(1);
        if self.joins > JOINS_MAX {
            let message = format!(
                "The SQL query exceeded the maximum number of joins. The allowed limit is {JOINS_MAX}."
            );
            return Err(QueryError::invalid(message).at(code::SYNTAX, select.span));
        }
        let mut sources = Vec::new();
        let mut only = None;
        for (place, item) in select.from.iter().enumerate() {
            let first = place == 0;
            self.source(item, outer, first, first && is_fed, &mut sources)?;
            let slot = outer + sources.len() - 1;
            only = if first { Some(slot) } else { None };
            if let Some(alias) = alias(item) {
                self.names.push((alias, slot));
            }
        }
        Ok(Bound { sources, only })
    }

    fn source(
        &mut self,
        item: &FromItem,
        outer: usize,
        is_first: bool,
        is_fed: bool,
        sources: &mut Vec<Source>,
    ) -> Result<(), QueryError> {
        let is_items = is_first && self.root == Root::Items;
        match &item.collection {
            Collection::Subquery(_) if is_fed => {
                sources.push(Source::Items);
                if item.is_each {
                    sources.push(Source::Each(Expression::Slot(outer)));
                }
            }
            Collection::Subquery(select) => {
                if is_items {
                    self.has_item = true;
                    sources.push(Source::Items);
                }
                let slot = outer + sources.len();
                let inner_root = match self.root {
                    Root::Items if is_first => Root::Slot(outer),
                    Root::Slot(slot) if is_first => Root::Slot(slot),
                    _ => Root::Unknown,
                };
                let root = std::mem::replace(&mut self.root, inner_root);
                let level = Box::new(self.level(select, slot, false)?);
                self.root = root;
                let each = if item.is_each { Source::EachOfRows } else { Source::Rows };
                sources.push(each(level));
            }
            Collection::Path { root, steps, span } => {
                let known = self.find(root);
                if is_items && known.is_none() {
                    self.has_item = true;
                    sources.push(Source::Items);
                    if steps.is_empty() && !item.is_each {
                        return Ok(());
                    }
                }
                let start = match (known, self.root) {
                    (Some(slot), _) | (None, Root::Slot(slot)) if is_first || known.is_some() => {
                        slot
                    }
                    (None, Root::Items) if is_first => outer,
                    _ => return Err(unresolved(root, *span)),
                };
                let value = steps.iter().fold(Expression::Slot(start), step);
                sources.push(if item.is_each { Source::Each(value) } else { Source::Value(value) });
            }
        }
        Ok(())
    }

    /// The slot of a name in scope.
    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }

    fn sort(&mut self, select: &Select) -> Result<Vec<Sort>, QueryError> {
        if select.order.len() > SORT_EXPRESSIONS_MAX {
            let message =
                format!("ORDER BY has more than the allowed {SORT_EXPRESSIONS_MAX} expressions.");
            return Err(QueryError::invalid(message).at(code::SYNTAX, select.span));
        }
        let mut sort = Vec::with_capacity(select.order.len());
        self.is_in_rank = select.is_ranked;
        for item in &select.order {
            let expression = self.expression(&item.expression)?;
            // The best score and the nearest vector come first.
            let is_descending = rank::is_descending(&expression).unwrap_or(item.is_descending);
            sort.push(Sort { expression, is_descending });
        }
        self.is_in_rank = false;
        Ok(sort)
    }
}

fn step(value: Expression, step: &PathStep) -> Expression {
    match step {
        PathStep::Name(name) => Expression::Property(Box::new(value), name.clone()),
        PathStep::Place(place) => {
            let place = i64::try_from(*place).unwrap_or(i64::MAX);
            Expression::Index(Box::new(value), Box::new(Expression::constant(place)))
        }
    }
}

/// The name by which the rest of the query knows a source.
pub(crate) fn alias(item: &FromItem) -> Option<String> {
    if item.alias.is_some() {
        return item.alias.clone();
    }
    match &item.collection {
        Collection::Subquery(_) => None,
        Collection::Path { root, steps, .. } => {
            let names = steps.iter().rev().find_map(|step| match step {
                PathStep::Name(name) => Some(name),
                PathStep::Place(_) => None,
            });
            Some(names.unwrap_or(root).clone())
        }
    }
}

/// Whether the rows of a query over all items are those of a query over each item, one after another.
fn is_per_item(select: &Select) -> bool {
    let aggregates = match &select.projection {
        Projection::Star(_) => false,
        Projection::Value(value) => has_aggregate(value),
        Projection::List(list) => list.iter().any(|(expression, _)| has_aggregate(expression)),
    };
    let inner = match select.from.first().map(|item| &item.collection) {
        Some(Collection::Subquery(inner)) => is_per_item(inner),
        Some(Collection::Path { .. }) => true,
        None => false,
    };
    inner
        && !aggregates
        && !select.is_distinct
        && select.group.is_empty()
        && select.order.is_empty()
        && select.top.is_none()
        && select.limit.is_none()
}

fn unresolved(name: &str, span: Span) -> QueryError {
    let message = format!("Identifier '{name}' could not be resolved.");
    QueryError::invalid(message).at(code::UNRESOLVED, span)
}

/// The name of a value in a list that gives it none: the last step of its path.
pub(crate) fn implied_name(expression: &Expr) -> Option<&str> {
    match &expression.kind {
        ExprKind::Property(_, name) | ExprKind::Name(name) => Some(name),
        _ => None,
    }
}
