//! Fan-out: one question to many partitions, a few at a time, merged into one ordered answer (S11).
//!
//! A page goes on where the one before it ended by its last sort key alone. So a continuation survives a restart, and a
//! split or merge of the partitions in between: it names a place in the order, not a partition.

use std::collections::VecDeque;
use std::future::Future;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_env::BoxFuture;
use lazuli_shardmap::layout::PREFIX_BYTES;
use lazuli_shardmap::{ContainerId, PartitionId, ShardId};
use lazuli_store::{Error, KeyRange, PageLimit, Reads, Result};

use crate::engine::{Engine, PlacedRoutes};
use crate::join::join_all;
use crate::view::View;

/// The bytes that all partitions of a merge may hold in their buffers together.
const MERGE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The rows that each partition of a merge holds in its buffer at the most.
const MERGE_ROWS: usize = 256;

/// How the sort keys of a scan relate to the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sort keys begin with the route: partitions follow one another, and only those that are needed are asked.
    ByRoute,
    /// Any other order: all partitions are asked and their answers merged.
    Merged,
}

/// What to do when a partition does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The whole page fails.
    Fail,
    /// The page holds what the others answered, and says what is missing.
    Partial,
}

/// The part of a query that runs on one partition.
pub trait PartitionScan: Send + Sync {
    type Row: Send;

    fn order(&self) -> Order;

    /// How many reads of the view a page takes.
    fn reads(&self) -> Reads {
        Reads::Several
    }

    /// Rows with sort keys after `after`, ascending, at most as many as `limit` says.
    fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> impl Future<Output = Result<RowPage<Self::Row>>> + Send;

    /// The sort key of a row.
    fn sort_key(&self, row: &Self::Row) -> Result<Bytes>;
}

/// Rows of one partition, ascending by their sort keys.
pub struct RowPage<Row> {
    pub rows: Vec<Row>,
    /// Roughly what the rows take up.
    pub bytes: usize,
    /// The sort key up to which the partition has been read, if there is more behind it.
    pub next: Option<Bytes>,
}

/// How to ask.
#[derive(Clone, Debug)]
pub struct FanOut {
    /// Only partitions with these routes are asked.
    pub routes: KeyRange,
    pub limit: PageLimit,
    pub on_failure: OnFailure,
}

/// One page of a merged answer.
#[derive(Debug)]
pub struct FanOutPage<Row> {
    pub rows: Vec<Row>,
    /// Where the next page goes on; none at the end.
    pub next: Option<Continuation>,
    /// Partitions that did not answer, under [`OnFailure::Partial`].
    pub missing: Vec<Missing>,
    /// How many partitions were asked.
    pub partitions: usize,
}

#[derive(Clone, Debug)]
pub struct Missing {
    pub partition: PartitionId,
    pub shard: ShardId,
    pub routes: KeyRange,
    pub error: Error,
}

/// A place in the order of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    container: ContainerId,
    after: Bytes,
}

const CONTINUATION_FORMAT: u8 = 1;

impl Continuation {
    /// The place right after a sort key.
    pub fn new(container: ContainerId, after: Bytes) -> Self {
        Self { container, after }
    }

    /// The sort key after which to go on.
    pub fn position(&self) -> &Bytes {
        &self.after
    }

    /// Bytes for the client to bring back.
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + self.after.len());
        bytes.put_u8(CONTINUATION_FORMAT);
        bytes.put_u32(self.container.0);
        bytes.put_slice(&self.after);
        bytes.freeze()
    }

    /// What a client brought back. It is a place and no permission: any bytes are safe.
    pub fn decode(container: ContainerId, bytes: &[u8]) -> Result<Self> {
        match bytes.split_first_chunk::<5>() {
            Some(([CONTINUATION_FORMAT, id @ ..], after)) if *id == container.0.to_be_bytes() => {
                Ok(Self { container, after: Bytes::copy_from_slice(after) })
            }
            _ => Err(Error::invalid("bad-continuation", "this is no continuation of this scan")),
        }
    }
}

