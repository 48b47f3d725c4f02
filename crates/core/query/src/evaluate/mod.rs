//! Evaluation: expressions over the values that a row binds.

mod context;
mod datum;

pub use context::{Context, UserFunctions};
pub use datum::Datum;
