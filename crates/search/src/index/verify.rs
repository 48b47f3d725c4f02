//! A query whose documents are looked at once more, where the inverted index alone answers too much.

use std::fmt;
use std::sync::Arc;
use tantivy::index::SegmentReader;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, TERMINATED};

/// Says which documents of a segment pass.
pub(crate) type Checker = Box<dyn FnMut(DocId) -> bool + Send>;

/// Makes a checker for each segment.
pub(crate) trait Check: Send + Sync + 'static {
    fn checker(&self, reader: &SegmentReader) -> tantivy::Result<Checker>;
}

/// The documents of a query that pass a check.
#[derive(Clone)]
pub(crate) struct VerifyQuery {
    pub(crate) inner: Arc<dyn Query>,
    pub(crate) check: Arc<dyn Check>,
}

impl fmt::Debug for VerifyQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Verify({:?})", self.inner)
    }
}

impl Query for VerifyQuery {
    fn weight(&self, enable_scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let inner = self.inner.weight(enable_scoring)?;
        Ok(Box::new(VerifyWeight { inner, check: self.check.clone() }))
    }
}

struct VerifyWeight {
    inner: Box<dyn Weight>,
    check: Arc<dyn Check>,
}

impl Weight for VerifyWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.inner.scorer(reader, boost)?;
        let checker = self.check.checker(reader)?;
        let mut scorer = VerifyScorer { inner, checker };
        scorer.settle();
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.inner.explain(reader, doc)
    }
}

struct VerifyScorer {
    inner: Box<dyn Scorer>,
    checker: Checker,
}

impl VerifyScorer {
    /// Goes on until the current document passes.
    fn settle(&mut self) -> DocId {
        let mut doc = self.inner.doc();
        while doc != TERMINATED && !(self.checker)(doc) {
            doc = self.inner.advance();
        }
        doc
    }
}

impl DocSet for VerifyScorer {
    fn advance(&mut self) -> DocId {
        self.inner.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.inner.seek(target);
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.inner.doc()
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }

    /// A document costs far more here than in a list of numbers.
    fn cost(&self) -> u64 {
        self.inner.cost().saturating_mul(1_000)
    }
}

impl Scorer for VerifyScorer {
    fn score(&mut self) -> Score {
        self.inner.score()
    }
}
