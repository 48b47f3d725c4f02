//! Highlights: the parts of fields that a query matches, with tags around the words.

use super::request::SearchRequest;
use crate::analysis::{Analyzer, Token};
use crate::definition::{EdmType, IndexDefinition};
use crate::error::{Result, SearchError};
use crate::index::for_each_value;
use crate::limits;
use crate::query::{Expr, Occurs, Pattern};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Marks the words of a query in documents.
pub(crate) struct Highlighter {
    fields: Vec<Highlighted>,
    pre: String,
    post: String,
}

/// A field to be highlighted.
struct Highlighted {
    path: String,
    fragments: usize,
    analyzer: Arc<Analyzer>,
    matchers: Vec<Matcher>,
}

/// What a query looks for in a field.
pub(crate) enum Matcher {
    Term(String),
    Pattern(Pattern),
    Phrase(Vec<(usize, Vec<String>)>),
}

impl Highlighter {
    pub(super) fn new(
        definition: &IndexDefinition,
        request: &SearchRequest,
        expr: &Expr,
    ) -> Result<Highlighter> {
        let mut fields = Vec::new();
        let listed = request.highlight.as_deref().unwrap_or_default();
        for part in listed.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (path, fragments) = match part.rsplit_once('-') {
                Some((path, count)) => (path, parse_fragments(part, count)?),
                None => (part, 5),
            };
            let leaf = definition.leaf(path).filter(|it| it.searchable);
            let leaf = leaf.filter(|it| it.kind == EdmType::String).ok_or_else(|| {
                SearchError::invalid(format!(
                    "The field '{path}' in the highlight field list is not a searchable field of the index."
                ))
            })?;
            let mut matchers = Vec::new();
            gather(expr, path, &mut matchers)?;
            fields.push(Highlighted {
                path: path.to_owned(),
                fragments,
                analyzer: definition.index_analyzer(leaf),
                matchers,
            });
        }
        let tag = |given: &Option<String>, default: &str| {
            given.clone().unwrap_or_else(|| default.to_owned())
        };
        Ok(Highlighter {
            fields,
            pre: tag(&request.highlight_pre_tag, "<em>"),
            post: tag(&request.highlight_post_tag, "</em>"),
        })
    }

    /// The fragments of a document, or none where nothing matches.
    pub(super) fn highlight(&self, document: &Value) -> Option<Map<String, Value>> {
        let mut highlights = Map::new();
        for field in &self.fields {
            let names: Vec<&str> = field.path.split('/').collect();
            let mut passages = Vec::new();
            for_each_value(document, &names, &mut |value| {
                if let Some(text) = value.as_str() {
                    passages.extend(passages_of(field, text));
                }
            });
            // The passages with the most words come first; those with as many stay in their order.
            passages.sort_by_key(|it: &Passage| std::cmp::Reverse(it.words.len()));
            passages.truncate(field.fragments);
            if !passages.is_empty() {
                let fragments: Vec<Value> = passages
                    .iter()
                    .map(|it| Value::String(it.tagged(&self.pre, &self.post)))
                    .collect();
                highlights.insert(field.path.clone(), Value::Array(fragments));
            }
        }
        (!highlights.is_empty()).then_some(highlights)
    }
}

fn parse_fragments(part: &str, count: &str) -> Result<usize> {
    let count = count.parse().ok().filter(|it| (1..=limits::HIGHLIGHT_FRAGMENTS_MAX).contains(it));
    count.ok_or_else(|| {
        let max = limits::HIGHLIGHT_FRAGMENTS_MAX;
        SearchError::invalid(format!("Highlight '{part}': the count must be from 1 to {max}."))
    })
}

