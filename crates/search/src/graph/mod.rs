//! A graph of neighbours (HNSW) over the vectors of one segment: finds vectors that are near to another one without comparing
//! all of them, and nearly always the nearest.
//!
//! The lowest layer has every vector, each higher one about one in `m` of those below. A search walks from the highest layer
//! down, always towards the query, and looks around in the lowest one. The graph is derived from the vectors alone: the same
//! vectors and parameters make the same graph.

mod build;
mod distance;
mod file;
mod walk;

pub(crate) use build::Parameters;
pub(crate) use distance::{Probe, score};

use tantivy::DocId;

/// What stands in an unused place of a list of links.
const NONE: DocId = DocId::MAX;

/// The vectors that a graph is over, by the numbers of their documents.
pub(crate) trait Vectors {
    /// The number of documents.
    fn documents(&self) -> u32;

    /// The numbers of a document's vector, 32-bit little-endian floats; none if it has no vector.
    fn vector(&self, doc: DocId) -> Option<&[u8]>;
}

/// The links of all documents of one layer, as many places for each.
#[derive(Clone, Debug, PartialEq)]
struct Layer {
    /// The documents that are in it, in order; none in the lowest layer, which has places for all.
    docs: Option<Vec<DocId>>,
    width: usize,
    links: Vec<DocId>,
}

impl Layer {
    fn lowest(documents: u32, width: usize) -> Layer {
        Layer { docs: None, width, links: vec![NONE; documents as usize * width] }
    }

    fn higher(width: usize) -> Layer {
        Layer { docs: Some(Vec::new()), width, links: Vec::new() }
    }

    fn place(&self, doc: DocId) -> Option<usize> {
        match &self.docs {
            None => Some(doc as usize),
            Some(docs) => docs.binary_search(&doc).ok(),
        }
    }

    /// Makes place for a document. Documents come in order.
    fn add(&mut self, doc: DocId) {
        if let Some(docs) = &mut self.docs {
            docs.push(doc);
            self.links.resize(self.links.len() + self.width, NONE);
        }
    }

    fn links(&self, doc: DocId) -> &[DocId] {
        let Some(place) = self.place(doc) else { return &[] };
        let all = &self.links[place * self.width..(place + 1) * self.width];
        let used = all.iter().position(|it| *it == NONE).unwrap_or(all.len());
        &all[..used]
    }

    fn set_links(&mut self, doc: DocId, links: &[DocId]) {
        let Some(place) = self.place(doc) else { return };
        let all = &mut self.links[place * self.width..(place + 1) * self.width];
        all.fill(NONE);
        for (place, link) in all.iter_mut().zip(links) {
            *place = *link;
        }
    }
}

/// The graph of one field of one segment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Graph {
    parameters: Parameters,
    /// Where every walk begins; none without vectors.
    entry: Option<DocId>,
    /// The lowest first.
    layers: Vec<Layer>,
    /// The length of every vector, where the metric is the angle.
    lengths: Vec<f32>,
}

impl Graph {
    /// How many vectors a search compares about, if nothing is filtered.
    pub(crate) fn comparisons(&self, breadth: usize) -> usize {
        breadth.saturating_mul(self.layers.first().map_or(0, |it| it.width))
    }

    /// The documents near to a query that are accepted, the nearest first; `breadth` of them are kept while it looks around.
    /// None if it would have compared more than `comparisons_max` vectors.
    pub(crate) fn search(
        &self,
        vectors: &impl Vectors,
        probe: &Probe<'_>,
        breadth: usize,
        comparisons_max: usize,
        accepts: &dyn Fn(DocId) -> bool,
    ) -> Option<Vec<DocId>> {
        let Some(entry) = self.entry else { return Some(Vec::new()) };
        let mut walk = walk::Walk::new(self, vectors, comparisons_max);
        let mut from = vec![self.near(vectors, probe, entry)];
        for layer in (1..self.layers.len()).rev() {
            from = walk.around(probe, layer, &from, 1, &|_| true)?;
        }
        let found = walk.around(probe, 0, &from, breadth, accepts)?;
        Some(found.into_iter().map(|it| it.doc).collect())
    }

    fn near(&self, vectors: &impl Vectors, probe: &Probe<'_>, doc: DocId) -> walk::Near {
        let distance = vectors.vector(doc).map(|it| probe.distance(it, || self.length(doc)));
        walk::Near { distance: distance.unwrap_or(f32::INFINITY), doc }
    }

    fn length(&self, doc: DocId) -> f32 {
        self.lengths.get(doc as usize).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Metric;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    /// Vectors around some centres, as those of texts lie; every document whose number ends in 7 has none.
    struct Clouds {
        dimensions: usize,
        bytes: Vec<u8>,
    }

    struct Chance(u64);

    impl Chance {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            build::mixed(self.0)
        }

        /// Between -1 and 1, more often near to 0.
        fn number(&mut self) -> f32 {
            let unit = |it: u64| (it >> 40) as f32 / (1 << 24) as f32;
            unit(self.next()) - unit(self.next())
        }
    }

    impl Clouds {
        fn new(documents: u32, dimensions: usize, seed: u64) -> Clouds {
            let mut chance = Chance(seed);
            let mut made = |count| (0..count).map(|_| chance.number()).collect::<Vec<f32>>();
            let centres: Vec<Vec<f32>> = (0..50).map(|_| made(dimensions)).collect();
            let mut bytes = Vec::new();
            for doc in 0..documents {
                let (centre, noise) = (&centres[doc as usize * 7 % 50], made(dimensions));
                for (centre, noise) in centre.iter().zip(noise) {
                    let number = if doc % 10 == 7 { f32::NAN } else { centre + noise * 0.5 };
                    bytes.extend(number.to_le_bytes());
                }
            }
            Clouds { dimensions, bytes }
        }

