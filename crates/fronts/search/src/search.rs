//! Queries: search, suggest, autocomplete, analyze. They run on threads of their own, because the text index reads files.

use std::sync::Arc;

use lazuli_http::{Response, StatusCode};
use lazuli_index::{Index, RecordKind};
use lazuli_search_engine::{
    QueryType, ScoringStatistics, SearchContext, SearchMode, SearchRequest, SearchResults,
    SynonymMap, SynonymMaps, VectorFilterMode,
};
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;

use crate::asked::{self, Asked};
use crate::error::{Fault, Result};
use crate::limits::{SKIP_MAX, TOP_DEFAULT, TOP_MAX};
use crate::text_index::{Visible, definition_of};
use crate::{Call, Front, response, vectors};

/// The parameters of a posted search.
const KNOWN: [&str; 21] = [
    "count",
    "facets",
    "filter",
    "highlight",
    "highlightPostTag",
    "highlightPreTag",
    "minimumCoverage",
    "orderby",
    "queryType",
    "scoringParameters",
    "scoringProfile",
    "scoringStatistics",
    "search",
    "searchFields",
    "searchMode",
    "select",
    "sessionId",
    "skip",
    "top",
    "vectorFilterMode",
    "vectorQueries",
];

/// The results that a client asks for in all; more than a page has come in several.
const ASKED_MAX: usize = 1_000_000_000;

/// A search with its place in the sequence of pages.
pub(crate) struct Paged {
    request: SearchRequest,
    /// How many results the client wants in all; none means all there are.
    asked: Option<usize>,
    pub(crate) page: usize,
    coverage: Option<f64>,
}

impl Paged {
    pub(crate) fn read(asked: &Asked<'_>) -> Result<Self> {
        asked.check("search", &KNOWN)?;
        let query_types = [
            ("simple", Some(QueryType::Simple)),
            ("full", Some(QueryType::Full)),
            ("semantic", None),
        ];
        let query_type = match asked.word(&asked::QUERY_TYPE, &query_types)? {
            Some(None) => return Err(Fault::gap("Semantic queries")),
            Some(Some(query_type)) => query_type,
            None => QueryType::default(),
        };
        let modes = [("any", SearchMode::Any), ("all", SearchMode::All)];
        let statistics =
            [("local", ScoringStatistics::Local), ("global", ScoringStatistics::Global)];
        let wanted = asked.number(&asked::TOP, ASKED_MAX)?;
        let page = wanted.unwrap_or(TOP_DEFAULT).min(TOP_MAX);
        let (vector_queries, vector_filter_mode) = match asked {
            Asked::Posted(body) => vectors::read(body)?,
            Asked::Address(_) => (Vec::new(), VectorFilterMode::default()),
        };
        let request = SearchRequest {
            search: asked.text(&asked::SEARCH)?,
            query_type,
            search_mode: asked.word(&asked::SEARCH_MODE, &modes)?.unwrap_or_default(),
            search_fields: asked.list(&asked::SEARCH_FIELDS)?,
            filter: asked.text(&asked::FILTER)?,
            order_by: asked.list(&asked::ORDER_BY)?,
            select: asked.list(&asked::SELECT)?,
            facets: asked.texts(&asked::FACETS)?,
            highlight: asked.list(&asked::HIGHLIGHT)?,
            highlight_pre_tag: asked.text(&asked::PRE_TAG)?,
            highlight_post_tag: asked.text(&asked::POST_TAG)?,
            scoring_profile: asked.text(&asked::PROFILE)?,
            scoring_parameters: asked.texts(&asked::SCORING)?,
            scoring_statistics: asked.word(&asked::STATISTICS, &statistics)?.unwrap_or_default(),
            count: asked.switch(&asked::COUNT)?,
            skip: asked.number(&asked::SKIP, SKIP_MAX)?.unwrap_or(0),
            // One more than the page has, to learn whether there is another page.
            top: if wanted.is_some_and(|wanted| wanted <= TOP_MAX) { page } else { page + 1 },
            vector_queries,
            vector_filter_mode,
        };
        let coverage = asked.percentage(&asked::COVERAGE)?;
        Ok(Self { request, asked: wanted, page, coverage })
    }

    /// The body that asks for the next page, if the server has cut this one short.
    fn next(&self, asked: &Asked<'_>, results: &SearchResults) -> Option<Map<String, Value>> {
        let skip = self.request.skip + self.page;
        if results.hits.len() <= self.page || skip > SKIP_MAX {
            return None;
        }
        let mut body = asked.to_body();
        body.insert("skip".to_owned(), skip.into());
        if let Some(wanted) = self.asked {
            body.insert("top".to_owned(), (wanted - self.page).into());
        }
        Some(body)
    }
}

impl Front {
    /// What searches of an index see, and what they need beside it.
    async fn seen(&self, call: &Call, index: &Arc<Index>) -> Result<Arc<Visible>> {
        let account = &call.sender.account;
        match call.options.waits.unwrap_or(false) {
            true => self.texts.visible_with_all(account, index).await,
            false => self.texts.visible(account, index).await,
        }
    }

