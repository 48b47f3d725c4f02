//! Expressions: names to slots, parameters and what can be computed beforehand to constants.

use std::sync::Arc;

use lazuli_value::Value;

use super::grouped::aggregate_kind;
use super::{Checker, Root, unresolved};
use crate::error::{QueryError, code};
use crate::evaluate::{ConstantSet, Context, Datum, evaluate};
use crate::functions;
use crate::limits::{IN_ITEMS_MAX, UDF_CALLS_MAX};
use crate::syntax::{Expr, ExprKind};
use crate::tree::Expression;

impl Checker<'_> {
    pub(super) fn expression(&mut self, expression: &Expr) -> Result<Expression, QueryError> {
        let checked = match &expression.kind {
            ExprKind::Literal(value) => Expression::Constant(value.clone()),
            ExprKind::Parameter(name) => {
                Expression::Constant(Some(self.parameter(name, expression.span)?.clone()))
            }
            ExprKind::Name(name) => match self.find(name) {
                Some(slot) => Expression::Slot(slot),
                None => return Err(unresolved(name, expression.span)),
            },
            ExprKind::Property(inside, name) => self.property(inside, name)?,
            ExprKind::Index(inside, index) => {
                let (inside, index) = (self.expression(inside)?, self.expression(index)?);
                self.member(inside, index)
            }
            ExprKind::Array(elements) => Expression::Array(self.all(elements)?),
            ExprKind::Object(properties) => {
                let mut checked = Vec::with_capacity(properties.len());
                for (name, value) in properties {
                    checked.push((name.clone(), self.expression(value)?));
                }
                Expression::Object(checked)
            }
            ExprKind::Unary(operator, inside) => Expression::Unary(*operator, self.boxed(inside)?),
            ExprKind::Binary(operator, one, two) => {
                Expression::Binary(*operator, self.boxed(one)?, self.boxed(two)?)
            }
            ExprKind::And(parts) => Expression::And(self.all(parts)?),
            ExprKind::Or(parts) => Expression::Or(self.all(parts)?),
            ExprKind::Between { .. } | ExprKind::In { .. } | ExprKind::Like { .. } => {
                self.test(expression)?
            }
            ExprKind::Coalesce(one, two) => {
                Expression::Coalesce(self.boxed(one)?, self.boxed(two)?)
            }
            ExprKind::Conditional(one, two, three) => {
                Expression::Conditional(self.boxed(one)?, self.boxed(two)?, self.boxed(three)?)
            }
            ExprKind::Call { name, arguments } => self.call(name, arguments, expression)?,
            ExprKind::UserCall { name, arguments } => {
                self.calls += 1;
                if self.calls > UDF_CALLS_MAX {
                    let message = format!(
                        "The SQL query exceeded the maximum number of user-defined function calls. \
                         The allowed limit is {UDF_CALLS_MAX}."
                    );
                    return Err(QueryError::invalid(message).at(code::UDF_CALLS, expression.span));
                }
                Expression::UserCall { name: name.clone(), arguments: self.all(arguments)? }
            }
            ExprKind::Subquery(kind, select) => {
                let outer = self.slots;
                let root = std::mem::replace(&mut self.root, Root::Unknown);
                let level = self.level(select, outer, false)?;
                self.root = root;
                Expression::Subquery(*kind, Box::new(level))
            }
        };
        Ok(folded(checked))
    }

    fn boxed(&mut self, expression: &Expr) -> Result<Box<Expression>, QueryError> {
        self.expression(expression).map(Box::new)
    }

    fn all(&mut self, expressions: &[Expr]) -> Result<Vec<Expression>, QueryError> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    /// A property, or what the container computes under its name.
    fn property(&mut self, inside: &Expr, name: &str) -> Result<Expression, QueryError> {
        let inside = self.expression(inside)?;
        Ok(self.property_of(inside, name))
    }

    /// A property by a name in brackets, which may be a parameter, or an element.
    fn member(&self, inside: Expression, index: Expression) -> Expression {
        match &index {
            Expression::Constant(Some(Value::String(name))) => self.property_of(inside, name),
            _ => Expression::Index(Box::new(inside), Box::new(index)),
        }
    }

    fn property_of(&self, inside: Expression, name: &str) -> Expression {
        if inside == Expression::Slot(0)
            && self.has_item
            && let Some((_, computed)) = self.computed.iter().find(|(known, _)| known == name)
        {
            return computed.clone();
        }
        Expression::Property(Box::new(inside), name.to_owned())
    }

    fn test(&mut self, expression: &Expr) -> Result<Expression, QueryError> {
        let (checked, is_not) = match &expression.kind {
            ExprKind::Between { value, low, high, is_not } => {
                let (value, low, high) = (self.boxed(value)?, self.boxed(low)?, self.boxed(high)?);
                (Expression::Between { value, low, high }, *is_not)
            }
            ExprKind::In { value, list, is_not } => {
                if list.len() > IN_ITEMS_MAX {
                    let message = format!(
                        "The SQL query exceeded the maximum number of items in an IN expression. \
                         The allowed limit is {IN_ITEMS_MAX}."
                    );
                    return Err(QueryError::invalid(message).at(code::SYNTAX, expression.span));
                }
                let value = self.boxed(value)?;
                let list = self.all(list)?;
                (Expression::In { value, set: constant_set(&list), list }, *is_not)
            }
            ExprKind::Like { value, pattern, escape, is_not } => {
                let mut characters = escape.iter().flat_map(|escape| escape.chars());
                let (escape, more) = (characters.next(), characters.next());
                if more.is_some() {
                    let message = "The ESCAPE of LIKE must be one character.";
                    return Err(QueryError::invalid(message).at(code::SYNTAX, expression.span));
                }
                let (value, pattern) = (self.boxed(value)?, self.boxed(pattern)?);
                (Expression::Like { value, pattern, escape }, *is_not)
            }
            _ => return self.expression(expression),
        };
        let checked = folded(checked);
        Ok(if is_not { folded(checked.negated()) } else { checked })
    }

    fn call(
        &mut self,
        name: &str,
        arguments: &[Expr],
        call: &Expr,
    ) -> Result<Expression, QueryError> {
        if aggregate_kind(name).is_some() {
            let name = name.to_ascii_uppercase();
            let message = format!("The aggregate function '{name}' is only allowed in SELECT.");
            return Err(QueryError::invalid(message).at(code::NOT_IN_GROUP, call.span));
        }
        let Some(function) = functions::find(name) else {
            let message = format!("'{name}' is not a recognized built-in function name.");
            return Err(QueryError::invalid(message).at(code::UNKNOWN_FUNCTION, call.span));
        };
        if function.ranks && !self.is_in_rank {
            let message =
                format!("The {} function is only allowed in ORDER BY RANK.", function.name);
            return Err(QueryError::invalid(message).at(code::SYNTAX, call.span));
        }
        let count = arguments.len();
        if count < function.least || count > function.most {
            let needed = if function.least == function.most {
                function.least.to_string()
            } else if function.most == usize::MAX {
                format!("at least {}", function.least)
            } else {
                format!("{} to {}", function.least, function.most)
            };
            let message = format!("The {} function requires {needed} argument(s).", function.name);
            return Err(QueryError::invalid(message).at(code::ARGUMENTS, call.span));
        }
        Ok(Expression::Call { function, arguments: self.all(arguments)? })
    }
}

/// Lists that are at least so long are looked up.
const LONG_LIST: usize = 16;

fn constant_set(list: &[Expression]) -> Option<Arc<ConstantSet>> {
    let is_constant = |item: &Expression| matches!(item, Expression::Constant(_));
    if list.len() < LONG_LIST || !list.iter().all(is_constant) {
        return None;
    }
    Some(Arc::new(ConstantSet::new(list.iter().map(Expression::as_constant))))
}

/// Computes an expression beforehand if everything in it is a constant.
fn folded(expression: Expression) -> Expression {
    let is_fixed = match &expression {
        Expression::Constant(_)
        | Expression::Slot(_)
        | Expression::Subquery(..)
        | Expression::UserCall { .. } => false,
        Expression::Call { function, .. } => function.pure,
        _ => true,
    };
    let is_constant = |part: &&Expression| matches!(part, Expression::Constant(_));
    if !is_fixed || !expression.parts().iter().all(is_constant) {
        return expression;
    }
    let context = Context::new(0, 0);
    match evaluate(&expression, None, &context) {
        Ok(value) => Expression::Constant(value.map(Datum::into_value)),
        Err(_) => expression.clone(),
    }
}
