//! What a level gives: projections, aggregates, and what may stand beside them.

use super::{Bound, Checker, implied_name};
use crate::error::{QueryError, code};
use crate::limits::SORT_EXPRESSIONS_MAX;
use crate::syntax::{Expr, ExprKind, Projection, Select};
use crate::tree::{Aggregate, AggregateKind, Expression, Grouping};

/// The aggregate of a function's name.
pub(crate) fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    Some(match name.to_ascii_uppercase().as_str() {
        "AVG" => AggregateKind::Average,
        "COUNT" => AggregateKind::Count,
        "COUNTIF" => AggregateKind::CountIf,
        "MAX" => AggregateKind::Max,
        "MIN" => AggregateKind::Min,
        "SUM" => AggregateKind::Sum,
        "MAKELIST" => AggregateKind::MakeList,
        "MAKESET" => AggregateKind::MakeSet,
        _ => return None,
    })
}

/// Whether an expression has an aggregate of its own level in it.
pub(crate) fn has_aggregate(expression: &Expr) -> bool {
    let any = |parts: &[Expr]| parts.iter().any(has_aggregate);
    match &expression.kind {
        ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Name(_)
        | ExprKind::Subquery(..) => false,
        ExprKind::Property(one, _) | ExprKind::Unary(_, one) => has_aggregate(one),
        ExprKind::Index(one, two)
        | ExprKind::Binary(_, one, two)
        | ExprKind::Coalesce(one, two) => has_aggregate(one) || has_aggregate(two),
        ExprKind::Array(parts) | ExprKind::And(parts) | ExprKind::Or(parts) => any(parts),
        ExprKind::Object(parts) => parts.iter().any(|(_, part)| has_aggregate(part)),
        ExprKind::Between { value, low, high, .. } => {
            has_aggregate(value) || has_aggregate(low) || has_aggregate(high)
        }
        ExprKind::In { value, list, .. } => has_aggregate(value) || any(list),
        ExprKind::Like { value, pattern, .. } => has_aggregate(value) || has_aggregate(pattern),
        ExprKind::Conditional(one, two, three) => {
            has_aggregate(one) || has_aggregate(two) || has_aggregate(three)
        }
        ExprKind::Call { name, arguments } => aggregate_kind(name).is_some() || any(arguments),
        ExprKind::UserCall { arguments, .. } => any(arguments),
    }
}

impl Checker<'_> {
    /// The grouping of a level, if it has one, and what each of its rows gives.
    pub(super) fn output(
        &mut self,
        select: &Select,
        outer: usize,
        bound: &Bound,
    ) -> Result<(Option<Grouping>, Expression), QueryError> {
        let projected = projected(&select.projection);
        let is_grouped = !select.group.is_empty() || projected.iter().any(|it| has_aggregate(it));
        if !is_grouped {
            let output = match &select.projection {
                Projection::Star(span) => match bound.only {
                    Some(slot) => Expression::Slot(slot),
                    None => {
                        let message = "'SELECT *' is only valid with a single input set.";
                        let error = QueryError::invalid(message);
                        return Err(error.at(code::STAR_NEEDS_ONE_SOURCE, *span));
                    }
                },
                Projection::Value(value) => self.expression(value)?,
                Projection::List(list) => named(list, |expression| self.expression(expression))?,
            };
            return Ok((None, output));
        }
        self.grouped_output(select, outer)
    }

    fn grouped_output(
        &mut self,
        select: &Select,
        outer: usize,
    ) -> Result<(Option<Grouping>, Expression), QueryError> {
        if select.group.len() > SORT_EXPRESSIONS_MAX {
            let message =
                format!("GROUP BY has more than the allowed {SORT_EXPRESSIONS_MAX} expressions.");
            return Err(QueryError::invalid(message).at(code::SYNTAX, select.span));
        }
        if let (Some(item), false) = (select.order.first(), select.group.is_empty()) {
            let message = "'ORDER BY' is not supported in a query with 'GROUP BY'.";
            return Err(QueryError::invalid(message).at(code::NOT_IN_GROUP, item.expression.span));
        }
        let mut keys = Vec::with_capacity(select.group.len());
        for key in &select.group {
            keys.push(self.expression(key)?);
        }
        let mut groups = Groups { outer, grouping: Grouping { keys, aggregates: Vec::new() } };
        let output = match &select.projection {
            Projection::Star(span) => {
                let message = "'SELECT *' is not valid in a query with 'GROUP BY'.";
                return Err(QueryError::invalid(message).at(code::STAR_NEEDS_ONE_SOURCE, *span));
            }
            Projection::Value(value) => self.grouped(value, &mut groups, true)?,
            Projection::List(list) => {
                named(list, |expression| self.grouped(expression, &mut groups, true))?
            }
        };
        Ok((Some(groups.grouping), output))
    }

    /// An expression after grouping: aggregates and keys are slots, and nothing else of a row is left.
    fn grouped(
        &mut self,
        expression: &Expr,
        groups: &mut Groups,
        may_aggregate: bool,
    ) -> Result<Expression, QueryError> {
        if let ExprKind::Call { name, arguments } = &expression.kind
            && let Some(kind) = aggregate_kind(name)
        {
            if !may_aggregate {
                let message = "Compositions of aggregates and other expressions are not allowed.";
                return Err(QueryError::invalid(message).at(code::NOT_IN_GROUP, expression.span));
            }
            return self.aggregate(kind, name, arguments, expression, groups);
        }
        if has_aggregate(expression) {
            return match &expression.kind {
                ExprKind::Array(elements) => {
                    let mut checked = Vec::with_capacity(elements.len());
                    for element in elements {
                        checked.push(self.grouped(element, groups, may_aggregate)?);
                    }
                    Ok(Expression::Array(checked))
                }
                ExprKind::Object(properties) => {
                    let mut checked = Vec::with_capacity(properties.len());
                    for (name, value) in properties {
                        checked.push((name.clone(), self.grouped(value, groups, may_aggregate)?));
                    }
                    Ok(Expression::Object(checked))
                }
                _ => {
                    let message =
                        "Compositions of aggregates and other expressions are not allowed.";
                    Err(QueryError::invalid(message).at(code::NOT_IN_GROUP, expression.span))
                }
            };
        }
        let plain = self.expression(expression)?;
        groups.keyed(plain).ok_or_else(|| {
            let message = format!(
                "Property reference '{expression}' is invalid in the select list because it is \
                 not contained in either an aggregate function or the GROUP BY clause."
            );
            QueryError::invalid(message).at(code::NOT_IN_GROUP, expression.span)
        })
    }

    fn aggregate(
        &mut self,
        kind: AggregateKind,
        name: &str,
        arguments: &[Expr],
        call: &Expr,
        groups: &mut Groups,
    ) -> Result<Expression, QueryError> {
        let [argument] = arguments else {
            let name = name.to_ascii_uppercase();
            let message = format!("The {name} function requires 1 argument(s).");
            return Err(QueryError::invalid(message).at(code::ARGUMENTS, call.span));
        };
        if has_aggregate(argument) {
            let message = "An aggregate cannot be the argument of another aggregate.";
            return Err(QueryError::invalid(message).at(code::NOT_IN_GROUP, argument.span));
        }
        let aggregate = Aggregate { kind, argument: self.expression(argument)? };
        Ok(groups.add(aggregate))
    }
}

