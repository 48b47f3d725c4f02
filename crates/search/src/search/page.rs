//! One page of results out of the best documents of all shards.

use super::collect::{Candidate, Collected, Plan, Rescoring, collect};
use super::facets::{FacetCounts, FacetPlan};
use super::highlight::Highlighter;
use super::order::Order;
use super::profile::Functions;
use super::request::{Hit, ScoringStatistics, SearchContext, SearchRequest, SearchResults};
use super::selection::Selection;
use super::statistics::Global;
use super::{stored_document, vector};
use crate::definition::ScoringProfile;
use crate::error::{Result, SearchError};
use crate::filter::{self, Filter, MatchCall, MatchCompiler};
use crate::index::{Physical, ShardSnapshot};
use crate::limits;
use crate::query::{self, Expander, Expr, QueryType, SearchMode};
use serde_json::{Map, Value};
use tantivy::TantivyDocument;
use tantivy::query::{Bm25StatisticsProvider, BooleanQuery, Occur, Query};

/// Documents of a fusion that are looked at.
const FUSED_MAX: usize = limits::VECTOR_QUERIES_MAX * limits::VECTOR_NEIGHBOURS_MAX;

/// Answers a search.
pub fn search(context: &SearchContext<'_>, request: &SearchRequest) -> Result<SearchResults> {
    check_bounds(request)?;
    let definition = context.definition;
    let selection = Selection::parse(definition, request.select.as_deref())?;
    let order = Order::parse(definition, request.order_by.as_deref())?;
    let facets = parse_facets(context, request)?;
    let profile = profile_of(context, request)?;
    let functions = match profile {
        Some(profile) => Functions::new(context, profile, &request.scoring_parameters)?,
        None => None,
    };
    let compiled = Compiled::new(context, request, profile)?;
    let highlighter = Highlighter::new(definition, request, &compiled.expr)?;
    let has_text = request.search.as_deref().is_some_and(|it| !matches!(it.trim(), "" | "*"));
    let fused = match request.vector_queries.is_empty() {
        true => None,
        false => Some(vector::fused(context, request, &compiled, has_text)?),
    };
    let limit = request.skip + request.top;
    let global = Global { shards: context.shards };
    let statistics: Option<&dyn Bm25StatisticsProvider> = match request.scoring_statistics {
        ScoringStatistics::Global => Some(&global),
        ScoringStatistics::Local => None,
    };
    let counts = facets.iter().map(FacetPlan::counts).collect();
    let mut merged = Collected { facets: counts, ..Collected::default() };
    let by_fusion = fused.is_some() && order.clauses.is_empty();
    for (number, shard) in context.shards.iter().enumerate() {
        let plan = Plan {
            query: match &fused {
                None => compiled.query(&shard.physical)?,
                Some(found) => compiled.with_listed(number, shard, found, has_text)?,
            },
            order: order.clone(),
            limit: if by_fusion { 0 } else { limit },
            count: request.count,
            facets: facets.clone(),
            functions: functions.clone(),
        };
        merge(&mut merged, collect(number, shard, &plan, statistics)?);
        if let Some(found) = fused.as_ref().filter(|_| by_fusion) {
            // Of the fusion only those stay that pass the filter.
            let query = compiled.with_listed(number, shard, found, false)?;
            let plan = Plan::top(query, Order::default(), FUSED_MAX);
            merged.candidates.extend(collect(number, shard, &plan, None)?.candidates);
        }
    }
    let mut candidates = match fused {
        Some(fused) if by_fusion => vector::keep(fused, &merged.candidates),
        _ => merged.candidates,
    };
    candidates.sort_by(Candidate::compare);
    let mut page: Vec<Candidate> =
        candidates.into_iter().skip(request.skip).take(request.top).collect();
    if !order.by_score() && compiled.expr != Expr::Everything {
        for (number, shard) in context.shards.iter().enumerate() {
            let query = compiled.query(&shard.physical)?;
            let scoring = Rescoring { query: query.as_ref(), functions: functions.as_ref() };
            scoring.run(number, shard, statistics, &mut page)?;
        }
    }
    Ok(SearchResults {
        count: request.count.then_some(merged.count),
        facets: answer_facets(&facets, merged.facets),
        hits: hits(context, &selection, &highlighter, &page)?,
    })
}

fn hits(
    context: &SearchContext<'_>,
    selection: &Selection,
    highlighter: &Highlighter,
    page: &[Candidate],
) -> Result<Vec<Hit>> {
    let mut hits = Vec::new();
    for candidate in page {
        let Some(document) = load(context.shards, candidate)? else { continue };
        hits.push(hit(context, selection, highlighter, candidate, &document));
    }
    Ok(hits)
}

fn check_bounds(request: &SearchRequest) -> Result<()> {
    if request.top > limits::TOP_MAX {
        let what = format!("The value must be between 0 and {}. (top)", limits::TOP_MAX);
        return Err(SearchError::invalid(what));
    }
    if request.skip > limits::SKIP_MAX {
        let what = format!("The value must be between 0 and {}. (skip)", limits::SKIP_MAX);
        return Err(SearchError::invalid(what));
    }
    Ok(())
}

fn parse_facets(context: &SearchContext<'_>, request: &SearchRequest) -> Result<Vec<FacetPlan>> {
    if request.facets.len() > limits::FACETS_MAX {
        return Err(SearchError::invalid("The request has too many facets."));
    }
    request.facets.iter().map(|it| FacetPlan::parse(context.definition, it)).collect()
}

