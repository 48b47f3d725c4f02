//! Filters and actions of rules: which messages a subscription gets, and what is changed of them.
//!
//! A filter is TRUE, FALSE, a correlation of properties with values, or a condition in the service's dialect of SQL-92; an
//! action is a list of SET and REMOVE statements. The text is parsed once, when a rule is made or a fragment's rules are
//! first used. Evaluation is three-valued: a condition that is unknown does not match.

pub(crate) mod action;
mod correlation;
mod evaluate;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod lexer;
mod like;
mod parser;
mod tree;
mod value;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use lazuli_engine::{Error, Result};

use crate::BusReason;
pub use action::Action;
pub use correlation::CorrelationFilter;
pub use value::Value;

use crate::PropertyName;

/// What a filter can ask a message for.
pub trait Properties {
    /// The value of a property; none if the message does not have it.
    fn get(&self, name: &PropertyName) -> Result<Option<Value>>;

    /// Another id each time, for `newid()`.
    fn new_id(&self) -> [u8; 16];
}

/// A condition as its owner wrote it, and as it is evaluated.
#[derive(Clone, Debug)]
pub struct SqlFilter {
    text: String,
    condition: Arc<tree::Expression>,
}

impl SqlFilter {
    /// Fails with [`BusReason::BadFilter`].
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self { text: text.to_owned(), condition: Arc::new(parser::condition(text)?) })
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for SqlFilter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The filter of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    True,
    False,
    Sql(SqlFilter),
    Correlation(CorrelationFilter),
}

impl Filter {
    pub fn sql(text: &str) -> Result<Self> {
        SqlFilter::parse(text).map(Self::Sql)
    }

    /// Whether it looks at the message at all.
    pub fn asks(&self) -> bool {
        matches!(self, Self::Sql(_) | Self::Correlation(_))
    }

    /// Whether a message passes. An error is one of evaluation: a type that an operator does not take, a division by zero.
    pub fn matches(&self, message: &dyn Properties) -> Result<bool> {
        match self {
            Self::True => Ok(true),
            Self::False => Ok(false),
            Self::Sql(sql) => evaluate::condition(&sql.condition, message),
            Self::Correlation(correlation) => correlation.matches(message),
        }
    }
}

fn bad(message: impl std::fmt::Display) -> Error {
    Error::invalid(BusReason::BadFilter, message)
}
