//! From terms of fields to queries on the inverted index.

use super::automaton::{Pattern, PatternQuery};
use super::expr::{Expr, Occurs};
use crate::error::{Result, SearchError};
use crate::index::Physical;
use std::collections::HashMap;
use std::sync::Arc;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, EmptyQuery, Occur, PhraseQuery, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption, Term};

/// Phrases that alternatives at their places may become.
const PHRASES_MAX: usize = 64;

/// The query of an expression. Fields that look for the same pattern share its automaton.
pub(crate) fn compile(physical: &Physical, expr: &Expr) -> Result<Box<dyn Query>> {
    Compiler { physical, patterns: HashMap::new() }.part(expr)
}

struct Compiler<'a> {
    physical: &'a Physical,
    patterns: HashMap<(u8, u8, String), Arc<Pattern>>,
}

impl Compiler<'_> {
    fn part(&mut self, expr: &Expr) -> Result<Box<dyn Query>> {
        Ok(match expr {
            Expr::Nothing => Box::new(EmptyQuery),
            Expr::Everything => Box::new(AllQuery),
            Expr::Bool(clauses) => {
                let mut parts = Vec::with_capacity(clauses.len());
                for (occurs, clause) in clauses {
                    let occur = match occurs {
                        Occurs::Must => Occur::Must,
                        Occurs::Should => Occur::Should,
                        Occurs::MustNot => Occur::MustNot,
                    };
                    parts.push((occur, self.part(clause)?));
                }
                Box::new(BooleanQuery::new(parts))
            }
            Expr::Term { field, text } => term(field_of(self.physical, field)?, text),
            Expr::Synonyms { field, texts } => {
                let field = field_of(self.physical, field)?;
                let parts = texts.iter().map(|it| (Occur::Should, term(field, it))).collect();
                Box::new(BooleanQuery::new(parts))
            }
            Expr::Phrase { field, terms, slop } => {
                phrase(field_of(self.physical, field)?, terms, *slop)?
            }
            Expr::Prefix { field, text } => {
                self.pattern(field, 0, 0, text, |text| Ok(Pattern::prefix(text)))?
            }
            Expr::Wildcard { field, text } => self.pattern(field, 1, 0, text, Pattern::wildcard)?,
            Expr::Regex { field, text } => self.pattern(field, 2, 0, text, Pattern::regex)?,
            Expr::Fuzzy { field, text, edits } => {
                let make = |text: &str| Ok(Pattern::fuzzy(text, *edits, false));
                self.pattern(field, 3, *edits, text, make)?
            }
            Expr::FuzzyPrefix { field, text, edits } => {
                let make = |text: &str| Ok(Pattern::fuzzy(text, *edits, true));
                self.pattern(field, 4, *edits, text, make)?
            }
            Expr::Boost(inner, boost) => Box::new(BoostQuery::new(self.part(inner)?, *boost)),
        })
    }

    fn pattern(
        &mut self,
        field: &str,
        kind: u8,
        edits: u8,
        text: &str,
        make: impl FnOnce(&str) -> Result<Pattern>,
    ) -> Result<Box<dyn Query>> {
        let field = field_of(self.physical, field)?;
        let key = (kind, edits, text.to_owned());
        let pattern = match self.patterns.get(&key) {
            Some(pattern) => pattern.clone(),
            None => {
                let pattern = Arc::new(make(text)?);
                self.patterns.insert(key, pattern.clone());
                pattern
            }
        };
        Ok(Box::new(PatternQuery { field, pattern }))
    }
}

fn field_of(physical: &Physical, path: &str) -> Result<Field> {
    let leaf = physical.leaf(path).and_then(|it| it.terms);
    leaf.ok_or_else(|| SearchError::lost(format!("the index has no terms of the field '{path}'")))
}

fn term(field: Field, text: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::WithFreqs))
}

/// A phrase; alternatives at its places make several.
fn phrase(field: Field, terms: &[(usize, Vec<String>)], slop: u32) -> Result<Box<dyn Query>> {
    let mut phrases: Vec<Vec<(usize, Term)>> = vec![Vec::new()];
    for (position, texts) in terms {
        let mut longer = Vec::with_capacity(phrases.len() * texts.len());
        for phrase in &phrases {
            for text in texts {
                let mut phrase = phrase.clone();
                phrase.push((*position, Term::from_field_text(field, text)));
                longer.push(phrase);
            }
        }
        if longer.len() > PHRASES_MAX {
            return Err(SearchError::invalid("A phrase stands for too many others."));
        }
        phrases = longer;
    }
    let one = |terms: Vec<(usize, Term)>| -> Box<dyn Query> {
        Box::new(PhraseQuery::new_with_offset_and_slop(terms, slop))
    };
    if phrases.len() == 1 {
        return Ok(one(phrases.remove(0)));
    }
    let parts = phrases.into_iter().map(|it| (Occur::Should, one(it))).collect();
    Ok(Box::new(BooleanQuery::new(parts)))
}
