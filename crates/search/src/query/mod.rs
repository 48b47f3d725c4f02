//! Search texts: two syntaxes with one tree, what the tree means for each field, and queries on the inverted index.

mod automaton;
mod compile;
mod display;
mod expand;
mod expr;
mod full;
mod simple;
mod syntax;

pub(crate) use automaton::Pattern;
pub(crate) use compile::compile;
pub(crate) use expand::Expander;
pub(crate) use expr::{Expr, Occurs};
pub(crate) use syntax::Syntax;

use crate::error::Result;

/// Which syntax a search text has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryType {
    #[default]
    Simple,
    Full,
}

/// Whether any or all terms must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMode {
    #[default]
    Any,
    All,
}

/// Reads a search text.
pub(crate) fn parse(text: &str, kind: QueryType, mode: SearchMode) -> Result<Syntax> {
    if text.chars().count() > crate::limits::SEARCH_CHARS_MAX {
        return Err(crate::error::SearchError::invalid("the search text is too long"));
    }
    match kind {
        QueryType::Simple => Ok(simple::parse(text, mode)),
        QueryType::Full => full::parse(text, mode),
    }
}
