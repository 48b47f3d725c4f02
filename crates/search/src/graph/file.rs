//! A graph as bytes. All numbers are 32-bit little-endian: the layout, the parameters, the number of documents, the entry,
//! the lengths, and for each layer its documents and links. A checksum of all of it is at the end: a file that was cut off
//! or changed is of no use, and the graph is built again.

use super::{Graph, Layer, NONE, Parameters};
use crate::definition::Metric;
use xxhash_rust::xxh3::xxh3_64;

/// Raised when the same vectors make another graph, or it is written differently.
const LAYOUT: u32 = 1;

/// Bytes of the checksum.
const SUM_BYTES: usize = 8;

fn number_of(metric: Metric) -> u32 {
    match metric {
        Metric::Cosine => 0,
        Metric::Euclidean => 1,
        Metric::DotProduct => 2,
        Metric::Hamming => 3,
    }
}

/// What a graph must begin with to be the one that is wanted.
fn head(parameters: Parameters, documents: u32) -> [u32; 5] {
    let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let Parameters { metric, m, ef_construction } = parameters;
    [LAYOUT, number_of(metric), short(m), short(ef_construction), documents]
}

impl Graph {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let documents = self.layers.first().map_or(0, |it| it.links.len() / it.width.max(1));
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut words = head(self.parameters, count(documents)).to_vec();
        words.extend([self.entry.unwrap_or(NONE), count(self.lengths.len())]);
        words.extend(self.lengths.iter().map(|it| it.to_bits()));
        words.push(count(self.layers.len()));
        for layer in &self.layers {
            if let Some(docs) = &layer.docs {
                words.push(count(docs.len()));
                words.extend(docs);
            }
            words.extend(&layer.links);
        }
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        let sum = xxh3_64(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// The graph of these parameters and as many documents; none if the bytes are something else.
    pub(crate) fn from_bytes(
        bytes: &[u8],
        parameters: Parameters,
        documents: u32,
    ) -> Option<Graph> {
        let (body, sum) = bytes.split_last_chunk::<SUM_BYTES>()?;
        if xxh3_64(body) != u64::from_le_bytes(*sum) {
            return None;
        }
        let (words, _) = body.as_chunks::<4>();
        let mut words = words.iter().map(|it| u32::from_le_bytes(*it));
        for expected in head(parameters, documents) {
            if words.next()? != expected {
                return None;
            }
        }
        let entry = Some(words.next()?).filter(|it| *it != NONE);
        // The checksum vouches for what follows: it is as it was written.
        let mut take = |count: usize| {
            let taken: Vec<u32> = words.by_ref().take(count).collect();
            (taken.len() == count).then_some(taken)
        };
        let count = take(1)?[0] as usize;
        let lengths = take(count)?.into_iter().map(f32::from_bits).collect();
        let count = take(1)?[0] as usize;
        let mut layers = Vec::new();
        for number in 0..count {
            let width = parameters.width(number);
            let docs = match number {
                0 => None,
                _ => {
                    let count = take(1)?[0] as usize;
                    Some(take(count)?)
                }
            };
            let documents = docs.as_ref().map_or(documents as usize, Vec::len);
            layers.push(Layer { docs, width, links: take(documents.checked_mul(width)?)? });
        }
        Some(Graph { parameters, entry, layers, lengths })
    }
}
