//! Ranking: ORDER BY RANK with FULLTEXTSCORE, VECTORDISTANCE, and RRF over several of them.
//!
//! A score by BM25 depends on all items, so no function can compute it from one. In ORDER BY RANK the functions give what
//! is known of an item (its evidence), and [`Ranking::scores`] computes the scores when all items are known.

use std::collections::BTreeSet;

use lazuli_value::{Value, ValueRef};

use super::text::{Term, words};
use super::{Call, Function, vector};
use crate::tree::Expression;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("FULLTEXTSCORE", 2, usize::MAX, full_text_score).ranking(),
    Function::new("RRF", 2, usize::MAX, fusion).ranking(),
];

/// The words of a text, and how often each term occurs in it.
pub(super) struct Text {
    words: f64,
    counts: Vec<f64>,
}

impl Text {
    /// Terms that are the same count once.
    pub(super) fn of(text: &str, terms: &[Term]) -> Self {
        let text = words(text);
        let mut seen = BTreeSet::new();
        let count = |term: &Term| if seen.insert(term.clone()) { term.count(&text) } else { 0 };
        let counts = terms.iter().map(count).map(|it| it as f64).collect();
        Self { words: text.len() as f64, counts }
    }

    /// Reads what [`full_text_score`] gives.
    fn read(evidence: ValueRef<'_>) -> Option<Self> {
        let mut numbers = evidence.as_array()?.iter().map(ValueRef::as_f64);
        let words = numbers.next()??;
        Some(Self { words, counts: numbers.collect::<Option<_>>()? })
    }
}

/// What is known of the texts of all items.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Statistics {
    pub(super) documents: f64,
    /// How many words their texts have.
    pub(super) words: f64,
    /// For each term, how many of the texts have it.
    pub(super) hits: Vec<f64>,
}

impl Statistics {
    fn add(&mut self, text: &Text) {
        self.words += text.words;
        self.hits.resize(self.hits.len().max(text.counts.len()), 0.0);
        for (hits, count) in self.hits.iter_mut().zip(&text.counts) {
            *hits += f64::from(u8::from(*count > 0.0));
        }
    }

    /// The score of a text by BM25: the more often rare terms occur in a short text, the higher.
    pub(super) fn score(&self, text: &Text) -> f64 {
        const SATURATION: f64 = 1.2;
        const LENGTH_WEIGHT: f64 = 0.75;
        let average = self.words / self.documents;
        let length = if average > 0.0 { text.words / average } else { 1.0 };
        let weight = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length;
        let parts = text.counts.iter().enumerate().map(|(place, count)| {
            let hits = self.hits.get(place).copied().unwrap_or(0.0);
            let rarity = (1.0 + (self.documents - hits + 0.5) / (hits + 0.5)).ln();
            rarity * count * (SATURATION + 1.0) / (count + SATURATION * weight)
        });
        parts.sum()
    }
}

/// The evidence of a text: its number of words, then how often each term occurs. A text that is none has no words.
fn full_text_score(call: &Call<'_>) -> Option<Value> {
    let terms = (1..call.arguments.len()).map(|place| Term::read(call.value(place)?));
    let terms: Vec<Term> = terms.collect::<Option<_>>()?;
    let text = Text::of(call.string(0).unwrap_or_default(), &terms);
    let numbers = std::iter::once(text.words).chain(text.counts);
    Some(Value::Array(numbers.map(Value::Double).collect()))
}

/// The evidence of all scores; of a score that is undefined it is null.
fn fusion(call: &Call<'_>) -> Option<Value> {
    let all = (0..call.arguments.len()).map(|place| call.value(place));
    let all = all.map(|value| value.map_or(Value::Null, ValueRef::to_value));
    Some(Value::Array(all.collect()))
}

/// One score of a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Score {
    FullText,
    Vector { larger_is_nearer: bool },
}

/// How items are ranked: by one score, or by several of them with their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    scores: Vec<(Score, f64)>,
    is_fused: bool,
}

