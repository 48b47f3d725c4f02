//! The best documents of one shard, with counts and facets of all that match.

use super::facets::{FacetCounts, FacetPlan, SegmentFacet};
use super::order::{Key, Order, SegmentKeys};
use super::profile::{Functions, SegmentFunctions};
use crate::error::Result;
use crate::index::ShardSnapshot;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tantivy::index::SegmentReader;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring, Query, Weight};
use tantivy::{DocAddress, DocId, DocSet, Score};

/// What is asked of each shard.
pub(crate) struct Plan {
    pub(crate) query: Box<dyn Query>,
    pub(crate) order: Order,
    /// How many documents are wanted, those that are skipped included.
    pub(crate) limit: usize,
    pub(crate) count: bool,
    pub(crate) facets: Vec<FacetPlan>,
    pub(crate) functions: Option<Functions>,
}

impl Plan {
    /// A plan for the best documents of a query alone.
    pub(crate) fn top(query: Box<dyn Query>, order: Order, limit: usize) -> Plan {
        Plan { query, order, limit, count: false, facets: Vec::new(), functions: None }
    }

    /// Whether documents that cannot be among the best may be left out unseen.
    fn prunes(&self) -> bool {
        self.order.clauses.is_empty()
            && !self.count
            && self.facets.is_empty()
            && self.functions.is_none()
    }
}

/// A document that may be on the page.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) keys: Vec<Key>,
    pub(crate) score: Score,
    pub(crate) shard: usize,
    pub(crate) address: DocAddress,
}

impl Candidate {
    /// The order of candidates of all shards: the best come first.
    pub(crate) fn compare(&self, other: &Candidate) -> Ordering {
        let by_keys = self.keys.cmp(&other.keys);
        let by_score = other.score.total_cmp(&self.score);
        let place = |it: &Candidate| (it.shard, it.address);
        let ordered = if self.keys.is_empty() { by_score } else { by_keys };
        ordered.then(by_score).then(place(self).cmp(&place(other)))
    }
}

/// What a shard answers.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) count: u64,
    pub(crate) facets: Vec<FacetCounts>,
}

/// Runs a plan on a shard. Without statistics of all shards the shard's own are used.
pub(crate) fn collect(
    number: usize,
    snapshot: &ShardSnapshot,
    plan: &Plan,
    statistics: Option<&dyn Bm25StatisticsProvider>,
) -> Result<Collected> {
    let searcher = &snapshot.searcher;
    let scoring = plan.order.by_score();
    let enabled = match statistics {
        _ if !scoring => EnableScoring::disabled_from_searcher(searcher),
        Some(provider) => EnableScoring::enabled_from_statistics_provider(provider, searcher),
        None => EnableScoring::enabled_from_searcher(searcher),
    };
    let weight = plan.query.weight(enabled)?;
    let facets = plan.facets.iter().map(FacetPlan::counts).collect();
    let mut collected = Collected { facets, ..Collected::default() };
    let mut scores = Scores::new(plan.limit);
    for (segment, reader) in searcher.segment_readers().iter().enumerate() {
        let segment = u32::try_from(segment).unwrap_or(u32::MAX);
        if plan.prunes() {
            scores.prune(weight.as_ref(), reader, segment)?;
            continue;
        }
        let mut run = SegmentRun::open(plan, snapshot, reader)?;
        run.collect(weight.as_ref(), reader, scoring)?;
        run.finish(number, segment, &mut collected)?;
    }
    collected.candidates.extend(scores.finish(number));
    Ok(collected)
}

/// Gives the documents of a page their scores where something else has ordered them.
pub(crate) struct Rescoring<'a> {
    pub(crate) query: &'a dyn Query,
    pub(crate) functions: Option<&'a Functions>,
}

impl Rescoring<'_> {
    pub(crate) fn run(
        &self,
        number: usize,
        snapshot: &ShardSnapshot,
        statistics: Option<&dyn Bm25StatisticsProvider>,
        page: &mut [Candidate],
    ) -> Result<()> {
        let searcher = &snapshot.searcher;
        let enabled = match statistics {
            Some(provider) => EnableScoring::enabled_from_statistics_provider(provider, searcher),
            None => EnableScoring::enabled_from_searcher(searcher),
        };
        let weight = self.query.weight(enabled)?;
        let mut mine: Vec<&mut Candidate> =
            page.iter_mut().filter(|it| it.shard == number).collect();
        mine.sort_by_key(|it| it.address);
        for group in mine.chunk_by_mut(|a, b| a.address.segment_ord == b.address.segment_ord) {
            let reader = searcher.segment_reader(group[0].address.segment_ord);
            let mut scorer = weight.scorer(reader, 1.0)?;
            let functions = self.functions.map(|it| it.open(&snapshot.physical, reader));
            let mut functions = functions.transpose()?;
            for candidate in group {
                let doc = candidate.address.doc_id;
                if scorer.doc() <= doc && scorer.seek(doc) == doc {
                    let score = scorer.score();
                    candidate.score = match &mut functions {
                        Some(functions) => functions.apply(doc, score),
                        None => score,
                    };
                }
            }
        }
        Ok(())
    }
}

/// The best documents by score alone.
struct Scores {
    limit: usize,
    heap: BinaryHeap<Scored>,
}

