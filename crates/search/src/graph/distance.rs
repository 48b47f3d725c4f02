//! How far two vectors are from each other, and the score that this gives.

use crate::definition::Metric;
use tantivy::Score;

/// Sums that are added up beside each other, so that the processor can do several at once.
const LANES: usize = 16;

/// A vector that others are compared with.
pub(crate) struct Probe<'a> {
    metric: Metric,
    numbers: &'a [f32],
    length: f32,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(metric: Metric, numbers: &'a [f32]) -> Probe<'a> {
        let squares: f32 = numbers.iter().map(|it| it * it).sum();
        Probe { metric, numbers, length: squares.sqrt() }
    }

    /// The distance to another vector; `length` gives its length where the metric needs it.
    pub(super) fn distance(&self, other: &[u8], length: impl FnOnce() -> f32) -> f32 {
        match self.metric {
            Metric::Cosine => {
                let both = self.length * length();
                if both == 0.0 { 1.0 } else { 1.0 - self.sum(other, |a, b| a * b) / both }
            }
            Metric::DotProduct => 1.0 - self.sum(other, |a, b| a * b),
            Metric::Euclidean => self.sum(other, |a, b| (a - b) * (a - b)).sqrt(),
            Metric::Hamming => self.sum(other, |a, b| f32::from(u8::from(a != b))),
        }
    }

    /// Adds up a function of the numbers that stand at the same places.
    fn sum(&self, other: &[u8], function: impl Fn(f32, f32) -> f32) -> f32 {
        let (other, _) = other.as_chunks::<4>();
        let (own_blocks, own_rest) = self.numbers.as_chunks::<LANES>();
        let (other_blocks, other_rest) = other.as_chunks::<LANES>();
        let mut sums = [0.0_f32; LANES];
        for (own, other) in own_blocks.iter().zip(other_blocks) {
            for lane in 0..LANES {
                sums[lane] += function(own[lane], f32::from_le_bytes(other[lane]));
            }
        }
        let rest = own_rest.iter().zip(other_rest);
        let rest: f32 = rest.map(|(a, b)| function(*a, f32::from_le_bytes(*b))).sum();
        sums.iter().sum::<f32>() + rest
    }
}

/// The length of a vector.
pub(super) fn length_of(vector: &[u8]) -> f32 {
    let (numbers, _) = vector.as_chunks::<4>();
    let squares = numbers.iter().map(|it| f32::from_le_bytes(*it)).map(|it| it * it);
    squares.sum::<f32>().sqrt()
}

/// The score of two vectors: one divided by one more than their distance.
pub(crate) fn score(probe: &Probe<'_>, vector: &[u8]) -> Score {
    let distance = probe.distance(vector, || length_of(vector));
    let score = 1.0 / (1.0 + distance.max(0.0));
    // A greater product than one must still be better.
    match probe.metric {
        Metric::DotProduct if distance < 0.0 => 1.0 - distance,
        _ => score,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_formulas_also_where_blocks_do_not_fit() {
        for count in [1, 15, 16, 17, 40] {
            let own: Vec<f32> = (0..count).map(|it| it as f32 * 0.25 - 2.0).collect();
            let other: Vec<f32> = (0..count).map(|it| 1.0 - (it % 5) as f32).collect();
            let bytes: Vec<u8> = other.iter().flat_map(|it| it.to_le_bytes()).collect();
            let sum = |function: &dyn Fn(f32, f32) -> f32| -> f32 {
                own.iter().zip(&other).map(|(a, b)| function(*a, *b)).sum()
            };
            let dot = sum(&|a, b| a * b);
            let lengths = sum(&|a, _| a * a).sqrt() * sum(&|_, b| b * b).sqrt();
            let cosine = if lengths == 0.0 { 1.0 } else { 1.0 - dot / lengths };
            for (metric, expected) in [
                (Metric::Cosine, cosine),
                (Metric::DotProduct, 1.0 - dot),
                (Metric::Euclidean, sum(&|a, b| (a - b).powi(2)).sqrt()),
                (Metric::Hamming, sum(&|a, b| f32::from(u8::from(a != b)))),
            ] {
                let probe = Probe::new(metric, &own);
                let distance = probe.distance(&bytes, || length_of(&bytes));
                assert!((distance - expected).abs() < 1e-3, "{metric:?} {distance} {expected}");
            }
        }
    }
}
