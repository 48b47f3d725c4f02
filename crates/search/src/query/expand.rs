//! What a search text means for each field: its words are analyzed with the field's analyzer and widened by synonyms.

use super::SearchMode;
use super::expr::{Expr, Occurs};
use super::syntax::Syntax;
use crate::analysis::{Analyzer, Token};
use crate::definition::{IndexDefinition, Leaf};
use crate::error::{Result, SearchError};
use crate::limits;
use crate::synonyms::{SynonymMap, SynonymMaps};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A field that is searched.
struct Searched {
    path: String,
    weight: f32,
    analyzer: Arc<Analyzer>,
    synonyms: Option<Arc<SynonymMap>>,
}

/// Turns search texts into terms of fields.
pub(crate) struct Expander<'a> {
    definition: &'a IndexDefinition,
    synonyms: &'a SynonymMaps,
    weights: &'a [(String, f32)],
    fields: Vec<Searched>,
    mode: SearchMode,
}

impl<'a> Expander<'a> {
    /// Searches in the named fields, or in all searchable ones.
    pub(crate) fn new(
        definition: &'a IndexDefinition,
        synonyms: &'a SynonymMaps,
        fields: Option<&[String]>,
        weights: &'a [(String, f32)],
        mode: SearchMode,
    ) -> Result<Expander<'a>> {
        let mut expander = Expander { definition, synonyms, weights, fields: Vec::new(), mode };
        let leaves: Vec<&Leaf> = match fields {
            None => definition.searchable().collect(),
            Some(names) => {
                names.iter().map(|it| searchable(definition, it)).collect::<Result<_>>()?
            }
        };
        expander.fields = leaves.into_iter().map(|it| expander.searched(it)).collect();
        Ok(expander)
    }

    fn searched(&self, leaf: &Leaf) -> Searched {
        let weight = self.weights.iter().find(|(path, _)| *path == leaf.path);
        let map = leaf.synonym_maps.first().and_then(|it| self.synonyms.get(it));
        Searched {
            path: leaf.path.clone(),
            weight: weight.map_or(1.0, |(_, weight)| *weight),
            analyzer: self.definition.search_analyzer(leaf),
            synonyms: map.cloned(),
        }
    }

    /// The query of a search text.
    pub(crate) fn expand(&self, syntax: &Syntax) -> Result<Expr> {
        let mut budget = limits::QUERY_CLAUSES_MAX;
        let expr = self.part(syntax, &mut budget)?;
        let mut patterns = BTreeSet::new();
        expr.patterns(&mut patterns);
        if patterns.len() > limits::QUERY_PATTERNS_MAX {
            return Err(SearchError::invalid(format!(
                "The query has more than {} prefixes, wildcards, regular expressions and fuzzy terms.",
                limits::QUERY_PATTERNS_MAX
            )));
        }
        Ok(expr)
    }

    fn part(&self, syntax: &Syntax, budget: &mut usize) -> Result<Expr> {
        let expr = match syntax {
            Syntax::Nothing => return Ok(Expr::Nothing),
            Syntax::Everything => Expr::Everything,
            Syntax::Bool(clauses) => return self.boolean(clauses, budget),
            Syntax::Boost(inner, boost) => return Ok(self.part(inner, budget)?.boosted(*boost)),
            Syntax::Words { field, text, quoted, slop } => {
                self.each(field, |it| self.words(it, text, *quoted, *slop))?
            }
            Syntax::Prefix { field, text } => self.each(field, |it| Expr::Prefix {
                field: it.path.clone(),
                text: it.analyzer.normalize(text),
            })?,
            Syntax::Wildcard { field, text } => self.each(field, |it| Expr::Wildcard {
                field: it.path.clone(),
                text: it.analyzer.normalize(text),
            })?,
            Syntax::Regex { field, text } => {
                self.each(field, |it| Expr::Regex { field: it.path.clone(), text: text.clone() })?
            }
            Syntax::Fuzzy { field, text, edits } => self.each(field, |it| {
                let (field, text) = (it.path.clone(), it.analyzer.normalize(text));
                match edits {
                    0 => Expr::Term { field, text },
                    _ => Expr::Fuzzy { field, text, edits: *edits },
                }
            })?,
        };
        *budget = budget.checked_sub(expr.clauses()).ok_or_else(too_many)?;
        Ok(expr)
    }

    fn boolean(&self, clauses: &[(Occurs, Syntax)], budget: &mut usize) -> Result<Expr> {
        let mut parts = Vec::with_capacity(clauses.len());
        for (occurs, clause) in clauses {
            match self.part(clause, budget)? {
                // Words that analysis drops, such as stop words, are no condition.
                Expr::Nothing => {}
                part => parts.push((*occurs, part)),
            }
        }
        match parts.as_slice() {
            [] => Ok(Expr::Nothing),
            [(Occurs::Should, _)] => Ok(parts.remove(0).1),
            _ => Ok(Expr::Bool(parts)),
        }
    }

    /// The same for every field that is searched, or for the one that was named.
    fn each(&self, field: &Option<String>, make: impl Fn(&Searched) -> Expr) -> Result<Expr> {
        if let Some(name) = field {
            let leaf = searchable(self.definition, name)?;
            let searched = self.searched(leaf);
            return Ok(make(&searched).boosted(searched.weight));
        }
        let mut exprs = Vec::new();
        let mut clauses = 0;
        for searched in &self.fields {
            let expr = make(searched).boosted(searched.weight);
            clauses += expr.clauses();
            if clauses > limits::QUERY_CLAUSES_MAX {
                return Err(too_many());
            }
            exprs.extend((expr != Expr::Nothing).then_some(expr));
        }
        Ok(Expr::any_of(exprs))
    }

    fn words(&self, searched: &Searched, text: &str, quoted: bool, slop: u32) -> Expr {
        let mut tokens = searched.analyzer.analyze(text);
        tokens.retain(|it| it.text.len() <= limits::TERM_BYTES_MAX);
        let field = &searched.path;
        if let Some(map) = &searched.synonyms {
            let texts: Vec<&str> = tokens.iter().map(|it| it.text.as_str()).collect();
            if let Some(others) = map.alternatives(&texts, &searched.analyzer) {
                let mut parts = vec![query_of(field, &tokens, quoted, slop, self.mode)];
                for other in others {
                    parts.push(query_of(field, &other, other.len() > 1, slop, self.mode));
                }
                return Expr::any_of(parts);
            }
        }
        query_of(field, &tokens, quoted, slop, self.mode)
    }
}

