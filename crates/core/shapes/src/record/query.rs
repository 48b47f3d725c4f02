//! Reading many records: ranges of keys, a filter, pages that go on where the last one ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes};
use lazuli_engine::{
    Continuation, Direction, FanOut, ItemKey, KeyRange, MapKind, OnFailure, Order, PREFIX_BYTES,
    PageLimit, PartitionScan, Result, RowPage, Space, View, after_key, after_prefix,
};

use super::{Record, Records, Table, row_key};

/// Whether a record belongs into the answer.
pub type Filter = Arc<dyn Fn(&Record) -> bool + Send + Sync>;

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
    fn of(&mut self, key: &Bytes) -> Result<(Arc<str>, String)> {
        let rest = key.get(PREFIX_BYTES..).unwrap_or_default();
        if let Some((route, partition_key)) = &self.last
            // No route begins another one.
            && let Some(row) = rest.strip_prefix(route.as_ref())
        {
            return Ok((partition_key.clone(), row_key(row)?));
        }
        let (route, row) = self.table.split(key)?;
        let partition_key: Arc<str> = self.table.partition_key(route)?.into();
        self.last = Some((Bytes::copy_from_slice(route), partition_key.clone()));
        Ok((partition_key, row_key(row)?))
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
        let mut names = Names { table: self.table, last: None };
        let mut rows = Vec::new();
        let (mut examined, mut bytes) = (0, 0);
        loop {
            let most = limit.items.min(EXAMINED_MAX - examined);
            let asked = PageLimit { items: most, bytes: limit.bytes };
            let page = view.scan(Space::ITEMS, &range, Direction::Forward, asked).await?;
            examined += page.items.len();
            if self.query.filter.is_none() {
                rows.reserve(page.items.len());
            }
            self.examined.fetch_add(page.items.len() as u64, Ordering::Relaxed);
            for (mut key, item) in page.items {
                let (partition_key, row_key) = names.of(&key)?;
                let (version, payload) = (item.version, item.payload);
                let record = Record { partition_key, row_key, version, payload };
                if self.query.filter.as_ref().is_none_or(|filter| filter(&record)) {
                    bytes += key.len() + record.payload.len();
                    key.advance(PREFIX_BYTES);
                    if rows.len() + 1 >= limit.items || bytes >= limit.bytes {
                        let next = Some(key.clone());
                        rows.push((key, record));
                        return Ok(RowPage { rows, bytes, next });
                    }
                    rows.push((key, record));
                }
            }
            match page.next.map(|last| last.slice(PREFIX_BYTES..)) {
                None => return Ok(RowPage { rows, bytes, next: None }),
                Some(last) if examined >= EXAMINED_MAX => {
                    return Ok(RowPage { rows, bytes, next: Some(last) });
                }
                Some(last) => range.start = after_key(&last),
            }
        }
    }
}
