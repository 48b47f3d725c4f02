//! Completions of a word that is being typed, from the words of suggester fields.

use crate::analysis::Token;
use crate::definition::IndexDefinition;
use crate::error::{Result, SearchError};
use crate::index::for_each_value;
use crate::limits;
use crate::query::{Expr, Occurs, Pattern};
use crate::search::{Candidate, Compiled, Order, Plan, SearchContext, collect, load};
use crate::suggest::{check_text, check_top, fields_of};
use serde_json::Value;
use std::collections::BTreeMap;

/// How much is completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutocompleteMode {
    /// One word.
    #[default]
    OneTerm,
    /// Two words that stand beside each other.
    TwoTerms,
    /// One word behind the word before it.
    OneTermWithContext,
}

/// What completions are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AutocompleteRequest {
    pub search: String,
    pub suggester_name: String,
    pub mode: AutocompleteMode,
    pub fuzzy: bool,
    pub filter: Option<String>,
    pub search_fields: Option<String>,
    pub top: usize,
    pub highlight_pre_tag: Option<String>,
    pub highlight_post_tag: Option<String>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub text: String,
    /// The completion behind the words that were typed before it.
    pub query_plus_text: String,
}

/// How often a completion was found, by its text.
type Found = BTreeMap<String, u64>;

/// Answers a request for completions.
pub fn autocomplete(
    context: &SearchContext<'_>,
    request: &AutocompleteRequest,
) -> Result<Vec<Completion>> {
    check_text(&request.search)?;
    check_top(request.top)?;
    let definition = context.definition;
    let fields = fields_of(definition, &request.suggester_name, request.search_fields.as_deref())?;
    let filtered = request.filter.as_deref().is_some_and(|it| !it.trim().is_empty());
    let mut found = Found::new();
    let mut before = String::new();
    for path in &fields {
        let Some(leaf) = definition.leaf(path) else { continue };
        let tokens = definition.search_analyzer(leaf).analyze(&request.search);
        let Some((last, earlier)) = tokens.split_last() else { continue };
        let words: Vec<&str> = earlier.iter().map(|it| it.text.as_str()).collect();
        before = words.join(" ");
        let typed = Typed::new(path, last, words.last().copied(), request);
        if request.mode == AutocompleteMode::OneTerm && !filtered {
            typed.look_in_dictionary(context, &mut found)?;
        } else {
            typed.look_in_documents(context, request, &mut found)?;
        }
    }
    Ok(completions(found, &before, request))
}

/// The word that is being typed, in one field.
struct Typed<'a> {
    path: &'a str,
    text: String,
    /// The word before it.
    previous: Option<&'a str>,
    pattern: Pattern,
    fuzzy: bool,
}

