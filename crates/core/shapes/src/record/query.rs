//! Reading many records: ranges of keys, a filter, pages that go on where the last one ended.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use lazuli_engine::{
    Continuation, Direction, FanOut, Item, ItemKey, KeyRange, MapKind, OnFailure, Order,
    PREFIX_BYTES, PageLimit, PartitionScan, Result, RowPage, Space, View, after_key, after_prefix,
};

use super::{Record, RecordRef, Records, Table, damaged};

/// Whether a record belongs into the answer.
pub type Filter = Arc<dyn Fn(&RecordRef<'_>) -> bool + Send + Sync>;

/// The records that a partition reads before it answers with what it has, matching or not.
const EXAMINED_MAX: usize = 10_000;

/// Which records a query looks at, by their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordRange {
    /// Every record of the container.
    All,
    /// Partition keys from the first up to, but not including, the second.
    Partitions { from: String, to: Option<String> },
    /// Row keys of one partition key, from the first up to, but not including, the second.
    Rows { partition_key: String, from: String, to: Option<String> },
}

/// A query and how much of its answer to give at once.
#[derive(Clone)]
pub struct Query {
    pub range: RecordRange,
    pub filter: Option<Filter>,
    pub limit: PageLimit,
    /// The last record of the page before.
    pub after: Option<(String, String)>,
}

/// A page of an answer.
#[derive(Debug)]
pub struct RecordPage {
    pub records: Vec<Record>,
    /// Where to go on, which need not be a record that is in the page; none at the end.
    pub next: Option<(String, String)>,
    /// How many records were read for it.
    pub examined: u64,
    /// How many partitions were asked.
    pub partitions: usize,
}

impl Records {
    pub async fn query(&self, name: &str, query: &Query) -> Result<RecordPage> {
        let table = self.table(name).await?;
        let (routes, range) = table.ranges(&query.range)?;
        let after = match &query.after {
            Some((partition_key, row_key)) => {
                let key = table.key(partition_key, row_key)?;
                Some(Continuation::new(table.container.id, key.bytes().slice(PREFIX_BYTES..)))
            }
            None => None,
        };
        let request = FanOut { routes, limit: query.limit, on_failure: OnFailure::Fail };
        let scan = RecordScan { table: &table, range, query, examined: AtomicU64::new(0) };
        let page = self.engine.fan_out(table.container.id, &scan, &request, after.as_ref()).await?;
        let next = page.next.map(|next| table.names_behind(next.position())).transpose()?;
        let examined = scan.examined.load(Ordering::Relaxed);
        Ok(RecordPage { records: page.rows, next, examined, partitions: page.partitions })
    }
}

impl Table {
    /// The routes and the range of `route | row key` that hold every record asked for, and as few others as the map allows.
    fn ranges(&self, range: &RecordRange) -> Result<(KeyRange, KeyRange)> {
        let is_hashed = self.container.kind == MapKind::Hash;
        let range = match range {
            RecordRange::Rows { partition_key, from, to } => {
                let route = self.route(partition_key)?;
                let end = match to {
                    Some(to) => Some(join(&route, to)),
                    None => after_prefix(&route),
                };
                KeyRange::new(join(&route, from), end)
            }
            RecordRange::Partitions { from, to } if !is_hashed => {
                let end = to.as_ref().map(|to| self.route(to)).transpose()?;
                KeyRange::new(self.route(from)?, end)
            }
            // Hashed routes know no order of keys: the filter of the query picks out what it asks for.
            RecordRange::All | RecordRange::Partitions { .. } => KeyRange::all(),
        };
        Ok((range.clone(), range))
    }

    /// Like [`Table::names`], of a key without its prefix.
    fn names_behind(&self, sort_key: &Bytes) -> Result<(String, String)> {
        self.names(ItemKey::new(self.container.id, Space::ITEMS, sort_key, &[]).bytes())
    }
}

fn join(route: &[u8], row_key: &str) -> Bytes {
    [route, row_key.as_bytes()].concat().into()
}

/// Reads the names of records one after another, of which most share their partition key.
struct Names<'a> {
    table: &'a Table,
    /// The route of the record before, and what it stands for.
    last: Option<(Bytes, Arc<str>)>,
}

impl Names<'_> {
    /// The partition key and the row key in a stored key.
    fn of<'k>(&mut self, key: &'k [u8]) -> Result<(&Arc<str>, &'k str)> {
        let rest = key.get(PREFIX_BYTES..).unwrap_or_default();
        // No route begins another one.
        let known = self.last.as_ref().and_then(|(route, _)| rest.strip_prefix(&route[..]));
        let row = match known {
            Some(row) => row,
            None => {
                let (route, row) = self.table.split(key)?;
                let partition_key = self.table.partition_key(route)?.into();
                self.last = Some((Bytes::copy_from_slice(route), partition_key));
                row
            }
        };
        let (_, partition_key) = self.last.as_ref().ok_or_else(damaged)?;
        Ok((partition_key, std::str::from_utf8(row).map_err(|_| damaged())?))
    }
}

struct RecordScan<'a> {
    table: &'a Table,
    range: KeyRange,
    query: &'a Query,
    examined: AtomicU64,
}

impl PartitionScan for RecordScan<'_> {
    type Row = Record;

    fn order(&self) -> Order {
        Order::ByRoute
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<Record>> {
        let mut range = self.range.clone();
        if let Some(after) = after {
            range.start = range.start.max(after_key(after));
        }
        let filter = self.query.filter.as_deref();
        // Of what a filter passes over nothing is kept, so that it can look at more at once.
        let at_once = if filter.is_some() { EXAMINED_MAX } else { limit.items };
        let mut names = Names { table: self.table, last: None };
        let mut page = RowPage { rows: Vec::new(), bytes: 0, next: None };
        let (mut examined, mut is_full) = (0, false);
        loop {
            let items = at_once.min(EXAMINED_MAX - examined);
            let asked = PageLimit { items, bytes: limit.bytes };
            let visit = |key: &Bytes, item: Item| {
                examined += 1;
                let (partition_key, row_key) = names.of(key)?;
                let time = item.time();
                let Item { version, payload, .. } = item;
                let record = RecordRef { partition_key, row_key, version, time, payload: &payload };
                if filter.is_some_and(|filter| !filter(&record)) {
                    return Ok(ControlFlow::Continue(()));
                }
                page.bytes += key.len() + payload.len();
                let (partition_key, row_key) = (partition_key.clone(), row_key.to_owned());
                page.rows.push(Record { partition_key, row_key, version, time, payload });
                is_full = page.rows.len() >= limit.items || page.bytes >= limit.bytes;
                Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            let next = view.walk(Space::ITEMS, &range, Direction::Forward, asked, visit).await?;
            let next = next.map(|last| last.slice(PREFIX_BYTES..));
            match next {
                Some(last) if !is_full && examined < EXAMINED_MAX => range.start = after_key(&last),
                next => {
                    page.next = next;
                    self.examined.fetch_add(examined as u64, Ordering::Relaxed);
                    return Ok(page);
                }
            }
        }
    }

    fn sort_key(&self, row: &Record) -> Result<Bytes> {
        let key = self.table.key(&row.partition_key, &row.row_key)?;
        Ok(key.bytes().slice(PREFIX_BYTES..))
    }
}
