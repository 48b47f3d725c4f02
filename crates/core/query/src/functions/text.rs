//! Full-text functions, by scan: a text is divided into words, and words are compared in lower case.
//!
//! `_FULLTEXTWORDCOUNT` and `_FULLTEXTSCORE` are what clients put into the queries that they make of ORDER BY RANK
//! FULLTEXTSCORE(…). The score itself is BM25.

use std::collections::BTreeSet;

use lazuli_value::{Value, ValueRef};

use super::limits::FUZZY_DISTANCE_MAX;
use super::{Call, Function, three_valued};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("FULLTEXTCONTAINS", 2, 2, |call| three_valued::all(found(call)?)),
    Function::new("FULLTEXTCONTAINSALL", 2, usize::MAX, |call| three_valued::all(found(call)?)),
    Function::new("FULLTEXTCONTAINSANY", 2, usize::MAX, |call| three_valued::any(found(call)?)),
    Function::new("_FULLTEXTSCORE", 5, 5, score_of_call),
    Function::new("_FULLTEXTWORDCOUNT", 1, 1, |call| {
        Value::number(words(call.string(0)?).len() as f64)
    }),
];

/// The words of a text: letters and digits that follow each other, in lower case.
fn words(text: &str) -> Vec<String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase).collect()
}

/// What is sought: words that follow each other, each with so many typing errors.
struct Term {
    words: Vec<String>,
    distance: usize,
}

impl Term {
    /// A text, or an object with a text and the number of typing errors.
    fn read(value: ValueRef<'_>) -> Option<Self> {
        if let Some(text) = value.as_str() {
            return Some(Self { words: words(text), distance: 0 });
        }
        let object = value.as_object()?;
        let text = object.get("term")?.as_str()?;
        let distance = match object.get("distance") {
            Some(distance) => super::types::integer(distance.as_number()?)?,
            None => 0,
        };
        let distance = usize::try_from(distance).ok().filter(|it| *it <= FUZZY_DISTANCE_MAX)?;
        Some(Self { words: words(text), distance })
    }

    fn is_in(&self, text: &[String]) -> bool {
        self.count(text) > 0
    }

    /// How often the words occur in a text, in their order.
    fn count(&self, text: &[String]) -> usize {
        if self.words.is_empty() {
            return 0;
        }
        let matches = |place: &[String]| {
            place.iter().zip(&self.words).all(|(one, two)| is_near(one, two, self.distance))
        };
        text.windows(self.words.len()).filter(|place| matches(place)).count()
    }
}

/// Whether one word becomes the other by so many insertions, deletions and replacements of a letter.
fn is_near(one: &str, two: &str, distance: usize) -> bool {
    if distance == 0 || one == two {
        return one == two;
    }
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    if one.len().abs_diff(two.len()) > distance {
        return false;
    }
    // Each row has the least numbers of changes for the beginnings of the second word.
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (to, other) in two.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[to + 1];
            row[to + 1] = replaced.min(row[to] + 1).min(diagonal + 1);
        }
    }
    row[two.len()] <= distance
}

/// For each argument after the text whether it occurs, or nothing if it is no term.
fn found<'c>(call: &Call<'c>) -> Option<impl Iterator<Item = Option<bool>>> {
    let text = words(call.string(0)?);
    let terms = call.arguments.iter().skip(1);
    Some(terms.map(move |term| Some(Term::read(term.as_ref()?.as_ref())?.is_in(&text))))
}

/// What is known of all texts of a property, for the score of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// How many items there are.
    pub documents: f64,
    /// How many words their texts have.
    pub words: f64,
    /// For each term, how many of the texts have it.
    pub hits: Vec<f64>,
}

/// The score of a text for terms by BM25: the more often rare terms occur in a short text, the higher.
pub fn score(text: &str, terms: &[&str], statistics: &Statistics) -> f64 {
    const SATURATION: f64 = 1.2;
    const LENGTH_WEIGHT: f64 = 0.75;
    let text = words(text);
    let average = statistics.words / statistics.documents;
    let length = if average > 0.0 { text.len() as f64 / average } else { 1.0 };
    let mut seen = BTreeSet::new();
    let mut sum = 0.0;
    for (place, term) in terms.iter().enumerate() {
        let term = Term { words: words(term), distance: 0 };
        if !seen.insert(term.words.clone()) {
            continue;
        }
        let count = term.count(&text) as f64;
        let hits = statistics.hits.get(place).copied().unwrap_or(0.0);
        let rarity = (1.0 + (statistics.documents - hits + 0.5) / (hits + 0.5)).ln();
        let weight = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length;
        sum += rarity * count * (SATURATION + 1.0) / (count + SATURATION * weight);
    }
    sum
}