/// The keys and aggregates of a level while its output is checked.
struct Groups {
    outer: usize,
    grouping: Grouping,
}

impl Groups {
    /// The slot of an aggregate; equal ones share one.
    fn add(&mut self, aggregate: Aggregate) -> Expression {
        let aggregates = &mut self.grouping.aggregates;
        let place = aggregates.iter().position(|known| *known == aggregate);
        let place = place.unwrap_or_else(|| {
            aggregates.push(aggregate);
            aggregates.len() - 1
        });
        Expression::Slot(self.outer + self.grouping.keys.len() + place)
    }

    /// An expression over a row, with the parts that are keys replaced by their slots. `None` if more of the row is left.
    fn keyed(&self, expression: Expression) -> Option<Expression> {
        if let Some(place) = self.grouping.keys.iter().position(|key| *key == expression) {
            return Some(Expression::Slot(self.outer + place));
        }
        let all = |parts: Vec<Expression>| {
            parts.into_iter().map(|part| self.keyed(part)).collect::<Option<Vec<_>>>()
        };
        match expression {
            Expression::Constant(_) => Some(expression),
            // Slots around this level stay what they are.
            Expression::Slot(slot) => (slot < self.outer).then_some(expression),
            Expression::Property(inside, name) => {
                Some(Expression::Property(Box::new(self.keyed(*inside)?), name))
            }
            Expression::Array(parts) => all(parts).map(Expression::Array),
            Expression::Object(parts) => {
                let one = |(name, part)| Some((name, self.keyed(part)?));
                parts.into_iter().map(one).collect::<Option<Vec<_>>>().map(Expression::Object)
            }
            Expression::Call { function, arguments } => {
                Some(Expression::Call { function, arguments: all(arguments)? })
            }
            Expression::Binary(operator, one, two) => {
                let (one, two) = (self.keyed(*one)?, self.keyed(*two)?);
                Some(Expression::Binary(operator, Box::new(one), Box::new(two)))
            }
            Expression::Unary(operator, one) => {
                Some(Expression::Unary(operator, Box::new(self.keyed(*one)?)))
            }
            _ => None,
        }
    }
}

fn projected(projection: &Projection) -> Vec<&Expr> {
    match projection {
        Projection::Star(_) => Vec::new(),
        Projection::Value(value) => vec![value],
        Projection::List(list) => list.iter().map(|(expression, _)| expression).collect(),
    }
}

/// The object that a list of values makes: names as given, else as implied, else `$1`, `$2` and so on.
fn named(
    list: &[(Expr, Option<String>)],
    mut check: impl FnMut(&Expr) -> Result<Expression, QueryError>,
) -> Result<Expression, QueryError> {
    let mut unnamed = 0;
    let mut properties = Vec::with_capacity(list.len());
    for (expression, alias) in list {
        let name = match alias.as_deref().or_else(|| implied_name(expression)) {
            Some(name) => name.to_owned(),
            None => {
                unnamed += 1;
                format!("${unnamed}")
            }
        };
        properties.push((name, check(expression)?));
    }
    Ok(Expression::Object(properties))
}
