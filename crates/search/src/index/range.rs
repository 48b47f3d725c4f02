//! Ranges of values of a column.
//!
//! tantivy's own range query takes a seek backwards for one forwards (its distance of seeks overflows) when it stands
//! inside of other queries, so this is written anew: blocks of documents that are fetched ahead, and grow while
//! documents are taken one after another.

use std::ops::{Bound, RangeInclusive};
use tantivy::columnar::Column;
use tantivy::index::SegmentReader;
use tantivy::query::{ConstScorer, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, TERMINATED, TantivyError};

/// The documents with a value in a range.
#[derive(Clone, Debug)]
pub(crate) struct ColumnRange {
    pub(crate) column: String,
    pub(crate) values: Values,
}

/// A range of values.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Whole(RangeInclusive<i64>),
    Double(RangeInclusive<f64>),
    Text(Bound<String>, Bound<String>),
}

impl Query for ColumnRange {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for ColumnRange {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let fast = reader.fast_fields();
        Ok(match &self.values {
            Values::Whole(range) => scorer(fast.i64(&self.column)?, range.clone(), boost),
            Values::Double(range) => scorer(fast.f64(&self.column)?, range.clone(), boost),
            Values::Text(low, high) => {
                let Some(column) = fast.str(&self.column)? else {
                    return Ok(Box::new(EmptyScorer));
                };
                let bytes = |it: &Bound<String>| it.clone().map(String::into_bytes);
                let (low, high) =
                    column.dictionary().term_bounds_to_ord(bytes(low), bytes(high))?;
                let first = match low {
                    Bound::Included(ord) => ord,
                    Bound::Excluded(ord) => ord + 1,
                    Bound::Unbounded => 0,
                };
                let last = match high {
                    Bound::Included(ord) => Some(ord),
                    Bound::Excluded(ord) => ord.checked_sub(1),
                    Bound::Unbounded => Some(u64::MAX),
                };
                match last {
                    Some(last) if first <= last => {
                        scorer(column.ords().clone(), first..=last, boost)
                    }
                    _ => Box::new(EmptyScorer),
                }
            }
        })
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() <= doc && scorer.seek(doc) == doc {
            return Ok(Explanation::new("a value in a range", 1.0));
        }
        Err(TantivyError::InvalidArgument("the document does not match".to_owned()))
    }
}

fn scorer<T>(column: Column<T>, range: RangeInclusive<T>, boost: Score) -> Box<dyn Scorer>
where
    T: PartialOrd + Copy + Send + Sync + std::fmt::Debug + 'static,
{
    // A column answers wrongly for ranges that lie beside all of its values.
    if *range.start() > column.max_value() || *range.end() < column.min_value() {
        return Box::new(EmptyScorer);
    }
    let mut documents =
        RangeDocuments { column, range, block: Vec::new(), at: 0, next: 0, window: WINDOW_MIN };
    documents.fetch();
    Box::new(ConstScorer::new(documents, boost))
}

/// Documents that are fetched at once, at first and at most.
const WINDOW_MIN: u32 = 128;
const WINDOW_MAX: u32 = 65_536;

struct RangeDocuments<T> {
    column: Column<T>,
    range: RangeInclusive<T>,
    /// Documents that were fetched and match.
    block: Vec<DocId>,
    at: usize,
    /// The first document that was not fetched.
    next: DocId,
    window: u32,
}

impl<T> RangeDocuments<T>
where
    T: PartialOrd + Copy + Send + Sync + std::fmt::Debug + 'static,
{
    /// Fetches blocks until one has a document.
    fn fetch(&mut self) {
        let documents = self.column.num_docs();
        while self.at >= self.block.len() && self.next < documents {
            let end = self.next.saturating_add(self.window).min(documents);
            self.block.clear();
            self.at = 0;
            let range = self.range.clone();
            self.column.get_docids_for_value_range(range, self.next..end, &mut self.block);
            self.block.dedup();
            self.next = end;
            self.window = (self.window * 2).min(WINDOW_MAX);
        }
    }
}

impl<T> DocSet for RangeDocuments<T>
where
    T: PartialOrd + Copy + Send + Sync + std::fmt::Debug + 'static,
{
    fn advance(&mut self) -> DocId {
        self.at += 1;
        self.fetch();
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target < self.next {
            self.at +=
                self.block[self.at.min(self.block.len())..].partition_point(|it| *it < target);
        } else {
            self.at = self.block.len();
            self.next = target;
            self.window = WINDOW_MIN;
        }
        self.fetch();
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.block.get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn size_hint(&self) -> u32 {
        self.column.num_docs()
    }
}
