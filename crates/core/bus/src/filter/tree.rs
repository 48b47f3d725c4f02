//! A condition or an expression, as the parser makes it.

use super::Value;
use crate::PropertyName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Constant(Value),
    Property(PropertyName),
    /// The property that an expression names.
    PropertyNamed(Box<Expression>),
    NewId,
    Plus(Box<Expression>),
    Minus(Box<Expression>),
    Arithmetic(Arithmetic, Box<Expression>, Box<Expression>),
    Compare(Compare, Box<Expression>, Box<Expression>),
    IsNull(Box<Expression>),
    Exists(PropertyName),
    In(Box<Expression>, Vec<Expression>),
    Like {
        text: Box<Expression>,
        pattern: Box<Expression>,
        escape: Option<Box<Expression>>,
    },
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}