/// Collects what an expression looks for in a field. What must not match is not highlighted.
pub(crate) fn gather(expr: &Expr, path: &str, matchers: &mut Vec<Matcher>) -> Result<()> {
    match expr {
        Expr::Bool(clauses) => {
            for (_, clause) in clauses.iter().filter(|(occurs, _)| *occurs != Occurs::MustNot) {
                gather(clause, path, matchers)?;
            }
        }
        Expr::Boost(inner, _) => gather(inner, path, matchers)?,
        Expr::Term { field, text } if field == path => matchers.push(Matcher::Term(text.clone())),
        Expr::Synonyms { field, texts } if field == path => {
            matchers.extend(texts.iter().cloned().map(Matcher::Term));
        }
        Expr::Phrase { field, terms, slop } if field == path => {
            if *slop == 0 {
                matchers.push(Matcher::Phrase(terms.clone()));
            } else {
                let texts = terms.iter().flat_map(|(_, texts)| texts.iter().cloned());
                matchers.extend(texts.map(Matcher::Term));
            }
        }
        Expr::Prefix { field, text } if field == path => {
            matchers.push(Matcher::Pattern(Pattern::prefix(text)));
        }
        Expr::Wildcard { field, text } if field == path => {
            matchers.push(Matcher::Pattern(Pattern::wildcard(text)?));
        }
        Expr::Regex { field, text } if field == path => {
            matchers.push(Matcher::Pattern(Pattern::regex(text)?));
        }
        Expr::Fuzzy { field, text, edits } if field == path => {
            matchers.push(Matcher::Pattern(Pattern::fuzzy(text, *edits, false)));
        }
        Expr::FuzzyPrefix { field, text, edits } if field == path => {
            matchers.push(Matcher::Pattern(Pattern::fuzzy(text, *edits, true)));
        }
        _ => {}
    }
    Ok(())
}

/// The stretches of a text that matchers find, in order and without overlaps.
pub(crate) fn matched_ranges(tokens: &[Token], matchers: &[Matcher]) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        for matcher in matchers {
            match matcher {
                Matcher::Term(text) if token.text == *text => ranges.push((token.start, token.end)),
                Matcher::Pattern(pattern) if pattern.matches(&token.text) => {
                    ranges.push((token.start, token.end));
                }
                Matcher::Phrase(terms) => ranges.extend(phrase_at(tokens, number, terms)),
                _ => {}
            }
        }
    }
    ranges.sort_unstable();
    ranges.dedup();
    let mut merged: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

fn phrase_at(
    tokens: &[Token],
    first: usize,
    terms: &[(usize, Vec<String>)],
) -> Vec<(usize, usize)> {
    let start = tokens[first].position;
    let mut ranges = Vec::new();
    let mut rest = tokens[first..].iter();
    for (offset, texts) in terms {
        let wanted = start + offset;
        let found = rest
            .by_ref()
            .take_while(|it| it.position <= wanted)
            .find(|it| it.position == wanted && texts.contains(&it.text));
        match found {
            Some(token) => ranges.push((token.start, token.end)),
            None => return Vec::new(),
        }
    }
    ranges
}

/// A sentence with words that match.
struct Passage {
    text: String,
    words: Vec<(usize, usize)>,
}

impl Passage {
    fn tagged(&self, pre: &str, post: &str) -> String {
        tagged(&self.text, &self.words, pre, post)
    }
}

/// A text with tags around some stretches.
pub(crate) fn tagged(text: &str, words: &[(usize, usize)], pre: &str, post: &str) -> String {
    let mut tagged = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end) in words {
        tagged.push_str(&text[at..*start]);
        tagged.push_str(pre);
        tagged.push_str(&text[*start..*end]);
        tagged.push_str(post);
        at = *end;
    }
    tagged.push_str(&text[at..]);
    tagged
}

fn passages_of(field: &Highlighted, text: &str) -> Vec<Passage> {
    let end = text.char_indices().nth(limits::HIGHLIGHT_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    let text = &text[..end];
    let ranges = matched_ranges(&field.analyzer.analyze(text), &field.matchers);
    let mut passages: Vec<Passage> = Vec::new();
    let mut next = ranges.into_iter().peekable();
    for (start, end) in sentences(text) {
        let mut words = Vec::new();
        while let Some((from, to)) = next.next_if(|(from, _)| *from < end) {
            words.push((from.max(start) - start, to.min(end).max(from.max(start)) - start));
        }
        if !words.is_empty() {
            passages.push(Passage { text: text[start..end].to_owned(), words });
        }
    }
    passages
}

/// The sentences of a text, with the spaces behind them cut off.
fn sentences(text: &str) -> Vec<(usize, usize)> {
    let mut bounds = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?' | '。')
            && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends || c == '\n' {
            bounds.push((start, at + c.len_utf8()));
            while chars.next_if(|(_, next)| next.is_whitespace()).is_some() {}
            start = chars.peek().map_or(text.len(), |(next, _)| *next);
        }
    }
    if start < text.len() {
        bounds.push((start, text.len()));
    }
    bounds
}