        fn numbers(&self, doc: DocId) -> Vec<f32> {
            let width = self.dimensions * 4;
            let bytes = &self.bytes[doc as usize * width..(doc as usize + 1) * width];
            let (numbers, _) = bytes.as_chunks();
            numbers.iter().map(|it| f32::from_le_bytes(*it)).collect()
        }
    }

    impl Vectors for Clouds {
        fn documents(&self) -> u32 {
            (self.bytes.len() / self.dimensions / 4) as u32
        }

        fn vector(&self, doc: DocId) -> Option<&[u8]> {
            let width = self.dimensions * 4;
            let bytes = &self.bytes[doc as usize * width..(doc as usize + 1) * width];
            (doc % 10 != 7).then_some(bytes)
        }
    }

    fn parameters(metric: Metric) -> Parameters {
        Parameters { metric, m: 4, ef_construction: 400 }
    }

    /// The share of the true ten nearest that the graph finds, for queries between the vectors.
    fn recall(vectors: &Clouds, graph: &Graph, accepts: &dyn Fn(DocId) -> bool) -> f64 {
        let queries = Clouds::new(50, vectors.dimensions, 99);
        let (mut found, mut all) = (0, 0);
        for number in (0..50).filter(|it| it % 10 != 7) {
            let near = vectors.numbers(number * 13 / 10 * 10);
            let away = queries.numbers(number);
            let query: Vec<f32> = near.iter().zip(away).map(|(a, b)| a + b * 0.3).collect();
            let probe = Probe::new(graph.parameters.metric, &query);
            let living = (0..vectors.documents()).filter(|doc| accepts(*doc));
            let mut exact: Vec<(f32, DocId)> = living
                .filter_map(|doc| Some((-score(&probe, vectors.vector(doc)?), doc)))
                .collect();
            exact.sort_by(|one, two| one.0.total_cmp(&two.0).then(one.1.cmp(&two.1)));
            let nearest: BTreeSet<DocId> = exact.iter().take(10).map(|it| it.1).collect();
            let answer = graph.search(vectors, &probe, 500, usize::MAX, accepts).unwrap();
            assert!(answer.iter().all(|doc| accepts(*doc) && doc % 10 != 7));
            found += answer.iter().take(10).filter(|doc| nearest.contains(doc)).count();
            all += nearest.len();
        }
        found as f64 / all as f64
    }

    #[test]
    fn nearly_all_of_the_nearest_are_found_by_every_metric_and_under_filters() {
        let vectors = Clouds::new(4_000, 24, 1);
        let go_on = AtomicBool::new(false);
        for metric in [Metric::Cosine, Metric::Euclidean, Metric::DotProduct] {
            let graph = Graph::build(&vectors, parameters(metric), &go_on).unwrap();
            let all = recall(&vectors, &graph, &|_| true);
            assert!(all >= 0.95, "{metric:?}: {all}");
            let third = recall(&vectors, &graph, &|doc| doc % 3 == 0);
            assert!(third >= 0.95, "{metric:?} with a filter: {third}");
        }
    }

    #[test]
    fn the_same_vectors_make_the_same_graph_which_survives_its_file() {
        let vectors = Clouds::new(600, 9, 2);
        let go_on = AtomicBool::new(false);
        let graph = Graph::build(&vectors, parameters(Metric::Cosine), &go_on).unwrap();
        let again = Graph::build(&vectors, parameters(Metric::Cosine), &go_on).unwrap();
        assert!(graph == again && graph.layers.len() > 2);
        let bytes = graph.to_bytes();
        let read = |bytes: &[u8], it| Graph::from_bytes(bytes, it, vectors.documents());
        assert_eq!(read(&bytes, graph.parameters), Some(graph.clone()));
        assert_eq!(read(&bytes, parameters(Metric::Euclidean)), None, "of another metric");
        assert_eq!(Graph::from_bytes(&bytes, graph.parameters, 599), None, "of other documents");
        for at in (0..bytes.len()).step_by(97) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(read(&wrong, graph.parameters), None, "byte {at}");
            assert_eq!(read(&bytes[..at], graph.parameters), None, "cut at {at}");
        }
        assert!(Graph::build(&vectors, graph.parameters, &AtomicBool::new(true)).is_none());
    }

    #[test]
    fn a_search_that_would_compare_too_many_gives_up_and_one_without_vectors_finds_nothing() {
        let vectors = Clouds::new(500, 8, 3);
        let go_on = AtomicBool::new(false);
        let graph = Graph::build(&vectors, parameters(Metric::Euclidean), &go_on).unwrap();
        let query = [0.1; 8];
        let probe = Probe::new(Metric::Euclidean, &query);
        let search = |max| graph.search(&vectors, &probe, 100, max, &|_| true);
        assert!(search(20).is_none() && search(500).is_some_and(|found| found.len() == 100));
        let empty = Clouds { dimensions: 8, bytes: Vec::new() };
        let graph = Graph::build(&empty, parameters(Metric::Euclidean), &go_on).unwrap();
        let found = graph.search(&empty, &probe, 100, 10, &|_| true);
        assert_eq!(found, Some(Vec::new()));
    }
}
