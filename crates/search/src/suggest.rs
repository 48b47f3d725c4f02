//! Suggestions: documents whose suggester fields have all typed words, the last of them perhaps unfinished.

use crate::definition::{IndexDefinition, Suggester};
use crate::error::{Result, SearchError};
use crate::index::for_each_value;
use crate::limits;
use crate::query::{Expr, Occurs};
use crate::search::highlight::{Matcher, gather, matched_ranges, tagged};
use crate::search::split_fields;
use crate::search::{Candidate, Compiled, Order, Plan, SearchContext, Selection, collect, load};
use serde_json::{Map, Value};

/// What suggestions are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuggestRequest {
    pub search: String,
    pub suggester_name: String,
    /// Whether words may differ in one letter.
    pub fuzzy: bool,
    pub filter: Option<String>,
    pub order_by: Option<String>,
    /// Without one, the key alone is returned.
    pub select: Option<String>,
    pub search_fields: Option<String>,
    pub top: usize,
    pub highlight_pre_tag: Option<String>,
    pub highlight_post_tag: Option<String>,
}

/// One suggestion.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The text of the field that was found.
    pub text: String,
    pub document: Map<String, Value>,
}

/// Answers a request for suggestions.
pub fn suggest(context: &SearchContext<'_>, request: &SuggestRequest) -> Result<Vec<Suggestion>> {
    check_text(&request.search)?;
    check_top(request.top)?;
    let definition = context.definition;
    let fields = fields_of(definition, &request.suggester_name, request.search_fields.as_deref())?;
    let select = request.select.as_deref().unwrap_or(definition.key());
    let selection = Selection::parse(definition, Some(select))?;
    let order = Order::parse(definition, request.order_by.as_deref())?;
    let expr = expression(definition, &fields, &request.search, request.fuzzy);
    let compiled = Compiled::with_expr(context, expr, request.filter.as_deref())?;
    let mut candidates = Vec::new();
    for (number, shard) in context.shards.iter().enumerate() {
        let plan = Plan::top(compiled.query(&shard.physical)?, order.clone(), request.top);
        candidates.extend(collect(number, shard, &plan, None)?.candidates);
    }
    candidates.sort_by(Candidate::compare);
    candidates.truncate(request.top);
    let mut suggestions = Vec::new();
    for candidate in &candidates {
        let Some(document) = load(context.shards, candidate)? else { continue };
        let text = best_text(definition, &fields, &compiled.expr, &document, request)?;
        suggestions.push(Suggestion { text, document: selection.apply(&document) });
    }
    Ok(suggestions)
}

pub(crate) fn check_text(text: &str) -> Result<()> {
    let length = text.chars().count();
    if !(1..=limits::SUGGEST_CHARS_MAX).contains(&length) {
        return Err(SearchError::invalid(format!(
            "Search text must be between 1 and {} characters.",
            limits::SUGGEST_CHARS_MAX
        )));
    }
    Ok(())
}

pub(crate) fn check_top(top: usize) -> Result<()> {
    if !(1..=limits::SUGGEST_TOP_MAX).contains(&top) {
        let what = format!("The value must be between 1 and {}. (top)", limits::SUGGEST_TOP_MAX);
        return Err(SearchError::invalid(what));
    }
    Ok(())
}

/// The fields of a suggester, or those of them that a request names.
pub(crate) fn fields_of(
    definition: &IndexDefinition,
    name: &str,
    wanted: Option<&str>,
) -> Result<Vec<String>> {
    let suggester: &Suggester = definition.suggester(name).ok_or_else(|| {
        SearchError::invalid(format!(
            "The specified suggester name '{name}' does not exist in this index definition."
        ))
    })?;
    let wanted = wanted.map(split_fields).filter(|it| !it.is_empty());
    let Some(wanted) = wanted else { return Ok(suggester.source_fields.clone()) };
    for path in &wanted {
        if !suggester.source_fields.contains(path) {
            return Err(SearchError::invalid(format!(
                "The field '{path}' is not a source field of the suggester '{name}'."
            )));
        }
    }
    Ok(wanted)
}

/// Documents with all words in one of the fields.
pub(crate) fn expression(
    definition: &IndexDefinition,
    fields: &[String],
    text: &str,
    fuzzy: bool,
) -> Expr {
    let mut parts = Vec::new();
    for path in fields {
        let Some(leaf) = definition.leaf(path) else { continue };
        let tokens = definition.search_analyzer(leaf).analyze(text);
        let open = text.chars().last().is_some_and(|it| !it.is_whitespace());
        let last = tokens.len().saturating_sub(1);
        let mut clauses = Vec::new();
        for (number, token) in tokens.into_iter().enumerate() {
            let (field, text) = (path.clone(), token.text);
            let word = match (number == last && open, fuzzy && text.chars().count() > 2) {
                (true, true) => Expr::any_of(vec![
                    Expr::Prefix { field: field.clone(), text: text.clone() }.boosted(2.0),
                    Expr::FuzzyPrefix { field, text, edits: 1 },
                ]),
                (true, false) => Expr::Prefix { field, text },
                (false, true) => Expr::any_of(vec![
                    Expr::Term { field: field.clone(), text: text.clone() }.boosted(2.0),
                    Expr::Fuzzy { field, text, edits: 1 },
                ]),
                (false, false) => Expr::Term { field, text },
            };
            clauses.push((Occurs::Must, word));
        }
        match clauses.len() {
            0 => {}
            1 => parts.push(clauses.remove(0).1),
            _ => parts.push(Expr::Bool(clauses)),
        }
    }
    Expr::any_of(parts)
}

/// The value of a suggester field with the most words of the query.
fn best_text(
    definition: &IndexDefinition,
    fields: &[String],
    expr: &Expr,
    document: &Value,
    request: &SuggestRequest,
) -> Result<String> {
    let mut best: Option<(usize, String)> = None;
    for path in fields {
        let Some(leaf) = definition.leaf(path) else { continue };
        let mut matchers: Vec<Matcher> = Vec::new();
        gather(expr, path, &mut matchers)?;
        let analyzer = definition.index_analyzer(leaf);
        let names: Vec<&str> = path.split('/').collect();
        for_each_value(document, &names, &mut |value| {
            let Some(text) = value.as_str() else { return };
            let ranges = matched_ranges(&analyzer.analyze(text), &matchers);
            if ranges.is_empty() || best.as_ref().is_some_and(|(count, _)| *count >= ranges.len()) {
                return;
            }
            let pre = request.highlight_pre_tag.as_deref().unwrap_or_default();
            let post = request.highlight_post_tag.as_deref().unwrap_or_default();
            best = Some((ranges.len(), tagged(text, &ranges, pre, post)));
        });
    }
    Ok(best.map(|(_, text)| text).unwrap_or_default())
}
