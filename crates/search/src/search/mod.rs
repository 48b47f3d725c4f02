//! Searches over the snapshots of an index's shards: what a request asks for, the best documents of each shard, and one
//! page of results made of them.

mod collect;
mod facets;
pub(crate) mod highlight;
mod order;
mod page;
mod profile;
mod request;
mod selection;
mod statistics;
mod vector;

pub use page::search;
pub use request::{
    Hit, ScoringStatistics, SearchContext, SearchRequest, SearchResults, VectorFilterMode,
    VectorQuery, VectorThreshold,
};
pub use selection::Selection;

pub(crate) use collect::{Candidate, Plan, collect};
pub(crate) use order::Order;
pub(crate) use page::{Compiled, load, split_fields};

use serde_json::Value;
use tantivy::TantivyDocument;
use tantivy::schema::{Field, Value as _};

/// The document that an entry of the index has stored.
pub(crate) fn stored_document(entry: &TantivyDocument, source: Field) -> Option<Value> {
    serde_json::from_str(entry.get_first(source)?.as_str()?).ok()
}
