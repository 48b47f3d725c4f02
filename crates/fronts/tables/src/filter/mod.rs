//! `$filter`: from text to a condition, and from a condition to the range of keys that can meet it.
//!
//! Invariant: `plan` only narrows where to look. Whether an entity matches is decided by `matches` alone, so a plan that
//! is too wide costs time and never correctness.

mod lexer;
mod matches;
mod parser;
mod plan;

use lazuli_azure::odata::Value;

pub(crate) use plan::Plan;

/// A condition on the properties of an entity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    /// A property compared with a literal.
    Compare(String, Comparison, Value<'static>),
    Constant(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// The text is no filter of the service's grammar, or over a limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadFilter(pub(crate) &'static str);

#[cfg(test)]
mod tests;
