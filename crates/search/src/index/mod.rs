//! The inverted index of one shard: its physical fields, how documents become entries, and the files they live in.

mod document;
mod graphs;
mod range;
mod schema;
mod shard;
mod tokenize;
mod vectors;
mod verify;

pub use document::DocumentChange;
pub(crate) use document::for_each_value;
pub(crate) use range::{ColumnRange, Values};
pub(crate) use schema::{Physical, PhysicalLeaf};
pub use shard::{ShardFigures, ShardIndex, ShardSettings, ShardSnapshot};
pub(crate) use vectors::SegmentVectors;
pub(crate) use verify::{Check, VerifyQuery};
