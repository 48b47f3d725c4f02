//! Searches for the nearest vectors, and results of several searches as one.
//!
//! Neighbours are found through the graph of a segment, or by comparing all vectors that pass the filter: where there is no
//! graph, where a query wants it, and where a filter leaves so few that it costs less. Several lists of results become one by their
//! ranks: a document gets `weight / (60 + rank)` from every list that has it.

use super::collect::{Candidate, Plan, collect};
use super::order::Order;
use super::page::Compiled;
use super::request::{
    SearchContext, SearchRequest, VectorFilterMode, VectorQuery, VectorThreshold,
};
use super::split_fields;
use crate::definition::Metric;
use crate::error::{Result, SearchError};
use crate::graph::{Graph, Probe, Vectors, score};
use crate::index::{Check, SegmentVectors, ShardSnapshot, VerifyQuery};
use crate::limits;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::sync::Arc;
use tantivy::index::{SegmentId, SegmentReader};
use tantivy::query::{AllQuery, ConstScoreQuery, EnableScoring, Query, Weight};
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
    let algorithm = context.definition.vector_search.algorithm(profile);
    let metric = algorithm.map_or(Metric::Cosine, |it| it.metric);
    let graph = algorithm.and_then(|it| it.graph).filter(|_| !query.exhaustive);
    let least = query.threshold.map_or(Score::MIN, |it| least_score(metric, it));
    let mut nearest = Nearest { heap: BinaryHeap::new(), k: query.k, least };
    let probe = Probe::new(metric, &query.vector);
    let before = request.vector_filter_mode == VectorFilterMode::PreFilter;
    for (number, shard) in context.shards.iter().enumerate() {
        let field = shard.physical.leaf(path).and_then(|it| it.vector);
        let Some(field) = field else { continue };
        let filter = if before { compiled.filter_query(&shard.physical)? } else { None };
        let breadth = graph.map(|it| it.ef_search.max(query.k));
        let scan = Scan { number, shard, field, probe: &probe, breadth };
        scan.run(filter.as_deref(), &mut nearest)?;
    }
    let mut candidates: Vec<Candidate> = nearest.heap.into_iter().map(|it| it.0).collect();
    candidates.sort_by(Candidate::compare);
    Ok(candidates)
}

/// The score that documents have at a threshold.
fn least_score(metric: Metric, threshold: VectorThreshold) -> Score {
    let (least, distance) = match (threshold, metric) {
        (VectorThreshold::Score(least), _) => (least, 0.0),
        // A product that is greater than one is the score itself.
        (VectorThreshold::Similarity(it), Metric::DotProduct) if it > 1.0 => (it, 0.0),
        (VectorThreshold::Similarity(it), Metric::Cosine | Metric::DotProduct) => (1.0, 1.0 - it),
        (VectorThreshold::Similarity(it), Metric::Euclidean | Metric::Hamming) => (1.0, it),
    };
    (least / (1.0 + distance.max(0.0))) as Score
}

/// The best candidates so far; the worst of them lies on top.
struct Nearest {
    heap: BinaryHeap<Worst>,
    k: usize,
    /// Those with a lower score are left out.
    least: Score,
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
        if candidate.score < self.least {
            return;
        }
        if self.heap.len() < self.k {
            self.heap.push(Worst(candidate));
        } else if self.heap.peek().is_some_and(|worst| candidate.score > worst.0.score) {
            self.heap.pop();
            self.heap.push(Worst(candidate));
        }
    }
}

/// Looks for the vectors of a shard that are near to another one.
struct Scan<'a> {
    number: usize,
    shard: &'a ShardSnapshot,
    field: Field,
    probe: &'a Probe<'a>,
    /// How many vectors are kept while a graph is looked around in; none if graphs are not to be used.
    breadth: Option<usize>,
}

impl Scan<'_> {
    fn run(&self, filter: Option<&dyn Query>, nearest: &mut Nearest) -> Result<()> {
        let searcher = &self.shard.searcher;
        let enabled = EnableScoring::disabled_from_searcher(searcher);
        let weight = filter.map(|it| it.weight(enabled)).transpose()?;
        for (segment, reader) in searcher.segment_readers().iter().enumerate() {
            let vectors = SegmentVectors::open(reader, &self.shard.physical.vectors, self.field)?;
            let passing = weight.as_deref().map(|it| passing(it, reader)).transpose()?;
            let mut visit = |doc: DocId| {
                if let Some(vector) = vectors.vector(doc) {
                    let segment_ord = u32::try_from(segment).unwrap_or(u32::MAX);
                    nearest.add(Candidate {
                        keys: Vec::new(),
                        score: score(self.probe, vector),
                        shard: self.number,
                        address: DocAddress { segment_ord, doc_id: doc },
                    });
                }
            };
            match (self.through_graph(reader, &vectors, passing.as_deref()), passing) {
                (Some(found), _) => found.into_iter().for_each(visit),
                (None, Some(passing)) => passing.into_iter().for_each(&mut visit),
                (None, None) => reader.doc_ids_alive().for_each(visit),
            }
        }
        Ok(())
    }

    /// What the graph of a segment finds, if there is one and it costs less than comparing all that pass the filter.
    fn through_graph(
        &self,
        reader: &SegmentReader,
        vectors: &SegmentVectors,
        passing: Option<&[DocId]>,
    ) -> Option<Vec<DocId>> {
        let breadth = self.breadth?;
        let graph: Arc<Graph> = self.shard.graphs.get(reader.segment_id(), self.field)?;
        let all = reader.max_doc() as usize;
        let count = passing.map_or(reader.num_docs() as usize, <[DocId]>::len);
        // Those that do not pass are walked through as well, so the fewer pass, the farther the walk goes.
        if graph.comparisons(breadth).saturating_mul(all) >= count.saturating_mul(count) {
            return None;
        }
        let alive = reader.alive_bitset();
        match passing {
            None => graph.search(vectors, self.probe, breadth, count, &|doc| {
                alive.is_none_or(|it| it.is_alive(doc))
            }),
            Some(passing) => graph.search(vectors, self.probe, breadth, count, &|doc| {
                passing.binary_search(&doc).is_ok()
            }),
        }
    }
}

/// The living documents of a segment that pass a filter, in order.
fn passing(weight: &dyn Weight, reader: &SegmentReader) -> Result<Vec<DocId>> {
    let alive = reader.alive_bitset();
    let mut scorer = weight.scorer(reader, 1.0)?;
    let (mut passing, mut doc) = (Vec::new(), scorer.doc());
    while doc != TERMINATED {
        if alive.is_none_or(|it| it.is_alive(doc)) {
            passing.push(doc);
        }
        doc = scorer.advance();
    }
    Ok(passing)
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
