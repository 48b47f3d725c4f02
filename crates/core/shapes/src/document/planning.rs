//! Plans of queries: by the index that is kept now, and where a filter and an order ask for different ways of reading, by which of
//! them reads less.

use lazuli_engine::{Component, KeyRange};
use lazuli_query::plan::{Access, Order, Plan, plan, plan_in_order};
use lazuli_query::{Checked, Position};
use lazuli_value::Value;

use super::Documents;
use super::collection::Collection;
use super::items::Scope;
use super::key::PartitionKey;
use super::outline::{Everywhere, Outlines};
use super::query::{QueryResult, Run, index_changed};
use super::schema::IndexSchema;
use super::spans::{is_equality, spans_of, steps_of};

/// How often a query is planned anew because the policy changes meanwhile.
const PLANS_MAX: usize = 4;
/// The most entries that are counted to choose between two ways of reading: some tenths of a second, once in a query.
const COUNTED_MAX: u64 = 200_000;

/// How the pages of a query with an order are made, which must not change from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// There was no page yet.
    Open,
    /// Items are read in the order that is asked for, until a page is full.
    Streams,
    /// What passes the filter is sorted.
    Sorts,
}

impl Course {
    /// What the page before has begun.
    pub(super) fn of(position: Option<&Position>) -> Self {
        match position {
            Some(Position::Item { .. }) => Self::Streams,
            Some(Position::Key(_)) => Self::Sorts,
            // What adds up has no order.
            Some(Position::Sums { .. }) | None => Self::Open,
        }
    }
}

/// What is to be planned.
pub(super) struct Wish<'a> {
    pub(super) checked: &'a Checked,
    pub(super) scope: &'a Scope,
    pub(super) course: Course,
    /// Rows of a page.
    pub(super) rows: u64,
}

impl Documents {
    /// What a query would read, without reading it.
    pub async fn plan(
        &self,
        collection: &Collection,
        checked: &Checked,
        scope: &Scope,
    ) -> QueryResult<Plan> {
        let rows = lazuli_query::limits::PAGE_ROWS_DEFAULT as u64;
        let wish = Wish { checked, scope, course: Course::Open, rows };
        Ok(self.chosen(collection, &wish).await?.0)
    }

    /// The plan of a query, by an index that is kept now: the caller may have learned of the container before its policy
    /// changed. A view of the partitions shows whether it has: their epochs do too, then.
    pub(super) async fn current_plan(
        &self,
        collection: &Collection,
        wish: &Wish<'_>,
    ) -> QueryResult<(Collection, Plan, KeyRange)> {
        let mut collection = collection.clone();
        for _ in 0..PLANS_MAX {
            let (plan, routes) = self.chosen(&collection, wish).await?;
            let reads_index = plan.is_count
                || !matches!(plan.access, Access::Nothing | Access::OneRow | Access::Items);
            if !reads_index {
                return Ok((collection, plan, routes));
            }
            drop(self.engine.shard_views(collection.container.id, &routes).await?);
            let now = self.current(&collection).await?;
            if now.index_generation() == collection.index_generation() {
                return Ok((collection, plan, routes));
            }
            collection = now;
        }
        Err(index_changed().into())
    }

    /// A container as this process knows it by now.
    pub(super) async fn current(
        &self,
        collection: &Collection,
    ) -> lazuli_engine::Result<Collection> {
        let container = self.engine.router().container(collection.container.id).await?;
        let definition = self.rules.definition(&container)?;
        Ok(Collection { container, definition })
    }