/// How many words a text has, as the score counts them.
pub fn word_count(text: &str) -> usize {
    words(text).len()
}

/// Whether a term occurs in a text.
pub fn has_term(text: &str, term: &str) -> bool {
    Term { words: words(term), distance: 0 }.is_in(&words(text))
}

/// Reciprocal rank fusion: the score of an item that has these ranks, counted from one, in several orders.
pub fn fuse(ranks: impl Iterator<Item = (usize, f64)>) -> f64 {
    const SMOOTHING: f64 = 60.0;
    ranks.map(|(rank, weight)| weight / (SMOOTHING + rank as f64)).sum()
}

/// `_FullTextScore(text, terms, documents, words, hits)`
fn score_of_call(call: &Call<'_>) -> Option<Value> {
    let text = call.string(0)?;
    let terms: Vec<&str> = call.array(1)?.iter().map(ValueRef::as_str).collect::<Option<_>>()?;
    let hits: Vec<f64> = call.array(4)?.iter().map(ValueRef::as_f64).collect::<Option<_>>()?;
    let statistics = Statistics { documents: call.number(2)?, words: call.number(3)?, hits };
    Value::number(score(text, &terms, &statistics))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::check::check_all;

    const TEXT: &str = "'The red bicycle, and the blue helmet!'";

    #[test]
    fn words_and_phrases_are_found_in_any_case() {
        for (term, expected) in [
            ("'red'", "true"),
            ("'RED'", "true"),
            ("'re'", "false"),
            ("'red bicycle'", "true"),
            ("'bicycle red'", "false"),
            ("'helmet'", "true"),
            ("'green'", "false"),
            ("''", "false"),
            ("{'term':'bycicle','distance':2}", "true"),
            ("{'term':'bycicle','distance':1}", "false"),
            ("{'term':'read','distance':1}", "true"),
            ("{'term':'red'}", "true"),
            ("{'term':'red','distance':3}", "undefined"),
            ("{'word':'red'}", "undefined"),
            ("5", "undefined"),
            ("undefined", "undefined"),
        ] {
            check_all(&[(&format!("FULLTEXTCONTAINS({TEXT}, {term})"), expected)]);
        }
        check_all(&[("FULLTEXTCONTAINS(5, 'a')", "undefined")]);
    }

    #[test]
    fn several_terms_are_sought_at_once() {
        check_all(&[
            (&format!("FULLTEXTCONTAINSALL({TEXT}, 'red', 'blue helmet')"), "true"),
            (&format!("FULLTEXTCONTAINSALL({TEXT}, 'red', 'green')"), "false"),
            (&format!("FULLTEXTCONTAINSANY({TEXT}, 'green', 'blue')"), "true"),
            (&format!("FULLTEXTCONTAINSANY({TEXT}, 'green', 'black')"), "false"),
            (&format!("FULLTEXTCONTAINSANY({TEXT}, undefined)"), "undefined"),
        ]);
    }

    #[test]
    fn words_are_counted_and_scored() {
        check_all(&[
            (&format!("_FULLTEXTWORDCOUNT({TEXT})"), "7"),
            ("_FULLTEXTWORDCOUNT('')", "0"),
            ("_FULLTEXTWORDCOUNT(null)", "undefined"),
            ("_FULLTEXTSCORE('a b', ['x'], 10, 20, [1])", "0"),
            ("_FULLTEXTSCORE('a b', 'x', 10, 20, [1])", "undefined"),
        ]);
        let statistics = Statistics { documents: 10.0, words: 40.0, hits: vec![1.0, 9.0] };
        let score = |text| score(text, &["rare", "common"], &statistics);
        assert!(score("rare") > score("common"));
        assert!(score("rare common") > score("rare other"));
        assert!(score("rare") > score("rare and many other words besides it"));
        assert!(score("rare rare") > score("rare other"));
        assert_eq!(score("neither"), 0.0);
    }

    #[test]
    fn ranks_are_fused() {
        let first = fuse([(1, 1.0), (2, 1.0)].into_iter());
        let second = fuse([(2, 1.0), (3, 1.0)].into_iter());
        assert!(first > second);
        assert!(fuse([(2, 2.0), (2, 1.0)].into_iter()) > fuse([(2, 1.0), (2, 1.0)].into_iter()));
        assert_eq!(fuse([(1, 1.0)].into_iter()), 1.0 / 61.0);
    }
}
