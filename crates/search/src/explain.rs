//! What a search text means: the query that it becomes, printed in Lucene's notation.

use crate::definition::IndexDefinition;
use crate::error::Result;
use crate::query::{self, Expander, QueryType, SearchMode};
use crate::synonyms::SynonymMaps;

/// The query of a search text on all searchable fields.
pub fn explain(
    definition: &IndexDefinition,
    synonyms: &SynonymMaps,
    text: &str,
    kind: QueryType,
    mode: SearchMode,
) -> Result<String> {
    let syntax = query::parse(text, kind, mode)?;
    let expander = Expander::new(definition, synonyms, None, &[], mode)?;
    Ok(expander.expand(&syntax)?.to_string())
}