/// Rows as they are gathered.
struct Gathered<Row> {
    rows: Vec<Row>,
    bytes: usize,
    /// Where the page ends, if it is full.
    end: Option<PageEnd>,
    missing: Vec<Missing>,
}

/// The end of a page with more behind it.
enum PageEnd {
    LastRow,
    /// Behind a place that a partition has named.
    At(Bytes),
}

impl Engine {
    /// One page of the answer of all partitions that hold some of the routes.
    pub async fn fan_out<S: PartitionScan>(
        &self,
        container: ContainerId,
        scan: &S,
        request: &FanOut,
        from: Option<&Continuation>,
    ) -> Result<FanOutPage<S::Row>> {
        let after = from.map(|from| &from.after);
        let mut attempt = 0;
        loop {
            let page = match scan.order() {
                Order::ByRoute => self.page_by_route(container, scan, request, after).await,
                Order::Merged => self.page_merged(container, scan, request, after).await,
            };
            match page {
                // The map changed under the scan: the page is put together anew from the same place.
                Err(error) if error.is_moved() => {
                    self.router.before_retry(container, attempt).await?;
                    attempt += 1;
                }
                page => return page,
            }
        }
    }

    async fn page_by_route<S: PartitionScan>(
        &self,
        container: ContainerId,
        scan: &S,
        request: &FanOut,
        after: Option<&Bytes>,
    ) -> Result<FanOutPage<S::Row>> {
        let mut routes = request.routes.clone();
        if let Some(after) = after {
            // The last sort key is inside the shardlet to go on with, so its partition is asked again.
            routes.start = routes.start.max(after.clone());
        }
        let places = self.places(container, &routes).await?;
        let mut gathered = Gathered { rows: Vec::new(), bytes: 0, end: None, missing: Vec::new() };
        let (mut asked, mut width) = (0, 1);
        while asked < places.len() && gathered.end.is_none() {
            let group = &places[asked..places.len().min(asked + width)];
            let pages = self.ask(container, scan, group, after, request.limit).await;
            asked += group.len();
            width = (width * 2).min(self.settings.fan_out_parallel.max(1));
            for (place, page) in group.iter().zip(pages) {
                let Some(page) = admit(page, place, request.on_failure, &mut gathered.missing)?
                else {
                    continue;
                };
                gathered.take(page, request.limit);
                if gathered.end.is_some() {
                    break;
                }
            }
        }
        let next = match gathered.end {
            Some(PageEnd::LastRow) => {
                gathered.rows.last().map(|row| scan.sort_key(row)).transpose()?
            }
            Some(PageEnd::At(place)) => Some(place),
            None => None,
        };
        Ok(FanOutPage {
            rows: gathered.rows,
            next: next.map(|after| Continuation { container, after }),
            missing: gathered.missing,
            partitions: asked,
        })
    }

    async fn page_merged<S: PartitionScan>(
        &self,
        container: ContainerId,
        scan: &S,
        request: &FanOut,
        after: Option<&Bytes>,
    ) -> Result<FanOutPage<S::Row>> {
        let places = self.places(container, &request.routes).await?;
        let limit = merge_limit(request.limit, places.len());
        let mut missing = Vec::new();
        let mut streams = Vec::new();
        for group in places.chunks(self.settings.fan_out_parallel.max(1)) {
            let pages = self.ask(container, scan, group, after, limit).await;
            for (place, page) in group.iter().zip(pages) {
                if let Some(page) = admit(page, place, request.on_failure, &mut missing)? {
                    streams.push(Stream::new(scan, place, page)?);
                }
            }
        }
        let mut rows = Vec::new();
        let mut last = None;
        while rows.len() < request.limit.items.max(1) {
            self.refill(container, scan, &mut streams, limit, request, &mut missing).await?;
            let heads = streams.iter_mut().filter(|stream| !stream.rows.is_empty());
            let lowest = heads.min_by(|a, b| a.rows[0].0.cmp(&b.rows[0].0));
            let Some((key, row)) = lowest.and_then(|stream| stream.rows.pop_front()) else { break };
            last = Some(key);
            rows.push(row);
        }
        let more = streams.iter().any(|stream| !stream.rows.is_empty() || stream.next.is_some());
        let next = last.filter(|_| more).map(|after| Continuation { container, after });
        Ok(FanOutPage { rows, next, missing, partitions: places.len() })
    }

