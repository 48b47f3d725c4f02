//! The search engine: full-text indexes over JSON documents as Azure AI Search has them.
//!
//! It is derived data. Documents are kept elsewhere; this crate is told of their changes, keeps an inverted index of
//! them in a folder for each shard, and answers searches, suggestions and completions from it. It has threads and files
//! of its own, so it lies outside of core, and it knows no protocol.

mod analysis;
mod analyze;
mod autocomplete;
mod definition;
mod error;
mod explain;
mod filter;
pub mod fuzzing;
mod graph;
mod index;
pub mod limits;
mod query;
mod search;
mod suggest;
mod synonyms;
mod value;

pub use analysis::{ALIASES, predefined_names};
pub use analyze::{AnalyzedToken, analyze};
pub use autocomplete::{AutocompleteMode, AutocompleteRequest, Completion, autocomplete};
pub use definition::{EdmType, Field, IndexDefinition, Leaf, Suggester};
pub use error::{ErrorKind, Result, SearchError};
pub use explain::explain;
pub use filter::Filter;
pub use index::{DocumentChange, ShardFigures, ShardIndex, ShardSettings, ShardSnapshot};
pub use query::{QueryType, SearchMode};
pub use search::{
    Hit, ScoringStatistics, SearchContext, SearchRequest, SearchResults, Selection,
    VectorFilterMode, VectorQuery, VectorThreshold, search,
};
pub use suggest::{SuggestRequest, Suggestion, suggest};
pub use synonyms::{SynonymMap, SynonymMaps};
