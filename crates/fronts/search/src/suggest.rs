//! Suggestions while somebody types: documents, or completions of the text itself.

use lazuli_http::{Response, StatusCode};
use lazuli_search_engine::{AutocompleteMode, AutocompleteRequest, SearchContext, SuggestRequest};
use serde_json::{Map, Value, json};

use crate::asked::{self, Asked};
use crate::error::{Fault, Result};
use crate::limits::{SUGGESTIONS_DEFAULT, SUGGESTIONS_MAX};
use crate::{Call, Front, response};

const SUGGEST: [&str; 11] = [
    "search",
    "suggesterName",
    "filter",
    "fuzzy",
    "highlightPreTag",
    "highlightPostTag",
    "minimumCoverage",
    "orderby",
    "searchFields",
    "select",
    "top",
];

const AUTOCOMPLETE: [&str; 10] = [
    "search",
    "suggesterName",
    "autocompleteMode",
    "filter",
    "fuzzy",
    "highlightPreTag",
    "highlightPostTag",
    "minimumCoverage",
    "searchFields",
    "top",
];

fn needed(asked: &Asked<'_>, parameter: &asked::Parameter, name: &str) -> Result<String> {
    let missing = || Fault::invalid(name, &format!("The parameter '{name}' is required."));
    asked.text(parameter)?.filter(|text| !text.is_empty()).ok_or_else(missing)
}

fn most(asked: &Asked<'_>) -> Result<usize> {
    let top = asked.number(&asked::TOP, SUGGESTIONS_MAX)?;
    Ok(top.unwrap_or(SUGGESTIONS_DEFAULT))
}

fn with_coverage(asked: &Asked<'_>, value: Vec<Value>) -> Result<Response> {
    let mut body = Map::new();
    if asked.percentage(&asked::COVERAGE)?.is_some() {
        body.insert("@search.coverage".to_owned(), json!(100.0));
    }
    body.insert("value".to_owned(), Value::Array(value));
    Ok(response::text(StatusCode::OK, Value::Object(body).to_string()))
}

pub(crate) async fn suggest(
    front: &Front,
    call: &Call,
    name: &str,
    posted: Option<Value>,
) -> Result<Response> {
    let asked = Asked::new(posted, &call.options)?;
    asked.check("suggest", &SUGGEST)?;
    let request = SuggestRequest {
        search: needed(&asked, &asked::SEARCH, "search")?,
        suggester_name: needed(&asked, &asked::SUGGESTER, "suggesterName")?,
        filter: asked.text(&asked::FILTER)?,
        fuzzy: asked.switch(&asked::FUZZY)?,
        highlight_pre_tag: asked.text(&asked::PRE_TAG)?,
        highlight_post_tag: asked.text(&asked::POST_TAG)?,
        order_by: asked.list(&asked::ORDER_BY)?,
        search_fields: asked.list(&asked::SEARCH_FIELDS)?,
        select: asked.list(&asked::SELECT)?,
        top: most(&asked)?,
    };
    let index = front.index(call, name).await?;
    let run = move |context: &SearchContext<'_>| lazuli_search_engine::suggest(context, &request);
    let found = front.query(call, &index, run).await?;
    let suggestions = found.into_iter().map(|suggestion| {
        let mut one = Map::new();
        one.insert("@search.text".to_owned(), suggestion.text.into());
        one.extend(suggestion.document);
        Value::Object(one)
    });
    with_coverage(&asked, suggestions.collect())
}

pub(crate) async fn complete(
    front: &Front,
    call: &Call,
    name: &str,
    posted: Option<Value>,
) -> Result<Response> {
    let asked = Asked::new(posted, &call.options)?;
    asked.check("autocomplete", &AUTOCOMPLETE)?;
    let modes = [
        ("oneTerm", AutocompleteMode::OneTerm),
        ("twoTerms", AutocompleteMode::TwoTerms),
        ("oneTermWithContext", AutocompleteMode::OneTermWithContext),
    ];
    let request = AutocompleteRequest {
        search: needed(&asked, &asked::SEARCH, "search")?,
        suggester_name: needed(&asked, &asked::SUGGESTER, "suggesterName")?,
        mode: asked.word(&asked::COMPLETION_MODE, &modes)?.unwrap_or(AutocompleteMode::OneTerm),
        filter: asked.text(&asked::FILTER)?,
        fuzzy: asked.switch(&asked::FUZZY)?,
        highlight_pre_tag: asked.text(&asked::PRE_TAG)?,
        highlight_post_tag: asked.text(&asked::POST_TAG)?,
        search_fields: asked.list(&asked::SEARCH_FIELDS)?,
        top: most(&asked)?,
    };
    let index = front.index(call, name).await?;
    let run =
        move |context: &SearchContext<'_>| lazuli_search_engine::autocomplete(context, &request);
    let found = front.query(call, &index, run).await?;
    let completions = found.into_iter().map(|completion| {
        json!({ "text": completion.text, "queryPlusText": completion.query_plus_text })
    });
    with_coverage(&asked, completions.collect())
}
