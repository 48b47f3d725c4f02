//! Queries over documents: from text to tree, from tree to plan, from plan to rows.
//!
//! - `syntax/` reads text into a tree as it was written; `check/` makes of it the tree that is executed (`tree.rs`), with
//!   the errors of the service.
//! - `plan/` decides which items are read; the shape that has them reads them.
//! - `execute/` takes the items and gives pages of rows; `continuation.rs` is what the next page needs.
//! - `partitioned.rs` is the service's query plan document, for clients that merge partitions by themselves.
//! - `evaluate/` computes expressions over a row, `functions/` are the built-in ones.
//!
//! Invariant: nothing here reads or writes anything, and the same items in the same order give the same rows.

mod check;
mod continuation;
mod error;
pub mod evaluate;
pub mod execute;
pub mod functions;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
pub mod partitioned;
pub mod plan;
pub mod syntax;
pub mod tree;

use lazuli_value::{Value, canonical_hash};

pub use check::{Checked, ComputedProperties, Parameters};
pub use continuation::{Continuation, Position};
pub use error::{ErrorKind, QueryError, QueryErrors, Span, code};

/// A query whose text was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    text: String,
    select: syntax::Select,
}

impl Query {
    /// Reads a text. Errors have their places in UTF-16 units, as the service counts them.
    pub fn parse(text: &str) -> Result<Self, QueryErrors> {
        match syntax::parse(text) {
            Ok(select) => Ok(Self { text: text.to_owned(), select }),
            Err(error) => Err(error.in_units_of(text).into()),
        }
    }

    /// The tree as it was written.
    pub fn select(&self) -> &syntax::Select {
        &self.select
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// A number that tells this query with these parameters apart from others, for its continuations.
    pub fn fingerprint(&self, parameters: &Parameters) -> u64 {
        let mut parts = vec![Value::String(self.text.clone())];
        for (name, value) in parameters {
            parts.extend([Value::String(name.clone()), value.clone()]);
        }
        canonical_hash((&Value::Array(parts)).into()) as u64
    }

    /// The expression of a computed property: `SELECT VALUE expression FROM name` and nothing else.
    pub fn computed_property(&self) -> Result<tree::Expression, QueryErrors> {
        let level = self.check(&Parameters::new())?.level;
        let is_plain = matches!(self.select.projection, syntax::Projection::Value(_))
            && level.sources == [tree::Source::Items]
            && level.filter.is_none()
            && level.grouping.is_none()
            && !level.is_distinct
            && level.sort.is_empty()
            && level.offset == 0
            && level.limit.is_none();
        if is_plain {
            return Ok(level.output);
        }
        let message =
            "A computed property must be of the form SELECT VALUE <expression> FROM <name>.";
        Err(QueryError::invalid(message).at(code::SYNTAX, self.select.span).into())
    }

    /// Resolves names, parameters and functions.
    pub fn check(&self, parameters: &Parameters) -> Result<Checked, QueryErrors> {
        self.check_with(parameters, &[])
    }

    /// The same with the properties that the container computes.
    pub fn check_with(
        &self,
        parameters: &Parameters,
        computed: &ComputedProperties,
    ) -> Result<Checked, QueryErrors> {
        check::check(&self.select, parameters, computed)
            .map_err(|error| error.in_units_of(&self.text).into())
    }
}