fn searchable<'a>(definition: &'a IndexDefinition, name: &str) -> Result<&'a Leaf> {
    let leaf = definition.leaf(name).ok_or_else(|| {
        SearchError::invalid(format!(
            "Unknown field '{name}' in query. The field does not exist in the index."
        ))
    })?;
    if !leaf.searchable || leaf.is_vector() {
        return Err(SearchError::invalid(format!(
            "The field '{name}' in the search field list is not searchable."
        )));
    }
    Ok(leaf)
}

fn too_many() -> SearchError {
    SearchError::invalid(format!(
        "The query has more than {} clauses, after every word was looked for in every field.",
        limits::QUERY_CLAUSES_MAX
    ))
}

/// The query that tokens of one text make.
fn query_of(field: &str, tokens: &[Token], quoted: bool, slop: u32, mode: SearchMode) -> Expr {
    let mut places: Vec<(usize, Vec<String>)> = Vec::new();
    for token in tokens {
        match places.last_mut() {
            Some((position, texts)) if *position == token.position => {
                texts.push(token.text.clone());
            }
            _ => places.push((token.position, vec![token.text.clone()])),
        }
    }
    let field = field.to_owned();
    let single = |texts: Vec<String>| match <[String; 1]>::try_from(texts) {
        Ok([text]) => Expr::Term { field: field.clone(), text },
        Err(texts) => Expr::Synonyms { field: field.clone(), texts },
    };
    match places.len() {
        0 => Expr::Nothing,
        1 => single(places.remove(0).1),
        _ if quoted => {
            let first = places[0].0;
            let terms = places.into_iter().map(|(at, texts)| (at - first, texts)).collect();
            Expr::Phrase { field, terms, slop }
        }
        _ => {
            let occurs = match mode {
                SearchMode::Any => Occurs::Should,
                SearchMode::All => Occurs::Must,
            };
            Expr::Bool(places.into_iter().map(|(_, texts)| (occurs, single(texts))).collect())
        }
    }
}
