//! What a search asks for and what it answers.

use crate::definition::IndexDefinition;
use crate::index::ShardSnapshot;
use crate::query::{QueryType, SearchMode};
use crate::synonyms::SynonymMaps;
use serde_json::{Map, Value};

/// What a request is answered from.
#[derive(Clone, Copy)]
pub struct SearchContext<'a> {
    pub definition: &'a IndexDefinition,
    pub shards: &'a [ShardSnapshot],
    pub synonyms: &'a SynonymMaps,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// A search. Lists are texts as clients write them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchRequest {
    pub search: Option<String>,
    pub query_type: QueryType,
    pub search_mode: SearchMode,
    pub search_fields: Option<String>,
    pub filter: Option<String>,
    pub order_by: Option<String>,
    pub select: Option<String>,
    pub facets: Vec<String>,
    pub highlight: Option<String>,
    pub highlight_pre_tag: Option<String>,
    pub highlight_post_tag: Option<String>,
    pub scoring_profile: Option<String>,
    pub scoring_parameters: Vec<String>,
    pub scoring_statistics: ScoringStatistics,
    pub count: bool,
    pub skip: usize,
    pub top: usize,
    pub vector_queries: Vec<VectorQuery>,
    pub vector_filter_mode: VectorFilterMode,
}

/// Whether terms are weighed by the documents of each shard or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoringStatistics {
    #[default]
    Local,
    Global,
}

/// Whether neighbours are looked for among documents that pass the filter, or filtered afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VectorFilterMode {
    #[default]
    PreFilter,
    PostFilter,
}

/// A search for the nearest vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorQuery {
    pub vector: Vec<f32>,
    /// Neighbours to find.
    pub k: usize,
    /// Fields, separated by commas.
    pub fields: String,
    /// The share of this query in a result of several.
    pub weight: f32,
    /// Whether all vectors are compared, even where there is a graph.
    pub exhaustive: bool,
    /// Documents that are farther away are left out.
    pub threshold: Option<VectorThreshold>,
}

/// From where on documents are near enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VectorThreshold {
    /// By the metric of the field: the least cosine or product, or the greatest distance.
    Similarity(f64),
    /// The least score.
    Score(f64),
}

/// One page of results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    pub count: Option<u64>,
    pub facets: Option<Map<String, Value>>,
    pub hits: Vec<Hit>,
}

/// One document of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub key: String,
    pub score: f64,
    /// The fields that were selected.
    pub document: Map<String, Value>,
    pub highlights: Option<Map<String, Value>>,
}