impl Ranking {
    /// The ranking that an expression of ORDER BY asks for, if it is one.
    pub fn of(expression: &Expression) -> Option<Self> {
        let Expression::Call { function, arguments } = expression else { return None };
        if function.name != "RRF" {
            return Some(Self { scores: vec![(score(expression)?, 1.0)], is_fused: false });
        }
        let (scored, weights) = match arguments.split_last() {
            Some((Expression::Constant(Some(Value::Array(weights))), scored)) => {
                (scored, &weights[..])
            }
            _ => (&arguments[..], &[][..]),
        };
        let weight_of = |place: usize| match weights.get(place) {
            Some(weight) => ValueRef::from(weight).as_f64(),
            None => Some(1.0),
        };
        let scores = scored.iter().enumerate();
        let scores = scores.map(|(place, part)| Some((score(part)?, weight_of(place)?)));
        Some(Self { scores: scores.collect::<Option<_>>()?, is_fused: true })
    }

    /// Whether the values of the expression itself are larger for better items.
    pub fn larger_is_better(&self) -> bool {
        !matches!(self.scores[..], [(Score::Vector { larger_is_nearer: false }, _)])
    }

    /// The scores of items by their evidence; the best item has the highest.
    pub fn scores(&self, evidence: &[Value]) -> Vec<f64> {
        if !self.is_fused {
            let evidence: Vec<_> = evidence.iter().map(|it| Some(ValueRef::from(it))).collect();
            return self.scores.first().map_or_else(Vec::new, |(it, _)| it.of(&evidence));
        }
        let mut fused = vec![0.0; evidence.len()];
        for (place, (score, weight)) in self.scores.iter().enumerate() {
            let part: Vec<_> = evidence.iter().map(|it| ValueRef::from(it).at(place)).collect();
            for (sum, rank) in fused.iter_mut().zip(ranks(&score.of(&part))) {
                *sum += weight / (RANK_SMOOTHING + rank as f64);
            }
        }
        fused
    }
}

/// What is added to a rank before its reciprocal is taken, so that the first ranks do not count for all.
const RANK_SMOOTHING: f64 = 60.0;

fn score(expression: &Expression) -> Option<Score> {
    let Expression::Call { function, arguments } = expression else { return None };
    match function.name {
        "FULLTEXTSCORE" => Some(Score::FullText),
        "VECTORDISTANCE" => {
            let options = match arguments.get(3) {
                Some(Expression::Constant(Some(options))) => Some(ValueRef::from(options)),
                _ => None,
            };
            Some(Score::Vector { larger_is_nearer: vector::larger_is_nearer(options) })
        }
        _ => None,
    }
}

