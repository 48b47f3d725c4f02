//! Searches for the nearest vectors, and results of several searches as one.
//!
//! Neighbours are found by comparing all vectors that pass the filter. Several lists of results become one by their
//! ranks: a document gets `weight / (60 + rank)` from every list that has it.

use super::collect::{Candidate, Plan, collect};
use super::order::Order;
use super::page::Compiled;
use super::request::{SearchContext, SearchRequest, VectorFilterMode, VectorQuery};
use super::split_fields;
use crate::definition::Metric;
use crate::error::{Result, SearchError};
use crate::index::{Check, SegmentVectors, ShardSnapshot, VerifyQuery};
use crate::limits;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::sync::Arc;
use tantivy::index::{SegmentId, SegmentReader};
use tantivy::query::{AllQuery, ConstScoreQuery, EnableScoring, Query};
use tantivy::schema::Field;
use tantivy::{DocAddress, DocId, DocSet, Score, TERMINATED};

/// The constant of reciprocal rank fusion.
const RANK_CONSTANT: f64 = 60.0;

/// Documents of a text query that take part in a fusion.
const TEXT_RECALL: usize = 1_000;

/// One list of a fusion, the best first.
struct Ranked {
    candidates: Vec<Candidate>,
    weight: f64,
}

/// A place of a document among all shards.
type Place = (usize, DocAddress);

/// The documents of all vector queries and of the text, with one score each.
pub(super) fn fused(
    context: &SearchContext<'_>,
    request: &SearchRequest,
    compiled: &Compiled<'_>,
    has_text: bool,
) -> Result<Vec<Candidate>> {
    if request.vector_queries.len() > limits::VECTOR_QUERIES_MAX {
        return Err(SearchError::invalid("The request has too many vector queries."));
    }
    let mut lists = Vec::new();
    if has_text {
        let mut candidates = Vec::new();
        for (number, shard) in context.shards.iter().enumerate() {
            let plan = Plan::top(compiled.query(&shard.physical)?, Order::default(), TEXT_RECALL);
            candidates.extend(collect(number, shard, &plan, None)?.candidates);
        }
        candidates.sort_by(Candidate::compare);
        candidates.truncate(TEXT_RECALL);
        lists.push(Ranked { candidates, weight: 1.0 });
    }
    for query in &request.vector_queries {
        for path in split_fields(&query.fields) {
            let candidates = neighbours(context, request, compiled, query, &path)?;
            lists.push(Ranked { candidates, weight: f64::from(query.weight) });
        }
    }
    if lists.len() == 1 {
        return Ok(lists.remove(0).candidates);
    }
    Ok(fuse(lists))
}

fn fuse(lists: Vec<Ranked>) -> Vec<Candidate> {
    let mut fused: BTreeMap<Place, (f64, Candidate)> = BTreeMap::new();
    for list in lists {
        for (rank, candidate) in list.candidates.into_iter().enumerate() {
            let share = list.weight / (RANK_CONSTANT + rank as f64 + 1.0);
            let place = (candidate.shard, candidate.address);
            fused.entry(place).or_insert((0.0, candidate)).0 += share;
        }
    }
    let scored = fused
        .into_values()
        .map(|(score, candidate)| Candidate { score: score as Score, ..candidate });
    let mut candidates: Vec<Candidate> = scored.collect();
    candidates.sort_by(Candidate::compare);
    candidates
}

/// The nearest documents of one field.
fn neighbours(
    context: &SearchContext<'_>,
    request: &SearchRequest,
    compiled: &Compiled<'_>,
    query: &VectorQuery,
    path: &str,
) -> Result<Vec<Candidate>> {
    let leaf = context.definition.leaf(path).filter(|it| it.is_vector() && it.searchable);
    let leaf = leaf.ok_or_else(|| {
        SearchError::invalid(format!("The field '{path}' is not a searchable vector field."))
    })?;
    let dimensions = leaf.dimensions.unwrap_or(0);
    if query.vector.len() != dimensions {
        return Err(SearchError::invalid(format!(
            "The vector field '{path}' has {dimensions} dimensions, the vector query has {}.",
            query.vector.len()
        )));
    }
    if query.vector.iter().any(|it| !it.is_finite()) || !query.weight.is_finite() {
        return Err(SearchError::invalid("A vector query has what is no number."));
    }
    if !(1..=limits::VECTOR_NEIGHBOURS_MAX).contains(&query.k) {
        let max = limits::VECTOR_NEIGHBOURS_MAX;
        return Err(SearchError::invalid(format!("k must be between 1 and {max}.")));
    }
    let profile = leaf.vector_profile.as_deref().unwrap_or_default();
    let metric = context.definition.vector_search.algorithm(profile);
    let metric = metric.map_or(Metric::Cosine, |it| it.metric);
    let before = request.vector_filter_mode == VectorFilterMode::PreFilter;
    let mut nearest = Nearest { heap: BinaryHeap::new(), k: query.k };
    for (number, shard) in context.shards.iter().enumerate() {
        let field = shard.physical.leaf(path).and_then(|it| it.vector);
        let Some(field) = field else { continue };
        let filter = if before { compiled.filter_query(&shard.physical)? } else { None };
        let scan = Scan { number, shard, field, query: &query.vector, metric };
        scan.run(filter.as_deref(), &mut nearest)?;
    }
    let mut candidates: Vec<Candidate> = nearest.heap.into_iter().map(|it| it.0).collect();
    candidates.sort_by(Candidate::compare);
    Ok(candidates)
}

