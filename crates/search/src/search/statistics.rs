//! Statistics of terms over all shards, for scores that do not depend on where a document lies.

use crate::index::ShardSnapshot;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::{Field, Term};

/// Sums over the shards of an index.
pub(super) struct Global<'a> {
    pub(super) shards: &'a [ShardSnapshot],
}

impl Bm25StatisticsProvider for Global<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.shards.iter().map(|it| it.searcher.total_num_tokens(field)).sum()
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.shards.iter().map(|it| it.searcher.total_num_docs()).sum()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.shards.iter().map(|it| it.searcher.doc_freq(term)).sum()
    }
}
