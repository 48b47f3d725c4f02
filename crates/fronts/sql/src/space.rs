//! What the endpoint has learned of one version of a sharded database: its tables' columns, and plans of statements.
//!
//! It holds no snapshot, because movers wait for old snapshots to be dropped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lazuli_pg::Field;
use lazuli_sharded_sql::{Snapshot, TableName};

use crate::error::SqlError;
use crate::limits::{PLAN_TEXT_BYTES_MAX, PLANS_MAX};
use crate::plan::{ColumnFacts, Context, Facts, Plan, Spread, plan, views};
use crate::shard::Connection;
use crate::types::ShardTypes;

/// A statement with its plan.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Under which it is prepared on the shards.
    pub(crate) id: u64,
    pub(crate) text: String,
    /// The types of parameters that the client has named; 0 or missing: not named.
    pub(crate) types: Vec<u32>,
    pub(crate) plan: Plan,
    /// Whether it may change settings of the session that it runs in.
    pub(crate) changes_settings: bool,
    /// As the catalog shard describes it.
    pub(crate) description: OnceLock<Arc<Description>>,
    /// The columns that shards send for a last step.
    pub(crate) columns: OnceLock<Arc<Description>>,
    /// The parts of [`Spread::Gather`], in order, or the query of [`Plan::CopyQuery`].
    pub(crate) parts: Vec<Arc<Self>>,
}

impl Planned {
    fn new(text: &str, types: &[u32], mut plan: Plan) -> Self {
        let mut parts = Vec::new();
        if let Plan::Routed(routed) = &mut plan
            && let Spread::Gather(gather) = &mut routed.spread
        {
            let plans = std::mem::take(&mut gather.parts).into_iter();
            parts = plans.map(|(text, plan)| Arc::new(Self::new(&text, &[], plan))).collect();
        }
        if let Plan::CopyQuery(copy) = &mut plan {
            let inner = std::mem::replace(&mut copy.plan, Plan::Empty);
            parts.push(Arc::new(Self::new(&copy.query, &[], inner)));
        }
        Self {
            id: next_statement_id(),
            text: text.to_owned(),
            types: types.to_vec(),
            plan,
            changes_settings: changes_settings(text),
            description: OnceLock::new(),
            columns: OnceLock::new(),
            parts,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) parameters: Vec<u32>,
    /// None if it answers no rows.
    pub(crate) fields: Option<Vec<Field>>,
}

static LAST_ID: AtomicU64 = AtomicU64::new(0);

pub(crate) fn next_statement_id() -> u64 {
    LAST_ID.fetch_add(1, Ordering::Relaxed) + 1
}

#[derive(Debug, Default)]
pub(crate) struct Space {
    pub(crate) version: u64,
    pub(crate) facts: Facts,
    plans: Mutex<Plans>,
    /// How types of users' own are translated, by the shard's number; none where nothing is to be translated.
    pub(crate) types: HashMap<u32, Arc<ShardTypes>>,
    /// The names of types by their numbers, as the catalog shard writes them.
    pub(crate) type_names: Mutex<HashMap<(u32, i32), String>>,
}

/// Two generations: what is not used while one fills up is gone with the next.
#[derive(Debug, Default)]
struct Plans {
    young: HashMap<Box<str>, Vec<Arc<Planned>>>,
    old: HashMap<Box<str>, Vec<Arc<Planned>>>,
}

/// Columns of all tables. A default is taken to differ from shard to shard if it calls a function.
const COLUMNS: &str = "SELECT n.nspname, c.relname, a.attname, a.atttypid, a.attcollation <> t.typcollation, \
     a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE '%(%', false) \
     OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE '%CURRENT_%', false) \
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
     WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') \
     AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'lazuli') ORDER BY c.oid, a.attnum";

/// The queries of all views, with the schemas of all names.
const VIEWS: &str = "BEGIN; SET LOCAL search_path TO ''; \
     SELECT n.nspname, c.relname, pg_get_viewdef(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'lazuli') ORDER BY c.oid LIMIT 10000; \
     COMMIT";

impl Space {
    pub(crate) async fn load(
        snapshot: &Snapshot,
        catalog: &mut Connection,
    ) -> Result<Self, SqlError> {
        let mut facts = Facts::default();
        for row in catalog.simple(COLUMNS).await? {
            let [Some(schema), Some(table), Some(column), oid, collated, volatile] = row.as_slice()
            else {
                continue;
            };
            let table = TableName::new(schema, table);
            if !snapshot.tables.contains_key(&table) {
                continue;
            }
            let is = |value: &Option<String>| value.as_deref() == Some("t");
            facts.tables.entry(table).or_default().columns.push(ColumnFacts {
                name: column.clone(),
                oid: oid.as_deref().and_then(|oid| oid.parse().ok()).unwrap_or(0),
                is_collated: is(collated),
                is_volatile: is(volatile),
            });
        }
        for row in catalog.simple(VIEWS).await? {
            if let [Some(schema), Some(view), Some(definition)] = row.as_slice()
                && let Some(query) = views::read(definition)
            {
                facts.views.insert(TableName::new(schema, view), query);
            }
        }
        Ok(Self { version: snapshot.version, facts, ..Self::default() })
    }