fn answer_facets(plans: &[FacetPlan], counts: Vec<FacetCounts>) -> Option<Map<String, Value>> {
    if plans.is_empty() {
        return None;
    }
    let answers = plans.iter().zip(counts);
    Some(answers.map(|(plan, counts)| (plan.path.clone(), plan.answer(counts))).collect())
}

fn merge(merged: &mut Collected, collected: Collected) {
    merged.candidates.extend(collected.candidates);
    merged.count += collected.count;
    for (target, counts) in merged.facets.iter_mut().zip(collected.facets) {
        for (key, count) in counts {
            *target.entry(key).or_insert(0) += count;
        }
    }
}

fn hit(
    context: &SearchContext<'_>,
    selection: &Selection,
    highlighter: &Highlighter,
    candidate: &Candidate,
    document: &Value,
) -> Hit {
    let key = document.get(context.definition.key()).and_then(Value::as_str);
    Hit {
        key: key.unwrap_or_default().to_owned(),
        score: f64::from(candidate.score),
        document: selection.apply(document),
        highlights: highlighter.highlight(document),
    }
}

/// The document of a candidate.
pub(crate) fn load(shards: &[ShardSnapshot], candidate: &Candidate) -> Result<Option<Value>> {
    let Some(shard) = shards.get(candidate.shard) else { return Ok(None) };
    let entry: TantivyDocument = shard.searcher.doc(candidate.address)?;
    Ok(stored_document(&entry, shard.physical.source))
}

fn profile_of<'a>(
    context: &SearchContext<'a>,
    request: &SearchRequest,
) -> Result<Option<&'a ScoringProfile>> {
    let default = context.definition.default_scoring_profile.as_deref();
    let Some(name) = request.scoring_profile.as_deref().or(default) else { return Ok(None) };
    let profile = context.definition.scoring_profile(name);
    profile.map(Some).ok_or_else(|| {
        SearchError::invalid(format!("The scoring profile '{name}' does not exist in the index."))
    })
}

/// A request's text and filter, read and analyzed, before they meet the fields of a shard.
pub(crate) struct Compiled<'a> {
    context: &'a SearchContext<'a>,
    pub(crate) expr: Expr,
    filter: Option<Filter>,
}

impl<'a> Compiled<'a> {
    fn new(
        context: &'a SearchContext<'a>,
        request: &SearchRequest,
        profile: Option<&'a ScoringProfile>,
    ) -> Result<Compiled<'a>> {
        let weights = profile.map_or(&[][..], |it| it.weights.as_slice());
        let fields = request.search_fields.as_deref().map(split_fields);
        let text = request.search.as_deref().unwrap_or("*");
        let syntax = query::parse(text, request.query_type, request.search_mode)?;
        let expander = Expander::new(
            context.definition,
            context.synonyms,
            fields.as_deref(),
            weights,
            request.search_mode,
        )?;
        let expr = expander.expand(&syntax)?;
        Compiled::with_expr(context, expr, request.filter.as_deref())
    }

    /// A query that is already known, with a filter.
    pub(crate) fn with_expr(
        context: &'a SearchContext<'a>,
        expr: Expr,
        filter: Option<&str>,
    ) -> Result<Compiled<'a>> {
        let filter = filter.filter(|it| !it.trim().is_empty());
        let filter = filter.map(|it| Filter::parse(context.definition, it)).transpose()?;
        Ok(Compiled { context, expr, filter })
    }

    /// The filter on a shard, or none.
    pub(super) fn filter_query(&self, physical: &Physical) -> Result<Option<Box<dyn Query>>> {
        let Some(filter) = &self.filter else { return Ok(None) };
        let matches = Matches { context: self.context, physical };
        filter::compile(self.context.definition, physical, &filter.root, &matches).map(Some)
    }

    /// The query for documents that were found by their vectors, and for those that the text finds.
    fn with_listed(
        &self,
        number: usize,
        shard: &ShardSnapshot,
        found: &[Candidate],
        has_text: bool,
    ) -> Result<Box<dyn Query>> {
        let listed = vector::only(number, shard, found);
        let mut either: Vec<(Occur, Box<dyn Query>)> = vec![(Occur::Should, listed)];
        if has_text {
            either.push((Occur::Should, query::compile(&shard.physical, &self.expr)?));
        }
        let any: Box<dyn Query> = Box::new(BooleanQuery::new(either));
        let Some(filter) = self.filter_query(&shard.physical)? else { return Ok(any) };
        Ok(Box::new(BooleanQuery::new(vec![(Occur::Must, any), (Occur::Must, filter)])))
    }

    /// The query on a shard.
    pub(crate) fn query(&self, physical: &Physical) -> Result<Box<dyn Query>> {
        let query = query::compile(physical, &self.expr)?;
        let Some(filter) = self.filter_query(physical)? else { return Ok(query) };
        Ok(Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, filter)])))
    }
}

/// Names separated by commas; an empty list stands for all fields.
pub(crate) fn split_fields(text: &str) -> Vec<String> {
    text.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

/// Compiles `search.ismatch`.
struct Matches<'a> {
    context: &'a SearchContext<'a>,
    physical: &'a Physical,
}

impl MatchCompiler for Matches<'_> {
    fn compile_match(&self, call: &MatchCall) -> Result<Box<dyn Query>> {
        let kind = if call.full { QueryType::Full } else { QueryType::Simple };
        let mode = if call.all { SearchMode::All } else { SearchMode::Any };
        let fields = call.fields.as_deref().filter(|it| !it.trim().is_empty()).map(split_fields);
        let syntax = query::parse(&call.search, kind, mode)?;
        let context = self.context;
        let expander =
            Expander::new(context.definition, context.synonyms, fields.as_deref(), &[], mode)?;
        query::compile(self.physical, &expander.expand(&syntax)?)
    }
}
