//! Synonym maps: rules in Solr's format, applied to search texts.

use crate::analysis::{Analyzer, Token};
use crate::error::{Result, SearchError};
use crate::limits;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The synonym maps of a service, by name.
pub type SynonymMaps = BTreeMap<String, Arc<SynonymMap>>;

/// The rules of one map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SynonymMap {
    pub name: String,
    rules: Vec<Rule>,
}

/// `a, b => c, d`, or `a, b, c` where all stand for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    from: Vec<String>,
    /// What stands in their place; none where all of `from` are equivalent.
    to: Option<Vec<String>>,
}

impl SynonymMap {
    /// Reads rules, one a line.
    pub fn parse(name: &str, rules: &str) -> Result<SynonymMap> {
        let mut map = SynonymMap { name: name.to_owned(), rules: Vec::new() };
        for (number, line) in rules.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| {
                SearchError::invalid(format!("synonym map '{name}', line {}: {what}", number + 1))
            };
            let terms = |text: &str| -> Result<Vec<String>> {
                let terms = split_terms(text);
                if terms.is_empty() {
                    return Err(wrong("a rule needs terms"));
                }
                if terms.len() > limits::SYNONYM_TERMS_MAX {
                    return Err(wrong("a rule has too many terms"));
                }
                Ok(terms)
            };
            let rule = match line.split_once("=>") {
                Some((from, to)) => Rule { from: terms(from)?, to: Some(terms(to)?) },
                None => Rule { from: terms(line)?, to: None },
            };
            map.rules.push(rule);
            if map.rules.len() > limits::SYNONYM_RULES_MAX {
                return Err(wrong("the map has too many rules"));
            }
        }
        Ok(map)
    }

    /// Other ways to say the same as some analyzed words, or none where no rule names them. A rule with an arrow takes
    /// the words out; they are an alternative only if it names them on its right side.
    pub(crate) fn alternatives(
        &self,
        words: &[&str],
        analyzer: &Analyzer,
    ) -> Option<Vec<Vec<Token>>> {
        if words.is_empty() {
            return None;
        }
        let mut found: Vec<Vec<Token>> = Vec::new();
        let same = |tokens: &[Token]| {
            tokens.len() == words.len() && tokens.iter().zip(words).all(|(a, b)| a.text == *b)
        };
        for rule in &self.rules {
            if !rule.from.iter().any(|it| same(&analyzer.analyze(it))) {
                continue;
            }
            for text in rule.to.as_ref().unwrap_or(&rule.from) {
                let tokens = analyzer.analyze(text);
                if !tokens.is_empty() && !same(&tokens) && !found.contains(&tokens) {
                    found.push(tokens);
                }
            }
        }
        (!found.is_empty()).then_some(found)
    }
}

/// The terms between commas; a backslash takes a comma's meaning away.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            ',' if !escaped => terms.push(String::new()),
            c => {
                escaped = false;
                if let Some(last) = terms.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    terms.iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}