    /// The plan of a statement, from before or made now.
    pub(crate) fn plan(
        &self,
        text: &str,
        types: &[u32],
        snapshot: &Snapshot,
        search_path: &[String],
    ) -> Result<Arc<Planned>, SqlError> {
        // The path decides what names mean; sessions that change it share nothing with the others.
        let is_shared = search_path == ["public"] && text.len() <= PLAN_TEXT_BYTES_MAX;
        if is_shared && let Some(found) = self.find(text, types) {
            return Ok(found);
        }
        let context = Context { snapshot, facts: &self.facts, search_path };
        let planned = Arc::new(Planned::new(text, types, plan(text, &context)?));
        if is_shared {
            let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.add(planned.clone());
        }
        Ok(planned)
    }

    /// The names of types, as a statement casts to them.
    pub(crate) async fn type_names(
        &self,
        catalog: &mut Connection,
        types: &[(u32, i32)],
    ) -> Result<Vec<String>, SqlError> {
        let missing: Vec<_> = {
            let known = self.type_names.lock().unwrap_or_else(PoisonError::into_inner);
            types.iter().filter(|it| !known.contains_key(it)).copied().collect()
        };
        if !missing.is_empty() {
            let calls: Vec<_> = missing
                .iter()
                .map(|(oid, modifier)| format!("format_type({oid}, {modifier})"))
                .collect();
            let rows = catalog.simple(&format!("SELECT {}", calls.join(", "))).await?;
            let names = rows.into_iter().next().unwrap_or_default();
            let mut known = self.type_names.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, name) in missing.into_iter().zip(names) {
                known.insert(key, name.unwrap_or_else(|| "text".to_owned()));
            }
        }
        let known = self.type_names.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(types.iter().map(|key| known.get(key).cloned().unwrap_or_default()).collect())
    }

    fn find(&self, text: &str, types: &[u32]) -> Option<Arc<Planned>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |list: Option<&Vec<Arc<Planned>>>| {
            list.and_then(|list| list.iter().find(|it| it.types == types).cloned())
        };
        if let Some(found) = of(plans.young.get(text)) {
            return Some(found);
        }
        let found = of(plans.old.get(text))?;
        plans.add(found.clone());
        Some(found)
    }
}

/// Whether a statement calls the function that sets settings.
pub(crate) fn changes_settings(text: &str) -> bool {
    text.as_bytes().windows(10).any(|it| it.eq_ignore_ascii_case(b"set_config"))
}

impl Plans {
    fn add(&mut self, planned: Arc<Planned>) {
        if self.young.len() >= PLANS_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let list = self.young.entry(planned.text.as_str().into()).or_default();
        // Statements that differ in the types alone are few.
        if list.len() < 16 {
            list.push(planned);
        }
    }
}
