//! Building a graph: one vector after another is linked with the nearest of those that are there already.

use super::distance::length_of;
use super::walk::{Near, Seen, Walk};
use super::{Graph, Layer, Probe, Vectors};
use crate::definition::Metric;
use std::sync::atomic::{AtomicBool, Ordering};
use tantivy::DocId;

/// The lowest layer has so many times `m` links for each vector. The usual factor is two; with the service's default of
/// `m = 4` that misses too many of the nearest among random vectors.
const LOWEST_FACTOR: usize = 4;

/// More layers are of no use for any number of documents.
const LAYERS_MAX: usize = 16;

/// What a graph is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) metric: Metric,
    /// Links of each vector in the higher layers.
    pub(crate) m: usize,
    /// How many vectors are looked at to find the links of a new one.
    pub(crate) ef_construction: usize,
}

impl Parameters {
    pub(super) fn width(self, layer: usize) -> usize {
        if layer == 0 { self.m * LOWEST_FACTOR } else { self.m }
    }
}

/// A number without order, made of another one.
pub(super) fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The highest layer of a document: each is one in `m` times higher than the one before. It depends on the number alone.
fn height(doc: DocId, m: usize) -> usize {
    let (mut chance, m) = (mixed(u64::from(doc).wrapping_add(0x9e37_79b9_7f4a_7c15)), m as u64);
    let mut height = 0;
    while chance.is_multiple_of(m) && height < LAYERS_MAX - 1 {
        chance /= m;
        height += 1;
    }
    height
}

impl Graph {
    /// Builds the graph of all vectors. None if it was stopped.
    pub(crate) fn build(
        vectors: &impl Vectors,
        parameters: Parameters,
        stop: &AtomicBool,
    ) -> Option<Graph> {
        let documents = vectors.documents();
        let lengths = match parameters.metric {
            Metric::Cosine => {
                (0..documents).map(|doc| vectors.vector(doc).map_or(0.0, length_of)).collect()
            }
            Metric::DotProduct | Metric::Euclidean | Metric::Hamming => Vec::new(),
        };
        let lowest = Layer::lowest(documents, parameters.width(0));
        let graph = Graph { parameters, entry: None, layers: vec![lowest], lengths };
        let mut builder = Builder { graph, vectors, seen: Some(Seen::new(documents)) };
        for doc in 0..documents {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            builder.insert(doc);
        }
        Some(builder.graph)
    }
}

struct Builder<'a, V> {
    graph: Graph,
    vectors: &'a V,
    seen: Option<Seen>,
}

impl<V: Vectors> Builder<'_, V> {
    fn insert(&mut self, doc: DocId) {
        let Some(vector) = self.vectors.vector(doc) else { return };
        let parameters = self.graph.parameters;
        let numbers = numbers_of(vector);
        let probe = Probe::new(parameters.metric, &numbers);
        let (height, top) = (height(doc, parameters.m), self.graph.layers.len() - 1);
        let found = self.near_in_layers(&probe, height.min(top));
        for layer in 0..=height {
            if layer == self.graph.layers.len() {
                self.graph.layers.push(Layer::higher(parameters.width(layer)));
            }
            self.graph.layers[layer].add(doc);
        }
        for (layer, near) in found {
            let chosen = self.choose(near, parameters.width(layer));
            self.graph.layers[layer].set_links(doc, &chosen);
            for other in chosen {
                self.link_back(layer, other, doc);
            }
        }
        if height > top || self.graph.entry.is_none() {
            self.graph.entry = Some(doc);
        }
    }

    /// The vectors near to a new one, in every layer up to its height.
    fn near_in_layers(&mut self, probe: &Probe<'_>, height: usize) -> Vec<(usize, Vec<Near>)> {
        let Some(entry) = self.graph.entry else { return Vec::new() };
        let seen = self.seen.take().unwrap_or_default();
        let mut walk = Walk::again(&self.graph, self.vectors, seen);
        let mut from = vec![self.graph.near(self.vectors, probe, entry)];
        let mut found = Vec::new();
        for layer in (0..self.graph.layers.len()).rev() {
            let is_linked = layer <= height;
            let breadth = if is_linked { self.graph.parameters.ef_construction } else { 1 };
            // Without a limit on comparisons there always is an answer.
            from = walk.around(probe, layer, &from, breadth, &|_| true).unwrap_or(from);
            if is_linked {
                found.push((layer, from.clone()));
            }
        }
        self.seen = Some(walk.into_seen());
        found
    }

    /// Links a vector to a new one, and leaves its worst link out if it has no place.
    fn link_back(&mut self, layer: usize, from: DocId, to: DocId) {
        let width = self.graph.parameters.width(layer);
        let links = self.graph.layers[layer].links(from);
        if links.len() < width {
            let links = [links, &[to]].concat();
            self.graph.layers[layer].set_links(from, &links);
            return;
        }
        let Some(vector) = self.vectors.vector(from) else { return };
        let numbers = numbers_of(vector);
        let probe = Probe::new(self.graph.parameters.metric, &numbers);
        let all = links.iter().chain([&to]);
        let mut near: Vec<Near> =
            all.map(|doc| self.graph.near(self.vectors, &probe, *doc)).collect();
        near.sort();
        let chosen = self.choose(near, width);
        self.graph.layers[layer].set_links(from, &chosen);
    }

    /// Chooses links among the nearest: first those that are nearer to the vector than to any other link, so that links lead
    /// in all directions, and then the nearest of the rest.
    fn choose(&self, near: Vec<Near>, width: usize) -> Vec<DocId> {
        if near.len() <= width {
            return near.into_iter().map(|it| it.doc).collect();
        }
        let (mut chosen, mut rest) = (Vec::with_capacity(width), Vec::new());
        for candidate in near {
            if chosen.len() == width {
                break;
            }
            let Some(vector) = self.vectors.vector(candidate.doc) else { continue };
            let numbers = numbers_of(vector);
            let probe = Probe::new(self.graph.parameters.metric, &numbers);
            let is_hidden = |other: &DocId| {
                self.graph.near(self.vectors, &probe, *other).distance < candidate.distance
            };
            match chosen.iter().any(is_hidden) {
                true => rest.push(candidate.doc),
                false => chosen.push(candidate.doc),
            }
        }
        let missing = width - chosen.len();
        chosen.extend(rest.into_iter().take(missing));
        chosen
    }
}

fn numbers_of(vector: &[u8]) -> Vec<f32> {
    let (numbers, _) = vector.as_chunks::<4>();
    numbers.iter().map(|it| f32::from_le_bytes(*it)).collect()
}
