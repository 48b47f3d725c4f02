//! Queries: what a plan names is read and pushed into its execution.
//!
//! Entries of indexes are read from all shards at once and merged by entry and item. A page goes on by the place of the last
//! item alone: an entry and an item, no partition. So it survives restarts, splits, merges, moves, and new indexes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{
    Continuation, Error, FanOut, Item, ItemScan, KeyRange, OnFailure, PREFIX_BYTES, PageLimit,
    ShardView, Space, after_key, yield_now,
};
use lazuli_query::evaluate::Context;
use lazuli_query::execute::{Execution, Page, PageOptions, Wants};
use lazuli_query::plan::{Access, Order, Plan};
use lazuli_query::{Checked, Position, QueryError};
use lazuli_value::View;

use super::Documents;
use super::collection::Collection;
use super::definition::Generation;
use super::item::{IndexDirective, Place, shown};
use super::items::Scope;
use super::operation::Work;
use super::planning::{Course, Wish};
use super::reason::DocumentReason;
use super::spans::{Spans, all_spans, spans_of};

/// Items that are read at once.
const ITEMS_AT_ONCE: PageLimit = PageLimit { items: 512, bytes: 1024 * 1024 };

/// One page of a query.
pub struct QueryRequest {
    pub checked: Arc<Checked>,
    /// That of the query with its parameters.
    pub fingerprint: u64,
    pub context: Context,
    pub options: PageOptions,
    pub scope: Scope,
    pub continuation: Option<lazuli_query::Continuation>,
    /// By when a page that can end early does, in time since the clock's beginning.
    pub deadline: Option<Duration>,
    /// Whether an order that the policy has no index for is refused, as the service does, and not made by sorting.
    pub is_strict: bool,
}

/// What a query answered.
#[derive(Debug)]
pub struct QueryPage {
    pub page: Page,
    pub plan: Plan,
    pub work: Work,
}

/// Why a query was not answered.
#[derive(Debug)]
pub enum QueryFailure {
    /// What the engine or the shape says.
    Core(Error),
    /// What the query language says.
    Query(QueryError),
}

impl From<Error> for QueryFailure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<QueryError> for QueryFailure {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

pub(super) type QueryResult<T> = Result<T, QueryFailure>;

/// What a place of an execution begins with: how the items were read.
const BY_ITEM: u8 = 0;
const BY_ENTRY: u8 = 1;

impl Documents {
    /// The next page of a query.
    pub async fn query(
        &self,
        collection: &Collection,
        request: QueryRequest,
    ) -> QueryResult<QueryPage> {
        let QueryRequest { checked, fingerprint, context, options, scope, .. } = request;
        let goes_on = request.continuation.as_ref().map(|it| &it.position);
        let wish = Wish {
            checked: &checked,
            scope: &scope,
            course: Course::of(goes_on),
            rows: options.rows as u64,
        };
        let (collection, plan, routes) = self.current_plan(collection, &wish).await?;
        if request.is_strict && plan.unserved_order.is_some() {
            let message =
                "the order by does not have a corresponding index that it can be served from";
            return Err(Error::invalid(DocumentReason::OrderNotIndexed, message).into());
        }
        let resume = match goes_on {
            Some(Position::Item { place, rows }) => Some((place.clone(), rows.is_some())),
            Some(Position::Sums { place, .. }) => Some((place.clone(), false)),
            Some(Position::Key(_)) | None => None,
        };
        let is_sorted = plan.order == Order::Merged;
        let mut execution = Execution::new(
            checked,
            fingerprint,
            context,
            options,
            is_sorted,
            request.continuation,
        )?;
        let deadline = request.deadline;
        let collection = &collection;
        let mut run = Run { deadline, ..Run::new(self, collection, routes) };
        let is_end = run.push(&plan, resume, &mut execution).await?;
        let work = run.work;
        Ok(QueryPage { page: execution.finish(is_end)?, plan, work })
    }
}

/// One page while it is read.
pub(super) struct Run<'a> {
    pub(super) documents: &'a Documents,
    pub(super) collection: &'a Collection,
    pub(super) routes: KeyRange,
    deadline: Option<Duration>,
    pub(super) work: Work,
}

impl Collection {
    /// The index that queries use.
    pub(super) fn index_generation(&self) -> Option<Generation> {
        self.definition.index().map(|index| index.generation)
    }
}

pub(super) fn index_changed() -> Error {
    Error::unavailable("index-changed", "another index has taken the place of the query's")
}

impl<'a> Run<'a> {
    pub(super) fn new(
        documents: &'a Documents,
        collection: &'a Collection,
        routes: KeyRange,
    ) -> Self {
        Self { documents, collection, routes, deadline: None, work: Work::default() }
    }
}

