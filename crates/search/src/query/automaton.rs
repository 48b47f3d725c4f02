//! Patterns of terms: prefixes, wildcards, regular expressions and fuzzy terms as automata that walk over the dictionary
//! of terms, and that tell highlighters which words they match.

use crate::error::{Result, SearchError};
use crate::limits;
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tantivy::query::{AutomatonWeight, EnableScoring, Query, Weight};
use tantivy::schema::Field;
use tantivy_fst::{Automaton, Regex};

/// A set of terms.
pub(crate) enum Pattern {
    Prefix(Vec<u8>),
    Regex(Regex),
    Fuzzy(DFA),
}

/// The state from which no term can match.
const DEAD: usize = usize::MAX;

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Pattern::Prefix(_) => "Prefix",
            Pattern::Regex(_) => "Regex",
            Pattern::Fuzzy(_) => "Fuzzy",
        })
    }
}

impl Pattern {
    pub(crate) fn prefix(text: &str) -> Pattern {
        Pattern::Prefix(text.as_bytes().to_vec())
    }

    /// A regular expression in Lucene's syntax.
    pub(crate) fn regex(text: &str) -> Result<Pattern> {
        Pattern::compiled(&translate_regex(text)?, text)
    }

    /// A text with `*` and `?`; a backslash takes their meaning away.
    pub(crate) fn wildcard(text: &str) -> Result<Pattern> {
        let mut pattern = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' => pattern.push_str(".*"),
                '?' => pattern.push('.'),
                '\\' => push_literal(&mut pattern, chars.next().unwrap_or('\\')),
                c => push_literal(&mut pattern, c),
            }
        }
        Pattern::compiled(&pattern, text)
    }

    fn compiled(pattern: &str, text: &str) -> Result<Pattern> {
        let regex = Regex::new(pattern).map_err(|error| {
            SearchError::invalid(format!("'{text}' is not a pattern that can be searched: {error}"))
        })?;
        Ok(Pattern::Regex(regex))
    }

    /// Terms that differ in at most some edits; two neighbours that change places are one edit.
    pub(crate) fn fuzzy(text: &str, edits: u8, prefix: bool) -> Pattern {
        static BUILDERS: [OnceLock<LevenshteinAutomatonBuilder>; 3] =
            [OnceLock::new(), OnceLock::new(), OnceLock::new()];
        let edits = edits.min(limits::FUZZY_EDITS_MAX);
        let text: String = text.chars().take(limits::FUZZY_TERM_CHARS_MAX).collect();
        let builder = BUILDERS[usize::from(edits)]
            .get_or_init(|| LevenshteinAutomatonBuilder::new(edits, true));
        Pattern::Fuzzy(match prefix {
            true => builder.build_prefix_dfa(&text),
            false => builder.build_dfa(&text),
        })
    }

    /// Whether a term belongs to the set.
    pub(crate) fn matches(&self, term: &str) -> bool {
        let mut state = self.start();
        for byte in term.bytes() {
            state = self.accept(&state, byte);
            if !self.can_match(&state) {
                return false;
            }
        }
        self.is_match(&state)
    }
}

impl Automaton for Pattern {
    type State = usize;

    fn start(&self) -> usize {
        match self {
            Pattern::Prefix(_) => 0,
            Pattern::Regex(regex) => regex.start().unwrap_or(DEAD),
            Pattern::Fuzzy(dfa) => dfa.initial_state() as usize,
        }
    }

    fn is_match(&self, state: &usize) -> bool {
        match self {
            _ if *state == DEAD => false,
            Pattern::Prefix(prefix) => *state == prefix.len(),
            Pattern::Regex(regex) => regex.is_match(&Some(*state)),
            Pattern::Fuzzy(dfa) => matches!(dfa.distance(*state as u32), Distance::Exact(_)),
        }
    }

    fn can_match(&self, state: &usize) -> bool {
        match self {
            Pattern::Regex(regex) => *state != DEAD && regex.can_match(&Some(*state)),
            Pattern::Fuzzy(_) => *state != DEAD && *state != SINK_STATE as usize,
            Pattern::Prefix(_) => *state != DEAD,
        }
    }

    fn will_always_match(&self, state: &usize) -> bool {
        matches!(self, Pattern::Prefix(prefix) if *state == prefix.len())
    }

    fn accept(&self, state: &usize, byte: u8) -> usize {
        match self {
            _ if *state == DEAD => DEAD,
            Pattern::Prefix(prefix) => match prefix.get(*state) {
                None => *state,
                Some(expected) if *expected == byte => *state + 1,
                Some(_) => DEAD,
            },
            Pattern::Regex(regex) => regex.accept(&Some(*state), byte).unwrap_or(DEAD),
            Pattern::Fuzzy(dfa) => dfa.transition(*state as u32, byte) as usize,
        }
    }
}

/// The documents with a term of a pattern, each with the score 1.
#[derive(Clone, Debug)]
pub(super) struct PatternQuery {
    pub(super) field: Field,
    pub(super) pattern: Arc<Pattern>,
}

impl Query for PatternQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(AutomatonWeight::<Pattern>::new(self.field, self.pattern.clone())))
    }
}

fn push_literal(pattern: &mut String, c: char) {
    if !c.is_alphanumeric() && c.is_ascii() && c != '_' {
        pattern.push('\\');
    }
    pattern.push(c);
}

/// Lucene's operators in the syntax of the automaton's compiler. Complement, intersection and numeric intervals have no
/// counterpart there and are refused.
fn translate_regex(text: &str) -> Result<String> {
    let refused = |what: &str| {
        SearchError::invalid(format!("'/{text}/': the operator '{what}' is not supported"))
    };
    let mut pattern = String::new();
    let mut chars = text.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next().ok_or_else(|| refused("\\"))?;
                if "dDwWsS".contains(next) {
                    pattern.push('\\');
                    pattern.push(next);
                } else {
                    push_literal(&mut pattern, next);
                }
            }
            '[' => {
                in_class = true;
                pattern.push('[');
            }
            ']' => {
                in_class = false;
                pattern.push(']');
            }
            _ if in_class => {
                if matches!(c, '&' | '~' | '#') {
                    pattern.push('\\');
                }
                pattern.push(c);
            }
            '^' | '$' => push_literal(&mut pattern, c),
            '@' => pattern.push_str(".*"),
            '"' => loop {
                match chars.next() {
                    Some('"') => break,
                    Some(c) => push_literal(&mut pattern, c),
                    None => return Err(refused("\"")),
                }
            },
            '~' | '&' | '<' | '#' => return Err(refused(&c.to_string())),
            c => pattern.push(c),
        }
    }
    Ok(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_terms() {
        assert!(Pattern::prefix("wi").matches("wifi"));
        assert!(!Pattern::prefix("wi").matches("w"));
        let wildcard = Pattern::wildcard("w?f*").expect("a wildcard");
        assert!(wildcard.matches("wifi") && wildcard.matches("waf"));
        assert!(!wildcard.matches("wiki"));
        let regex = Pattern::regex("[mh]otel$?").expect("a pattern");
        assert!(regex.matches("hotel") && regex.matches("motel$") && !regex.matches("hotels"));
        assert!(Pattern::fuzzy("hotel", 1, false).matches("hotle"));
        assert!(!Pattern::fuzzy("hotel", 1, false).matches("hot"));
        assert!(Pattern::regex("a&b").is_err());
    }
}
