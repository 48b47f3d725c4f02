//! Analysis: how text becomes terms. An analyzer is a chain of character filters, one tokenizer and token filters, as in
//! Lucene; the service's predefined analyzers are such chains under fixed names.

mod char_filter;
mod custom;
mod filters;
mod predefined;
mod standard;
mod token;
mod tokenizer;

pub use predefined::{ALIASES, predefined_names};
pub(crate) use token::Token;

pub(crate) use char_filter::CharFilter;
pub(crate) use filters::TokenFilter;
pub(crate) use standard::StandardStream;
pub(crate) use tokenizer::Tokenizer;

use crate::definition::Reader;
use crate::error::{Result, SearchError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The analyzer of searchable fields that name none.
pub(crate) const STANDARD: &str = "standard.lucene";

/// A chain that turns a text into tokens.
#[derive(Clone, Debug)]
pub struct Analyzer {
    pub(crate) char_filters: Vec<CharFilter>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) filters: Vec<TokenFilter>,
}

impl Analyzer {
    /// The tokens of a text. Offsets are bytes of the text as it was given.
    pub fn analyze(&self, text: &str) -> Vec<Token> {
        let filtered = char_filter::apply_all(&self.char_filters, text);
        let mut tokens = self.tokenizer.tokenize(filtered.text());
        for filter in &self.filters {
            tokens = filter.apply(tokens);
        }
        filtered.correct(&mut tokens);
        // Filters that cut words may cut inside of a character that another filter has replaced.
        for token in &mut tokens {
            token.start = token::boundary(text, token.start);
            token.end = token::boundary(text, token.end).max(token.start);
        }
        tokens
    }

    /// Whether the chain is nothing but standard tokens in lower case, which has a faster way into the index.
    pub(crate) fn is_plain_standard(&self) -> bool {
        self.char_filters.is_empty()
            && self.tokenizer == Tokenizer::Standard { length_max: standard::LENGTH_MAX }
            && self.filters == [TokenFilter::LowerCase]
    }

    /// What is done to a term that is not analyzed, such as a prefix: only the filters that look at single characters.
    pub(crate) fn normalize(&self, text: &str) -> String {
        let filtered = char_filter::apply_all(&self.char_filters, text);
        let mut tokens = vec![Token::whole(filtered.text())];
        for filter in self.filters.iter().filter(|it| it.is_per_character()) {
            tokens = filter.apply(tokens);
        }
        tokens.into_iter().next().map(|it| it.text).unwrap_or_default()
    }
}

/// A chain that turns a whole value into one term, for filters, orders and facets.
#[derive(Clone, Debug)]
pub(crate) struct Normalizer {
    pub(crate) char_filters: Vec<CharFilter>,
    pub(crate) filters: Vec<TokenFilter>,
}

impl Normalizer {
    /// The normalized value.
    pub(crate) fn normalize(&self, text: &str) -> String {
        let filtered = char_filter::apply_all(&self.char_filters, text);
        let mut tokens = vec![Token::whole(filtered.text())];
        for filter in &self.filters {
            tokens = filter.apply(tokens);
        }
        tokens.into_iter().next().map(|it| it.text).unwrap_or_default()
    }
}

/// All analyzers and normalizers that an index can name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Analysis {
    analyzers: BTreeMap<String, Arc<Analyzer>>,
    normalizers: BTreeMap<String, Arc<Normalizer>>,
    pub(crate) parts: custom::Parts,
}

impl Analysis {
    pub(crate) fn parse(reader: &Reader<'_>) -> Result<Analysis> {
        custom::parse(reader)
    }

    /// The analyzer of a name.
    pub(crate) fn analyzer(&self, name: &str) -> Result<Arc<Analyzer>> {
        if let Some(analyzer) = self.analyzers.get(name) {
            return Ok(analyzer.clone());
        }
        predefined::analyzer(name)
            .ok_or_else(|| SearchError::invalid(format!("the analyzer '{name}' is unknown")))
    }

    /// The normalizer of a name.
    pub(crate) fn normalizer(&self, name: &str) -> Result<Arc<Normalizer>> {
        if let Some(normalizer) = self.normalizers.get(name) {
            return Ok(normalizer.clone());
        }
        predefined::normalizer(name)
            .ok_or_else(|| SearchError::invalid(format!("the normalizer '{name}' is unknown")))
    }
}