    /// The plan of a query and the routes that it looks at.
    async fn chosen(
        &self,
        collection: &Collection,
        wish: &Wish<'_>,
    ) -> QueryResult<(Plan, KeyRange)> {
        let mut schema = IndexSchema::new(collection);
        let mut sorting = plan(wish.checked, &schema);
        let mut routes = collection.routes_in(wish.scope)?;
        if let Some(key) = fixed_key(&sorting, collection) {
            routes = routes.intersect(&collection.routes_of(&key)?);
        }
        let is_shardlet = is_one_shardlet(&sorting, wish.scope, collection);
        let reads_items = is_shardlet
            && is_wide(&sorting, collection)
            && !matches!(sorting.access, Access::Nothing | Access::OneRow);
        // The pages of a sort are made in one way only, whatever the container has become since the first one.
        if reads_items || sorting.order == Order::Merged {
            // One shardlet is read as a whole: its entries lie among those of all others.
            sorting.access = Access::Items;
            sorting.order = Order::Any;
            (sorting.is_exact, sorting.is_count) = (false, false);
        }
        // Entries of what has expired are there until it is swept away.
        sorting.is_count &= collection.definition.ttl_s.is_none();
        // Whether an index has the order, if it has all items.
        schema.everywhere = Everywhere::All;
        let streaming = match wish.course {
            _ if sorting.access == Access::Nothing => None,
            Course::Sorts => None,
            Course::Open | Course::Streams => plan_in_order(wish.checked, &schema),
        };
        match streaming {
            None => return Ok((sorting, routes)),
            // The page before was sorted by this index, and so is this one.
            Some(streaming) if wish.course == Course::Streams => return Ok((streaming, routes)),
            Some(_) => {}
        }
        let outlines = self.outlines(collection).await?;
        schema.everywhere = outlines.as_ref().map_or(Everywhere::Unknown, Outlines::everywhere);
        let Some(streaming) = plan_in_order(wish.checked, &schema) else {
            return Ok((sorting, routes));
        };
        // Entries of arrays and objects say only that they are there, not in which order.
        if self.has_containers(collection, &streaming.access).await? {
            return Ok((sorting, routes));
        }
        let asked = Asked { wish, routes: &routes, is_shardlet, outlines: outlines.as_ref() };
        match self.streams_sooner(collection, &schema, &sorting, &asked).await? {
            true => Ok((streaming, routes)),
            false => Ok((sorting, routes)),
        }
    }

    /// Whether it costs less to read items in their order until a page is full than to sort all that pass the filter.
    ///
    /// With N items of which M pass, a page of R rows reads M items if they are sorted, and about R * N / M in their order. So the
    /// bound is where M * M is R * N. Over all pages it is the same.
    async fn streams_sooner(
        &self,
        collection: &Collection,
        schema: &IndexSchema,
        sorting: &Plan,
        asked: &Asked<'_>,
    ) -> QueryResult<bool> {
        let Asked { wish, routes, is_shardlet, outlines } = asked;
        let default = plan(wish.checked, schema);
        if default.order == Order::Merged && !(*is_shardlet && is_wide(&default, collection)) {
            return Ok(true);
        }
        let spans = match (&sorting.access, outlines) {
            (Access::Items, Some(outlines)) => outlines.spans(routes),
            // Items that all look different are not counted.
            (Access::Items, None) => return Ok(false),
            (access, _) => spans_of(collection, access, routes)?,
        };
        let level = &wish.checked.level;
        let limit = level.limit.map_or(u64::MAX, |limit| limit.saturating_add(level.offset));
        let rows = wish.rows.min(limit).max(1);
        let mut all = 0_u64;
        let views = self.engine.shard_views(collection.container.id, routes).await?;
        for view in &views {
            for partition in view.partitions() {
                all += self.engine.partition_size(partition, view.shard).await?.items;
            }
        }
        drop(views);
        let most = rows.saturating_mul(all).isqrt().min(COUNTED_MAX);
        let mut run = Run::new(self, collection, (*routes).clone());
        Ok(run.count_up_to(&spans, most + 1).await? > most)
    }
}

/// What a choice between two plans depends on beside them.
struct Asked<'a> {
    wish: &'a Wish<'a>,
    routes: &'a KeyRange,
    is_shardlet: bool,
    outlines: Option<&'a Outlines>,
}

/// The partition key that the filter of a query fixes.
fn fixed_key(plan: &Plan, collection: &Collection) -> Option<PartitionKey> {
    if plan.partition_key.is_empty() || plan.partition_key.len() > collection.definition.levels() {
        return None;
    }
    let component = |value: &Option<Value>| match value {
        None => Some(Component::Undefined),
        Some(Value::Object(_) | Value::Array(_)) => None,
        Some(value) => PartitionKey::from_values(std::slice::from_ref(value)).ok()?.0.pop(),
    };
    plan.partition_key.iter().map(component).collect::<Option<_>>().map(PartitionKey)
}

/// Whether a plan reads more of an index than the entries of single values in one shardlet, which lie side by side.
fn is_wide(plan: &Plan, collection: &Collection) -> bool {
    !is_equality(&plan.access) || is_by_key(&plan.access, collection)
}

/// Whether an access looks for the values of the partition key itself, which all items of a shardlet have.
fn is_by_key(access: &Access, collection: &Collection) -> bool {
    let Access::Index(scan) = access else { return false };
    let steps = steps_of(&scan.path);
    collection.definition.key_paths.iter().any(|path| path.steps() == steps)
}

fn is_one_shardlet(plan: &Plan, scope: &Scope, collection: &Collection) -> bool {
    let levels = collection.definition.levels();
    match scope {
        Scope::Key(key) if key.is_none() || key.0.len() == levels => true,
        _ => fixed_key(plan, collection).is_some_and(|key| key.0.len() == levels),
    }
}