/// The best candidates so far; the worst of them lies on top.
struct Nearest {
    heap: BinaryHeap<Worst>,
    k: usize,
}

struct Worst(Candidate);

impl PartialEq for Worst {
    fn eq(&self, other: &Worst) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Worst {}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Worst) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Worst {
    fn cmp(&self, other: &Worst) -> Ordering {
        self.0.compare(&other.0)
    }
}

impl Nearest {
    fn add(&mut self, candidate: Candidate) {
        if self.heap.len() < self.k {
            self.heap.push(Worst(candidate));
        } else if self.heap.peek().is_some_and(|worst| candidate.score > worst.0.score) {
            self.heap.pop();
            self.heap.push(Worst(candidate));
        }
    }
}

/// Compares a vector with all of a shard.
struct Scan<'a> {
    number: usize,
    shard: &'a ShardSnapshot,
    field: Field,
    query: &'a [f32],
    metric: Metric,
}

impl Scan<'_> {
    fn run(&self, filter: Option<&dyn Query>, nearest: &mut Nearest) -> Result<()> {
        let searcher = &self.shard.searcher;
        let enabled = EnableScoring::disabled_from_searcher(searcher);
        let weight = filter.map(|it| it.weight(enabled)).transpose()?;
        for (segment, reader) in searcher.segment_readers().iter().enumerate() {
            let vectors = SegmentVectors::open(reader, &self.shard.physical.vectors, self.field)?;
            let mut visit = |doc: DocId| {
                if let Some(vector) = vectors.get(doc) {
                    let segment_ord = u32::try_from(segment).unwrap_or(u32::MAX);
                    nearest.add(Candidate {
                        keys: Vec::new(),
                        score: score(self.metric, self.query, vector),
                        shard: self.number,
                        address: DocAddress { segment_ord, doc_id: doc },
                    });
                }
            };
            match &weight {
                None => reader.doc_ids_alive().for_each(visit),
                Some(weight) => {
                    let alive = reader.alive_bitset();
                    let mut scorer = weight.scorer(reader, 1.0)?;
                    let mut doc = scorer.doc();
                    while doc != TERMINATED {
                        if alive.is_none_or(|it| it.is_alive(doc)) {
                            visit(doc);
                        }
                        doc = scorer.advance();
                    }
                }
            }
        }
        Ok(())
    }
}

/// The score of two vectors: one divided by one more than their distance.
fn score(metric: Metric, query: &[f32], vector: impl Iterator<Item = f32>) -> Score {
    let (mut dot, mut own, mut other, mut squares, mut differing) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (a, b) in query.iter().copied().zip(vector) {
        dot += a * b;
        own += a * a;
        other += b * b;
        squares += (a - b) * (a - b);
        differing += f32::from(u8::from(a != b));
    }
    let distance = match metric {
        Metric::Cosine if own == 0.0 || other == 0.0 => 1.0,
        Metric::Cosine => 1.0 - dot / (own.sqrt() * other.sqrt()),
        Metric::DotProduct => 1.0 - dot,
        Metric::Euclidean => squares.sqrt(),
        Metric::Hamming => differing,
    };
    let score = 1.0 / (1.0 + distance.max(0.0));
    // A greater product than one must still be better.
    if metric == Metric::DotProduct && distance < 0.0 { 1.0 - distance } else { score }
}

/// Those of a fusion that were also found by the query with the filter.
pub(super) fn keep(fused: Vec<Candidate>, found: &[Candidate]) -> Vec<Candidate> {
    let places: HashSet<Place> = found.iter().map(|it| (it.shard, it.address)).collect();
    fused.into_iter().filter(|it| places.contains(&(it.shard, it.address))).collect()
}

/// The query that has exactly some documents.
pub(super) fn only(shard: usize, snapshot: &ShardSnapshot, all: &[Candidate]) -> Box<dyn Query> {
    let mut documents = HashSet::new();
    for candidate in all.iter().filter(|it| it.shard == shard) {
        let reader = snapshot.searcher.segment_reader(candidate.address.segment_ord);
        documents.insert((reader.segment_id(), candidate.address.doc_id));
    }
    let inner: Arc<dyn Query> = Arc::new(ConstScoreQuery::new(Box::new(AllQuery), 1.0));
    Box::new(VerifyQuery { inner, check: Arc::new(Listed { documents: Arc::new(documents) }) })
}

struct Listed {
    documents: Arc<HashSet<(SegmentId, DocId)>>,
}

impl Check for Listed {
    fn checker(
        &self,
        reader: &SegmentReader,
    ) -> tantivy::Result<Box<dyn FnMut(DocId) -> bool + Send>> {
        let (segment, documents) = (reader.segment_id(), self.documents.clone());
        Ok(Box::new(move |doc| documents.contains(&(segment, doc))))
    }
}