#[derive(PartialEq)]
struct Scored {
    score: Score,
    address: DocAddress,
}

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Scored) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scored {
    /// The worst is the greatest, so that it lies on top of the heap.
    fn cmp(&self, other: &Scored) -> Ordering {
        other.score.total_cmp(&self.score).then(self.address.cmp(&other.address))
    }
}

impl Scores {
    fn new(limit: usize) -> Scores {
        Scores { limit, heap: BinaryHeap::new() }
    }

    fn threshold(&self) -> Score {
        if self.heap.len() < self.limit {
            return Score::MIN;
        }
        self.heap.peek().map_or(Score::MAX, |it| it.score)
    }

    fn prune(&mut self, weight: &dyn Weight, reader: &SegmentReader, segment: u32) -> Result<()> {
        if self.limit == 0 {
            return Ok(());
        }
        let alive = reader.alive_bitset();
        weight.for_each_pruning(self.threshold(), reader, &mut |doc, score| {
            if alive.is_none_or(|it| it.is_alive(doc)) {
                let address = DocAddress { segment_ord: segment, doc_id: doc };
                let scored = Scored { score, address };
                if self.heap.len() < self.limit {
                    self.heap.push(scored);
                } else if self.heap.peek().is_some_and(|worst| scored < *worst) {
                    self.heap.pop();
                    self.heap.push(scored);
                }
            }
            self.threshold()
        })?;
        Ok(())
    }

    fn finish(self, shard: usize) -> impl Iterator<Item = Candidate> {
        self.heap.into_iter().map(move |it| Candidate {
            keys: Vec::new(),
            score: it.score,
            shard,
            address: it.address,
        })
    }
}

/// One segment while its documents are looked at.
struct SegmentRun<'a> {
    plan: &'a Plan,
    keys: SegmentKeys,
    functions: Option<SegmentFunctions>,
    facets: Vec<SegmentFacet>,
    heap: BinaryHeap<Kept>,
    count: u64,
}

/// A document with the keys it has in its segment; the worst is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    keys: Vec<u128>,
    doc: DocId,
    score_bits: u32,
}

impl<'a> SegmentRun<'a> {
    fn open(
        plan: &'a Plan,
        snapshot: &ShardSnapshot,
        reader: &SegmentReader,
    ) -> Result<SegmentRun<'a>> {
        let keys = SegmentKeys::open(&plan.order, &snapshot.physical, reader)?;
        let functions = plan.functions.as_ref();
        let functions = functions.map(|it| it.open(&snapshot.physical, reader)).transpose()?;
        let facets = plan.facets.iter().map(|it| it.open(&snapshot.physical, reader));
        let facets = facets.collect::<Result<_>>()?;
        Ok(SegmentRun { plan, keys, functions, facets, heap: BinaryHeap::new(), count: 0 })
    }

    fn collect(
        &mut self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        scoring: bool,
    ) -> Result<()> {
        let alive = reader.alive_bitset();
        if scoring {
            weight.for_each(reader, &mut |doc, score| {
                if alive.is_none_or(|it| it.is_alive(doc)) {
                    self.add(doc, score);
                }
            })?;
        } else {
            weight.for_each_no_score(reader, &mut |docs| {
                for doc in docs {
                    if alive.is_none_or(|it| it.is_alive(*doc)) {
                        self.add(*doc, 1.0);
                    }
                }
            })?;
        }
        Ok(())
    }

    fn add(&mut self, doc: DocId, score: Score) {
        self.count += 1;
        for facet in &mut self.facets {
            facet.add(doc);
        }
        if self.plan.limit == 0 {
            return;
        }
        let score = match &mut self.functions {
            Some(functions) => functions.apply(doc, score),
            None => score,
        };
        let full = self.heap.len() >= self.plan.limit;
        let first = match self.keys.len() {
            // A lower score is worse, so it has the greater key.
            0 => u128::from(!score_key(score)),
            _ => self.keys.raw(0, doc, score),
        };
        if full && self.heap.peek().is_some_and(|worst| worst.keys[0] < first) {
            return;
        }
        let mut keys = vec![first];
        keys.extend((1..self.keys.len()).map(|clause| self.keys.raw(clause, doc, score)));
        let kept = Kept { keys, doc, score_bits: score.to_bits() };
        if !full {
            self.heap.push(kept);
        } else if self.heap.peek().is_some_and(|worst| kept < *worst) {
            self.heap.pop();
            self.heap.push(kept);
        }
    }

    fn finish(self, shard: usize, segment: u32, collected: &mut Collected) -> Result<()> {
        collected.count += self.count;
        for (facet, counts) in self.facets.into_iter().zip(&mut collected.facets) {
            facet.finish(counts)?;
        }
        for kept in self.heap {
            let keys = (0..self.keys.len())
                .map(|clause| self.keys.comparable(clause, kept.keys[clause]))
                .collect();
            collected.candidates.push(Candidate {
                keys,
                score: Score::from_bits(kept.score_bits),
                shard,
                address: DocAddress { segment_ord: segment, doc_id: kept.doc },
            });
        }
        // Every segment keeps its best; more than the wanted ones of all of them are of no use.
        if collected.candidates.len() > 2 * self.plan.limit {
            collected.candidates.sort_by(Candidate::compare);
            collected.candidates.truncate(self.plan.limit);
        }
        Ok(())
    }
}

/// A score as a number with the same order.
fn score_key(score: Score) -> u64 {
    let bits = score.to_bits();
    u64::from(if bits >> 31 == 0 { bits | (1 << 31) } else { !bits })
}
