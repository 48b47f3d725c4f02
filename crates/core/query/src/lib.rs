//! Queries over documents: from text to tree, from tree to plan, from plan to rows.

mod error;
pub mod evaluate;
pub mod functions;
pub mod limits;
pub mod plan;

pub use error::{ErrorKind, QueryError, QueryErrors, Span, code};
