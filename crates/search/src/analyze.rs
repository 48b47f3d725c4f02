//! The operation `analyze`: which tokens an analyzer makes of a text.

use crate::analysis::Token;
use crate::definition::{IndexDefinition, Reader};
use crate::error::{Result, SearchError};
use crate::limits;
use serde_json::Value;

/// A token as clients get it: offsets count UTF-16 units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalyzedToken {
    pub token: String,
    pub start_offset: usize,
    pub end_offset: usize,
    pub position: usize,
}

/// Analyzes the text of a request: with an analyzer, a normalizer, or a tokenizer and filters by name.
pub fn analyze(definition: &IndexDefinition, body: &Value) -> Result<Vec<AnalyzedToken>> {
    let request = Reader::object(body, "request")?;
    let text = request.required_string("text")?;
    if text.chars().count() > limits::ANALYZE_CHARS_MAX {
        return Err(request.wrong("text", "is too long"));
    }
    let analyzer = request.string("analyzer")?;
    let tokenizer = request.string("tokenizer")?;
    let normalizer = request.string("normalizer")?;
    let tokens = match (analyzer, tokenizer, normalizer) {
        (Some(analyzer), None, None) => definition.analysis.analyzer(&analyzer)?.analyze(&text),
        (None, Some(tokenizer), None) => {
            let filters = request.strings("tokenFilters")?;
            let char_filters = request.strings("charFilters")?;
            definition.analysis.chain(&tokenizer, &filters, &char_filters)?.analyze(&text)
        }
        (None, None, Some(normalizer)) => {
            let normal = definition.analysis.normalizer(&normalizer)?.normalize(&text);
            let whole = Token::whole(&text);
            vec![whole.with_text(normal)]
        }
        _ => {
            let what = "request: exactly one of 'analyzer', 'tokenizer' and 'normalizer' is needed";
            return Err(SearchError::invalid(what));
        }
    };
    Ok(with_utf16_offsets(&text, tokens))
}

fn with_utf16_offsets(text: &str, tokens: Vec<Token>) -> Vec<AnalyzedToken> {
    let mut units = Vec::with_capacity(text.len() + 1);
    let mut unit = 0;
    for c in text.chars() {
        units.extend(std::iter::repeat_n(unit, c.len_utf8()));
        unit += c.len_utf16();
    }
    units.push(unit);
    let at = |byte: usize| units.get(byte).copied().unwrap_or(unit);
    tokens
        .into_iter()
        .map(|it| AnalyzedToken {
            start_offset: at(it.start),
            end_offset: at(it.end),
            position: it.position,
            token: it.text,
        })
        .collect()
}
