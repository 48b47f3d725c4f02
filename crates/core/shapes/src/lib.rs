//! Shapes: data models as functions on the engine. Fronts speak, shapes decide, the engine orders, stores keep.
//!
//! A shape takes and returns plain values, knows no protocol, and is where the rules of a model are written once, for
//! every front that speaks it and every store that keeps it.

pub mod blob;
pub mod document;
pub mod queue;
pub mod record;

// What callers need to speak of documents, so that they name the shapes and nothing under them.
pub use {lazuli_query as query_language, lazuli_value as value};