impl Score {
    /// The scores of items; larger is better, and what has no score is worse than all others.
    fn of(self, evidence: &[Option<ValueRef<'_>>]) -> Vec<f64> {
        match self {
            Self::FullText => {
                let texts: Vec<_> = evidence.iter().map(|it| Text::read((*it)?)).collect();
                let mut statistics =
                    Statistics { documents: texts.len() as f64, ..Statistics::default() };
                texts.iter().flatten().for_each(|text| statistics.add(text));
                let scores = texts.iter().map(|text| text.as_ref().map(|it| statistics.score(it)));
                scores.map(|score| score.unwrap_or(f64::NEG_INFINITY)).collect()
            }
            Self::Vector { larger_is_nearer } => {
                let sign = if larger_is_nearer { 1.0 } else { -1.0 };
                let distances = evidence.iter().map(|it| it.and_then(ValueRef::as_f64));
                distances.map(|it| it.map_or(f64::NEG_INFINITY, |it| it * sign)).collect()
            }
        }
    }
}

/// The rank of each score, from one for the highest. Equal scores have the same rank.
fn ranks(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, two| scores[*two].total_cmp(&scores[*one]));
    let mut ranks = vec![0; scores.len()];
    let (mut rank, mut last) = (0, None);
    for (place, item) in order.into_iter().enumerate() {
        if last != Some(scores[item]) {
            rank = place + 1;
            last = Some(scores[item]);
        }
        ranks[item] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{call, find};

    fn text(text: &str, terms: &[&str]) -> Value {
        let mut arguments = vec![Some(text.into())];
        arguments.extend(terms.iter().map(|term| Some((*term).into())));
        call("FULLTEXTSCORE", &arguments).unwrap()
    }

    fn expression(name: &str, arguments: Vec<Expression>) -> Expression {
        Expression::Call { function: find(name).unwrap(), arguments }
    }

    /// The places of the items, the best first.
    fn order(ranking: &Ranking, evidence: &[Value]) -> Vec<usize> {
        let scores = ranking.scores(evidence);
        let mut places: Vec<usize> = (0..scores.len()).collect();
        places.sort_by(|one, two| scores[*two].total_cmp(&scores[*one]));
        places
    }

    #[test]
    fn texts_are_ranked_by_rare_terms_in_few_words() {
        let ranking = Ranking::of(&expression("FULLTEXTSCORE", vec![])).unwrap();
        let terms = ["rare", "common"];
        let evidence = [
            text("rare word", &terms),
            text("common word", &terms),
            text("a rare word among many other words", &terms),
            text("another common word", &terms),
            text("common and rare words", &terms),
            text("a common word and other words", &terms),
            text("nothing of the kind", &terms),
        ];
        let scores = ranking.scores(&evidence);
        assert!(scores[0] > scores[1], "a rare term counts for more: {scores:?}");
        assert!(scores[0] > scores[2], "a short text counts for more: {scores:?}");
        assert!(scores[4] > scores[2], "two terms count for more: {scores:?}");
        assert_eq!(scores[6], 0.0);
        assert_eq!(order(&ranking, &evidence).last(), Some(&6));
    }

    #[test]
    fn a_text_that_is_none_comes_last() {
        let ranking = Ranking::of(&expression("FULLTEXTSCORE", vec![])).unwrap();
        let none = call("FULLTEXTSCORE", &[None, Some("x".into())]).unwrap();
        let evidence = [none, text("x y", &["x"])];
        assert_eq!(order(&ranking, &evidence), [1, 0]);
        assert_eq!(ranking.scores(&[]), Vec::<f64>::new());
    }

    #[test]
    fn vectors_are_ranked_by_their_measure() {
        let distances = [Value::Double(0.5), Value::Null, Value::Double(0.9)];
        let cosine = Ranking::of(&expression("VECTORDISTANCE", vec![])).unwrap();
        assert_eq!(order(&cosine, &distances), [2, 0, 1]);
        let options = Value::from_json(b"{\"distanceFunction\":\"Euclidean\"}").unwrap();
        let constant = |value| Expression::Constant(Some(value));
        let arguments = vec![
            constant(Value::Null),
            constant(Value::Null),
            constant(Value::Bool(true)),
            constant(options),
        ];
        let euclidean = Ranking::of(&expression("VECTORDISTANCE", arguments)).unwrap();
        assert_eq!(order(&euclidean, &distances), [0, 2, 1]);
        assert_eq!(Ranking::of(&expression("ABS", vec![])), None);
    }

    #[test]
    fn ranks_are_fused_with_their_weights() {
        let parts =
            || vec![expression("FULLTEXTSCORE", vec![]), expression("VECTORDISTANCE", vec![])];
        let plain = Ranking::of(&expression("RRF", parts())).unwrap();
        let evidence: Vec<Value> = [("x x", 0.1), ("x y", 0.2), ("y y", 0.9)]
            .iter()
            .map(|(words, distance)| {
                call("RRF", &[Some(text(words, &["x"])), Some(Value::Double(*distance))]).unwrap()
            })
            .collect();
        let scores = plain.scores(&evidence);
        assert_eq!(scores[0], 1.0 / 61.0 + 1.0 / 63.0);
        assert_eq!(scores[1], 2.0 / 62.0);
        let mut weighted = parts();
        weighted.push(Expression::Constant(Value::from_json(b"[1, 5]").ok()));
        let weighted = Ranking::of(&expression("RRF", weighted)).unwrap();
        assert_eq!(order(&weighted, &evidence)[0], 2);
    }

    #[test]
    fn equal_scores_have_the_same_rank() {
        assert_eq!(ranks(&[3.0, 5.0, 3.0, 1.0]), [2, 1, 2, 4]);
    }
}