    /// Reads on wherever a buffer ran empty before its partition did.
    async fn refill<S: PartitionScan>(
        &self,
        container: ContainerId,
        scan: &S,
        streams: &mut [Stream<'_, S::Row>],
        limit: PageLimit,
        request: &FanOut,
        missing: &mut Vec<Missing>,
    ) -> Result<()> {
        for stream in streams {
            while let (true, Some(after)) = (stream.rows.is_empty(), stream.next.take()) {
                let group = std::slice::from_ref(stream.place);
                for page in self.ask(container, scan, group, Some(&after), limit).await {
                    if let Some(page) = admit(page, stream.place, request.on_failure, missing)? {
                        *stream = Stream::new(scan, stream.place, page)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn ask<S: PartitionScan>(
        &self,
        container: ContainerId,
        scan: &S,
        places: &[PlacedRoutes],
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Vec<Result<RowPage<S::Row>>> {
        let questions = places.iter().map(|place| {
            let question: BoxFuture<'_, _> = Box::pin(async move {
                let view = self.view_to_scan(container, &place.placed, scan.reads()).await?;
                scan.page(&view, after, limit).await
            });
            question
        });
        join_all(questions.collect()).await
    }
}

/// What becomes of a partition's answer under the policy for failures.
fn admit<Row>(
    page: Result<RowPage<Row>>,
    place: &PlacedRoutes,
    on_failure: OnFailure,
    missing: &mut Vec<Missing>,
) -> Result<Option<RowPage<Row>>> {
    match (page, on_failure) {
        (Ok(page), _) => Ok(Some(page)),
        (Err(error), OnFailure::Partial) if !error.is_moved() => {
            missing.push(Missing {
                partition: place.placed.partition,
                shard: place.placed.shard,
                routes: place.routes.clone(),
                error,
            });
            Ok(None)
        }
        (Err(error), _) => Err(error.context(format_args!("partition {}", place.placed.partition))),
    }
}

impl<Row> Gathered<Row> {
    fn take(&mut self, mut page: RowPage<Row>, limit: PageLimit) {
        let most = limit.items.max(1) - self.rows.len();
        self.bytes += page.bytes;
        if page.rows.len() >= most {
            page.rows.truncate(most);
            self.end = Some(PageEnd::LastRow);
        } else if let Some(next) = page.next {
            // The partition has more than it could give in one page: the next page starts there.
            self.end = Some(PageEnd::At(next));
        }
        if self.rows.is_empty() {
            self.rows = page.rows;
        } else {
            self.rows.append(&mut page.rows);
        }
        // Each partition keeps to the limit by itself; together they may pass it once.
        if self.end.is_none() && self.bytes >= limit.bytes && !self.rows.is_empty() {
            self.end = Some(PageEnd::LastRow);
        }
    }
}

struct Stream<'a, Row> {
    place: &'a PlacedRoutes,
    rows: VecDeque<(Bytes, Row)>,
    next: Option<Bytes>,
}

impl<'a, Row> Stream<'a, Row> {
    fn new<S>(scan: &S, place: &'a PlacedRoutes, page: RowPage<Row>) -> Result<Self>
    where
        S: PartitionScan<Row = Row>,
    {
        let rows = page.rows.into_iter().map(|row| Ok((scan.sort_key(&row)?, row)));
        Ok(Self { place, rows: rows.collect::<Result<_>>()?, next: page.next })
    }
}

fn merge_limit(limit: PageLimit, partitions: usize) -> PageLimit {
    let share = MERGE_BYTES_MAX / partitions.max(1);
    PageLimit { items: limit.items.clamp(1, MERGE_ROWS), bytes: limit.bytes.min(share) }
}