impl<'a> Typed<'a> {
    fn new(
        path: &'a str,
        last: &Token,
        previous: Option<&'a str>,
        request: &AutocompleteRequest,
    ) -> Typed<'a> {
        let fuzzy = request.fuzzy && last.text.chars().count() > 2;
        let pattern = match fuzzy {
            true => Pattern::fuzzy(&last.text, 1, true),
            false => Pattern::prefix(&last.text),
        };
        Typed { path, text: last.text.clone(), previous, pattern, fuzzy }
    }

    /// Words of the dictionary of terms, with the number of their documents.
    fn look_in_dictionary(&self, context: &SearchContext<'_>, found: &mut Found) -> Result<()> {
        let mut seen = 0;
        for shard in context.shards {
            let field = shard.physical.leaf(self.path).and_then(|it| it.terms);
            let Some(field) = field else { continue };
            for reader in shard.searcher.segment_readers() {
                let index = reader.inverted_index(field)?;
                let mut stream = index.terms().search(&self.pattern).into_stream()?;
                while stream.advance() {
                    seen += 1;
                    if seen > limits::COMPLETION_TERMS_MAX {
                        return Ok(());
                    }
                    if let Ok(term) = std::str::from_utf8(stream.key()) {
                        let count = u64::from(stream.value().doc_freq);
                        *found.entry(term.to_owned()).or_insert(0) += count;
                    }
                }
            }
        }
        Ok(())
    }

    /// Words of documents that match, with their neighbours.
    fn look_in_documents(
        &self,
        context: &SearchContext<'_>,
        request: &AutocompleteRequest,
        found: &mut Found,
    ) -> Result<()> {
        let (field, text) = (self.path.to_owned(), self.text.clone());
        let word = match self.fuzzy {
            true => Expr::FuzzyPrefix { field: field.clone(), text, edits: 1 },
            false => Expr::Prefix { field: field.clone(), text },
        };
        let expr = match (request.mode, self.previous) {
            (AutocompleteMode::OneTermWithContext, Some(previous)) => Expr::Bool(vec![
                (Occurs::Must, word),
                (Occurs::Must, Expr::Term { field, text: previous.to_owned() }),
            ]),
            (AutocompleteMode::OneTermWithContext, None) => return Ok(()),
            _ => word,
        };
        let compiled = Compiled::with_expr(context, expr, request.filter.as_deref())?;
        for (number, shard) in context.shards.iter().enumerate() {
            let query = compiled.query(&shard.physical)?;
            let plan = Plan::top(query, Order::default(), limits::COMPLETION_DOCUMENTS_MAX);
            for candidate in collect(number, shard, &plan, None)?.candidates {
                self.look_in_document(context, &candidate, request.mode, found)?;
            }
        }
        Ok(())
    }

    fn look_in_document(
        &self,
        context: &SearchContext<'_>,
        candidate: &Candidate,
        mode: AutocompleteMode,
        found: &mut Found,
    ) -> Result<()> {
        let Some(document) = load(context.shards, candidate)? else { return Ok(()) };
        let definition: &IndexDefinition = context.definition;
        let leaf = definition
            .leaf(self.path)
            .ok_or_else(|| SearchError::invalid(format!("'{}' is not a field", self.path)))?;
        let analyzer = definition.index_analyzer(leaf);
        let names: Vec<&str> = self.path.split('/').collect();
        let mut texts: Vec<&Value> = Vec::new();
        for_each_value(&document, &names, &mut |value| texts.push(value));
        for text in texts.into_iter().filter_map(Value::as_str) {
            let tokens = analyzer.analyze(text);
            for (number, token) in tokens.iter().enumerate() {
                if !self.pattern.matches(&token.text) {
                    continue;
                }
                let previous = number.checked_sub(1).map(|it| tokens[it].text.as_str());
                let completion = match mode {
                    AutocompleteMode::OneTerm => Some(token.text.clone()),
                    AutocompleteMode::TwoTerms => {
                        tokens.get(number + 1).map(|next| format!("{} {}", token.text, next.text))
                    }
                    AutocompleteMode::OneTermWithContext if previous == self.previous => {
                        previous.map(|it| format!("{it} {}", token.text))
                    }
                    AutocompleteMode::OneTermWithContext => None,
                };
                if let Some(completion) = completion {
                    *found.entry(completion).or_insert(0) += 1;
                }
            }
        }
        Ok(())
    }
}

/// The most frequent completions, those of the same frequency by their text.
fn completions(found: Found, before: &str, request: &AutocompleteRequest) -> Vec<Completion> {
    let mut ranked: Vec<(String, u64)> = found.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    ranked.truncate(request.top);
    let context = request.mode == AutocompleteMode::OneTermWithContext;
    let typed = if context { before.rsplit_once(' ').map_or("", |(it, _)| it) } else { before };
    let pre = request.highlight_pre_tag.as_deref().unwrap_or_default();
    let post = request.highlight_post_tag.as_deref().unwrap_or_default();
    ranked
        .into_iter()
        .map(|(text, _)| {
            let tagged = format!("{pre}{text}{post}");
            let query_plus_text = match typed.is_empty() {
                true => tagged,
                false => format!("{typed} {tagged}"),
            };
            Completion { text, query_plus_text }
        })
        .collect()
}