impl Run<'_> {
    /// Views of the shards to read entries from, all of which show the index that the plan is made for.
    pub(super) async fn views(&self) -> lazuli_engine::Result<Vec<ShardView>> {
        let engine = &self.documents.engine;
        let views = engine.shard_views(self.collection.container.id, &self.routes).await?;
        // Read after the views: what the container says is never older than the epochs that they were opened by.
        let now = self.documents.current(self.collection).await?;
        match now.index_generation() == self.collection.index_generation() {
            true => Ok(views),
            false => Err(index_changed()),
        }
    }

    /// Reads what the plan names, behind a place of the page before, and says whether that was all.
    async fn push(
        &mut self,
        plan: &Plan,
        resume: Option<(Vec<u8>, bool)>,
        execution: &mut Execution,
    ) -> QueryResult<bool> {
        let spans = match &plan.access {
            Access::Nothing => return Ok(true),
            Access::OneRow => {
                execution.push_nothing()?;
                return Ok(true);
            }
            Access::Items if plan.is_count && self.collection.definition.index().is_some() => {
                // Every item has one outline.
                all_spans(self.collection)?
            }
            Access::Items => return self.push_items(resume, execution).await,
            access => spans_of(self.collection, access, &self.routes)?,
        };
        match spans {
            spans if plan.is_count => self.push_count(spans, resume, execution).await,
            Spans::Ordered(spans) => self.push_entries(spans, resume, execution).await,
            Spans::Set(spans) => self.push_set(&spans, resume, execution).await,
        }
    }

    /// All items of the routes, in their order.
    async fn push_items(
        &mut self,
        resume: Option<(Vec<u8>, bool)>,
        execution: &mut Execution,
    ) -> QueryResult<bool> {
        let id = self.collection.container.id;
        let mut routes = self.routes.clone();
        if let Some((place, again)) = resume {
            let place = behind_kind(&place, BY_ITEM)?;
            let start = if again { place } else { after_key(&place) };
            routes.start = routes.start.max(start);
        }
        let engine = self.documents.engine.clone();
        let mut after: Option<Continuation> = None;
        loop {
            if routes.is_empty() {
                return Ok(true);
            }
            let scan = ItemScan { space: Space::ITEMS, range: routes.clone() };
            let request = FanOut {
                // The range may begin inside of a shardlet, whose partition is asked for by its first bytes.
                routes: routes.clone(),
                limit: ITEMS_AT_ONCE,
                on_failure: OnFailure::Fail,
            };
            let page = engine.fan_out(id, &scan, &request, after.as_ref()).await?;
            for (key, item) in &page.rows {
                let place = place_of(BY_ITEM, &key[PREFIX_BYTES..]);
                if self.push_item(&place, &key[PREFIX_BYTES..], item, execution)? == Wants::NoMore {
                    return Ok(false);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(true),
            }
            if self.is_late(execution) {
                return Ok(false);
            }
            yield_now().await;
        }
    }

    pub(super) fn push_item(
        &mut self,
        place: &[u8],
        key: &[u8],
        item: &Item,
        execution: &mut Execution,
    ) -> QueryResult<Wants> {
        self.work.items_read += 1;
        self.work.bytes_read += item.payload.len() as u64;
        if !self.collection.definition.finds(IndexDirective::of(&item.payload)?) {
            return Ok(Wants::More);
        }
        let (route, row) = self.collection.split(key)?;
        let encoded = shown(self.collection.rid(), &Place { route, row }, item)?;
        Ok(execution.push(place, View::trusted(&encoded))?)
    }

    /// Whether the page has taken its time and may end.
    pub(super) fn is_late(&self, execution: &Execution) -> bool {
        let now = self.documents.engine.env().clock.uptime();
        self.deadline.is_some_and(|deadline| now >= deadline) && execution.can_pause()
    }
}

/// A place of an execution.
pub(super) fn place_of(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind], rest].concat()
}

pub(super) fn entry_place(rest: &[u8]) -> Vec<u8> {
    place_of(BY_ENTRY, rest)
}

pub(super) fn item_place(rest: &[u8]) -> Vec<u8> {
    place_of(BY_ITEM, rest)
}

pub(super) fn behind_entry_kind(place: &[u8]) -> QueryResult<Bytes> {
    behind_kind(place, BY_ENTRY)
}

pub(super) fn behind_item_kind(place: &[u8]) -> QueryResult<Bytes> {
    behind_kind(place, BY_ITEM)
}

/// The bytes of a place, if the page before read in the same way.
fn behind_kind(place: &[u8], kind: u8) -> QueryResult<Bytes> {
    match place.split_first() {
        Some((first, rest)) if *first == kind => Ok(Bytes::copy_from_slice(rest)),
        _ => {
            let message = "the continuation belongs to another way of reading";
            Err(Error::invalid(DocumentReason::BadContinuation, message).into())
        }
    }
}