    /// The synonym maps that fields of this index name.
    async fn synonyms(&self, call: &Call, index: &Index) -> Result<SynonymMaps> {
        let mut maps = SynonymMaps::new();
        // Most indexes have none, and then nothing is read.
        if !index.definition.contains("\"synonymMaps\":[\"") {
            return Ok(maps);
        }
        let records = self.indexes.records(&call.sender.account, RecordKind::SynonymMap).await?;
        for record in records {
            let body: Value = serde_json::from_slice(&record.body).map_err(Fault::internal)?;
            let rules = body["synonyms"].as_str().unwrap_or_default();
            let map = SynonymMap::parse(&record.name, rules).map_err(Fault::internal)?;
            maps.insert(record.name, Arc::new(map));
        }
        Ok(maps)
    }

    /// Runs a query on a thread of its own.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        call: &Call,
        index: &Arc<Index>,
        run: impl FnOnce(&SearchContext<'_>) -> lazuli_search_engine::Result<T> + Send + 'static,
    ) -> Result<T> {
        let visible = self.seen(call, index).await?;
        let synonyms = self.synonyms(call, index).await?;
        let now_ms = i64::try_from(call.received_ms).unwrap_or(i64::MAX);
        let turn = self.searches.clone().acquire_owned().await.map_err(Fault::internal)?;
        let query = move || {
            let shards = [visible.snapshot.clone()];
            let definition = &*visible.definition;
            let result =
                run(&SearchContext { definition, shards: &shards, synonyms: &synonyms, now_ms });
            drop(turn);
            result
        };
        Ok(spawn_blocking(query).await.map_err(Fault::internal)??)
    }
}

pub(crate) async fn search(
    front: &Front,
    call: &Call,
    name: &str,
    posted: Option<Value>,
) -> Result<Response> {
    let asked = Asked::new(posted, &call.options)?;
    let paged = Paged::read(&asked)?;
    let index = front.index(call, name).await?;
    let request = paged.request.clone();
    let run = move |context: &SearchContext<'_>| lazuli_search_engine::search(context, &request);
    let mut results = front.query(call, &index, run).await?;
    let next = paged.next(&asked, &results);
    results.hits.truncate(paged.page);
    let mut body = Map::new();
    if let Some(count) = results.count {
        body.insert("@odata.count".to_owned(), count.into());
    }
    if paged.coverage.is_some() {
        // The text index of an index is whole, or it is not searched.
        body.insert("@search.coverage".to_owned(), json!(100.0));
    }
    if let Some(facets) = results.facets {
        body.insert("@search.facets".to_owned(), Value::Object(facets));
    }
    if let Some(next) = next {
        let link = format!(
            "{}/indexes('{}')/docs/search.post.search?api-version={}",
            call.options.root,
            index.name,
            call.options.get("api-version").unwrap_or_default()
        );
        body.insert("@search.nextPageParameters".to_owned(), Value::Object(next));
        body.insert("@odata.nextLink".to_owned(), link.into());
    }
    let hits = results.hits.into_iter().map(|hit| {
        let mut one = Map::new();
        one.insert("@search.score".to_owned(), json!(hit.score));
        if let Some(highlights) = hit.highlights {
            one.insert("@search.highlights".to_owned(), Value::Object(highlights));
        }
        one.extend(hit.document);
        Value::Object(one)
    });
    body.insert("value".to_owned(), hits.collect());
    Ok(response::text(StatusCode::OK, Value::Object(body).to_string()))
}

/// The tokens that an analyzer makes of a text.
pub(crate) async fn analyze(
    front: &Front,
    call: &Call,
    name: &str,
    body: Value,
) -> Result<Response> {
    let index = front.index(call, name).await?;
    let definition = definition_of(&index)?;
    let run = move || lazuli_search_engine::analyze(&definition, &body);
    let tokens = spawn_blocking(run).await.map_err(Fault::internal)??;
    let tokens: Vec<Value> = tokens
        .into_iter()
        .map(|token| {
            json!({
                "token": token.token,
                "startOffset": token.start_offset,
                "endOffset": token.end_offset,
                "position": token.position,
            })
        })
        .collect();
    Ok(response::json(StatusCode::OK, &json!({ "tokens": tokens })))
}

/// What a search text means: the query that it becomes, in Lucene's notation. It is asked for as a search is.
pub(crate) async fn explain(
    front: &Front,
    call: &Call,
    name: &str,
    body: Value,
) -> Result<Response> {
    let asked = Asked::new(Some(body), &call.options)?;
    let request = Paged::read(&asked)?.request;
    let index = front.index(call, name).await?;
    let (definition, synonyms) = (definition_of(&index)?, front.synonyms(call, &index).await?);
    let run = move || {
        let text = request.search.as_deref().unwrap_or("*");
        let (kind, mode) = (request.query_type, request.search_mode);
        lazuli_search_engine::explain(&definition, &synonyms, text, kind, mode)
    };
    let query = spawn_blocking(run).await.map_err(Fault::internal)??;
    Ok(response::json(StatusCode::OK, &json!({ "query": query })))
}
