//! Walking through a graph towards a vector.

use super::{Graph, Probe, Vectors};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use tantivy::DocId;

/// A document and its distance. The nearer one is less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    pub(super) distance: f32,
    pub(super) doc: DocId,
}

impl PartialEq for Near {
    fn eq(&self, other: &Near) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Near) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Near) -> Ordering {
        self.distance.total_cmp(&other.distance).then(self.doc.cmp(&other.doc))
    }
}

/// The documents that a walk has seen: a bit for each, and which are set, so that they can be cleared again.
#[derive(Default)]
pub(super) struct Seen {
    bits: Vec<u64>,
    docs: Vec<DocId>,
}

impl Seen {
    pub(super) fn new(documents: u32) -> Seen {
        Seen { bits: vec![0; documents as usize / 64 + 1], docs: Vec::new() }
    }

    fn clear(&mut self) {
        for doc in self.docs.drain(..) {
            self.bits[doc as usize / 64] = 0;
        }
    }

    /// Whether the document is new.
    fn add(&mut self, doc: DocId) -> bool {
        let (word, bit) = (doc as usize / 64, 1_u64 << (doc % 64));
        let is_new = self.bits.get(word).is_some_and(|it| it & bit == 0);
        if is_new {
            self.bits[word] |= bit;
            self.docs.push(doc);
        }
        is_new
    }
}

pub(super) struct Walk<'a, V> {
    graph: &'a Graph,
    vectors: &'a V,
    seen: Seen,
    comparisons_left: usize,
}

impl<'a, V: Vectors> Walk<'a, V> {
    pub(super) fn new(graph: &'a Graph, vectors: &'a V, comparisons_max: usize) -> Walk<'a, V> {
        let seen = Seen::new(vectors.documents());
        Walk { graph, vectors, seen, comparisons_left: comparisons_max }
    }

    /// The same with what an earlier walk has used, so that it need not be made anew.
    pub(super) fn again(graph: &'a Graph, vectors: &'a V, seen: Seen) -> Walk<'a, V> {
        Walk { graph, vectors, seen, comparisons_left: usize::MAX }
    }

    pub(super) fn into_seen(self) -> Seen {
        self.seen
    }

    /// The nearest documents of a layer that can be reached from some, at most `breadth`, the nearest first. Documents that
    /// are not accepted are walked through and left out. None if that takes too many comparisons.
    pub(super) fn around(
        &mut self,
        probe: &Probe<'_>,
        layer: usize,
        from: &[Near],
        breadth: usize,
        accepts: &dyn Fn(DocId) -> bool,
    ) -> Option<Vec<Near>> {
        self.seen.clear();
        let mut waiting = BinaryHeap::new();
        let mut found: BinaryHeap<Near> = BinaryHeap::new();
        for near in from {
            if self.seen.add(near.doc) {
                waiting.push(Reverse(*near));
                if accepts(near.doc) {
                    found.push(*near);
                }
            }
        }
        while let Some(Reverse(next)) = waiting.pop() {
            let farthest = found.peek().map_or(f32::INFINITY, |it| it.distance);
            if found.len() >= breadth && next.distance > farthest {
                break;
            }
            for doc in self.graph.layers[layer].links(next.doc) {
                if !self.seen.add(*doc) {
                    continue;
                }
                self.comparisons_left = self.comparisons_left.checked_sub(1)?;
                let near = self.graph.near(self.vectors, probe, *doc);
                let farthest = found.peek().map_or(f32::INFINITY, |it| it.distance);
                if found.len() >= breadth && near.distance >= farthest {
                    continue;
                }
                waiting.push(Reverse(near));
                if accepts(*doc) {
                    found.push(near);
                    if found.len() > breadth {
                        found.pop();
                    }
                }
            }
        }
        Some(found.into_sorted_vec())
    }
}
