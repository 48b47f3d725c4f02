//! `$filter`: its grammar, its types, and a plain evaluator over JSON documents. `compile` turns a filter into a query
//! on the inverted index; the evaluator is the judge of it, and does itself what an index cannot.

mod compile;
mod evaluate;
mod functions;
mod lexer;
mod parser;
mod ranges;
pub(crate) mod scope;
mod tree;

pub(crate) use compile::{MatchCompiler, compile};
pub(crate) use evaluate::{Evaluator, number_of};
pub(crate) use lexer::{Lexeme, Lexer};
pub(crate) use parser::parse_geo_point;
pub(crate) use tree::{MatchCall, Node};

use crate::definition::IndexDefinition;
use crate::error::{Result, SearchError};
use serde_json::Value;

/// A filter that has been checked against a definition.
#[derive(Clone, Debug)]
pub struct Filter {
    pub(crate) root: Node,
}

impl Filter {
    /// Reads and checks a filter.
    pub fn parse(definition: &IndexDefinition, text: &str) -> Result<Filter> {
        let root = parser::parse(definition, text).map_err(|error| SearchError {
            kind: error.kind,
            message: format!("Invalid expression: {}", error.message),
        })?;
        Ok(Filter { root })
    }

    /// Whether a document passes, by looking at the document alone. `search.ismatch` needs an index and is refused.
    pub fn matches(&self, definition: &IndexDefinition, document: &Value) -> Result<bool> {
        if self.root.has_match() {
            return Err(SearchError::invalid("search.ismatch needs an index"));
        }
        Ok(Evaluator::new(definition).matches(&self.root, document))
    }
}
