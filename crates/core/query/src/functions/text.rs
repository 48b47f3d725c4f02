//! Full-text functions, by scan: a text is divided into words, and words are compared by their English stems.
//!
//! `_FULLTEXTWORDCOUNT` and `_FULLTEXTSCORE` are what clients put into the queries that they make of ORDER BY RANK
//! FULLTEXTSCORE(…).

use lazuli_value::{Value, ValueRef};

use super::limits::{FUZZY_CHARACTERS_MAX, FUZZY_DISTANCE_MAX, TERM_WORDS_MAX};
use super::rank::{Statistics, Text};
use super::stem::stem;
use super::{Call, Function, three_valued};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("FULLTEXTCONTAINS", 2, 2, |call| three_valued::all(found(call)?)),
    Function::new("FULLTEXTCONTAINSALL", 2, usize::MAX, |call| three_valued::all(found(call)?)),
    Function::new("FULLTEXTCONTAINSANY", 2, usize::MAX, |call| three_valued::any(found(call)?)),
    Function::new("_FULLTEXTSCORE", 5, 5, score),
    Function::new("_FULLTEXTWORDCOUNT", 1, 1, |call| {
        Value::number(words(call.string(0)?).len() as f64)
    }),
];

/// Words that say nothing about a text and are left out.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// The words of a text: the stems of what letters and digits make that follow each other, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    let parts = parts.filter(|part| !part.is_empty()).map(str::to_lowercase);
    parts.filter(|word| !STOP_WORDS.contains(&word.as_str())).map(|word| stem(&word)).collect()
}

/// What is sought: words that follow each other, each with so many typing errors.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term {
    words: Vec<String>,
    distance: usize,
}

impl Term {
    /// A text, or an object with a text and the number of typing errors.
    pub(super) fn read(value: ValueRef<'_>) -> Option<Self> {
        let (text, distance) = match value.as_str() {
            Some(text) => (text, 0),
            None => {
                let object = value.as_object()?;
                let distance = match object.get("distance") {
                    Some(distance) => super::types::integer(distance.as_number()?)?,
                    None => 0,
                };
                (object.get("term")?.as_str()?, distance)
            }
        };
        let distance = usize::try_from(distance).ok().filter(|it| *it <= FUZZY_DISTANCE_MAX)?;
        let words = words(text);
        (words.len() <= TERM_WORDS_MAX).then_some(Self { words, distance })
    }

    fn is_in(&self, text: &[String]) -> bool {
        self.count(text) > 0
    }

    /// How often the words occur in a text, in their order.
    pub(super) fn count(&self, text: &[String]) -> usize {
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
    let is_long = one.len().max(two.len()) > FUZZY_CHARACTERS_MAX;
    if is_long || one.len().abs_diff(two.len()) > distance {
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

/// `_FullTextScore(text, terms, documents, words, hits)`
fn score(call: &Call<'_>) -> Option<Value> {
    let terms: Vec<Term> = call.array(1)?.iter().map(Term::read).collect::<Option<_>>()?;
    let hits: Vec<f64> = call.array(4)?.iter().map(ValueRef::as_f64).collect::<Option<_>>()?;
    let statistics = Statistics { documents: call.number(2)?, words: call.number(3)?, hits };
    Value::number(statistics.score(&Text::of(call.string(0)?, &terms)))
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    const TEXT: &str = "'The red bicycle, and the blue helmet!'";

    #[test]
    fn words_and_phrases_are_found_in_any_case() {
        for (term, expected) in [
            ("'red'", "true"),
            ("'RED'", "true"),
            ("'re'", "false"),
            ("'bicycles'", "true"),
            ("'the'", "false"),
            ("'bicycle and blue'", "true"),
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
    fn words_are_counted_and_scores_computed() {
        check_all(&[
            (&format!("_FULLTEXTWORDCOUNT({TEXT})"), "4"),
            ("_FULLTEXTWORDCOUNT('')", "0"),
            ("_FULLTEXTWORDCOUNT(null)", "undefined"),
            ("_FULLTEXTSCORE('b c', ['x'], 10, 20, [1])", "0"),
            ("_FULLTEXTSCORE('x', ['x'], 1, 1, [1])", "0.28768207245178085"),
            ("_FULLTEXTSCORE('a b', 'x', 10, 20, [1])", "undefined"),
        ]);
    }
}
