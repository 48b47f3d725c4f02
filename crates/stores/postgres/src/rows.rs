//! Reads rows: one value, a page of a range, the guards. All of it works inside and outside of transactions.
//!
//! A statement cannot be told to stop at a number of bytes without slowing every scan down. So it is told a number of rows, by
//! what rows have weighed so far. What comes beyond the end of a page is read and dropped as it comes.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::TryStreamExt;
use lazuli_store::{Direction, Error, Item, KeyRange, Page, PageLimit, after_key};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::error::moved;
use crate::fault::Fault;
use crate::key::{Arrays, Bounds, columns, joined};
use crate::limits::{FIRST_ROWS_LEAST, FIRST_ROWS_MAX};
use crate::session::Session;
use crate::sql::Sql;

type Parameters<'a, const N: usize> = [&'a (dyn ToSql + Sync); N];

/// What rows of the store weigh, roughly.
pub(crate) struct RowBytes(AtomicU64);

impl Default for RowBytes {
    fn default() -> Self {
        Self(AtomicU64::new(512))
    }
}

impl RowBytes {
    fn saw(&self, rows: usize, bytes: usize) {
        if rows >= 16 {
            let before = self.0.load(Ordering::Relaxed);
            let now = (before * 3 + (bytes / rows) as u64) / 4;
            self.0.store(now.max(1), Ordering::Relaxed);
        }
    }

    /// How many rows the first statement of a scan asks for.
    pub(crate) fn first_rows(&self, limit: PageLimit) -> usize {
        let fit = 2 * limit.bytes.min(PageLimit::MAX.bytes) as u64 / self.0.load(Ordering::Relaxed);
        let most = (fit as usize).clamp(FIRST_ROWS_LEAST, FIRST_ROWS_MAX);
        most.min(all_rows(limit))
    }
}

/// One more than the page holds tells whether there is more.
pub(crate) fn all_rows(limit: PageLimit) -> usize {
    limit.items.clamp(1, PageLimit::MAX.items) + 1
}

pub(crate) async fn get(
    session: &Session,
    key: &[u8],
    guards: &Arrays<'_>,
) -> Result<Option<Bytes>, Fault> {
    let key = columns(key);
    if guards.heads.is_empty() {
        let [get] = session.prepared([Sql::Get]).await?;
        let row = session.client.query_opt(&get, &[&key.head, &key.hash]).await?;
        return Ok(match row {
            Some(row) => Some(Bytes::copy_from_slice(row.try_get(0)?)),
            None => None,
        });
    }
    let [get] = session.prepared([Sql::GetGuarded]).await?;
    let parameters: Parameters<'_, 4> = [&key.head, &key.hash, &guards.heads, &guards.hashes];
    let row = session.client.query_one(&get, &parameters).await?;
    if row.try_get::<_, i64>(1)? != guards.count() {
        return Err(moved().into());
    }
    Ok(row.try_get::<_, Option<&[u8]>>(0)?.map(Bytes::copy_from_slice))
}

/// A page in the making.
pub(crate) struct Scan<'a> {
    direction: Direction,
    limit: PageLimit,
    row_bytes: &'a RowBytes,
    /// What has not been read yet.
    rest: KeyRange,
    page: Page,
    bytes: usize,
    is_long: bool,
}

/// How a statement of a scan ended.
struct Fetched {
    rows: usize,
    bytes: usize,
    /// Long keys came, which the index does not sort.
    has_long: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        row_bytes: &'a RowBytes,
    ) -> Self {
        let is_long = !Bounds::of(range).are_heads();
        let (page, rest) = (Page::default(), range.clone());
        Self { direction, limit, row_bytes, rest, page, bytes: 0, is_long }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn into_page(self) -> Page {
        self.page
    }

    /// Reads the next rows, and says whether the page is complete. All calls but one must be in one transaction.
    pub(crate) async fn fetch(
        &mut self,
        session: &Session,
        statements: &[Statement; 2],
        rows: usize,
        guards: &Arrays<'_>,
    ) -> Result<bool, Fault> {
        let (items, bytes) = (self.page.items.len(), self.bytes);
        let mut fetched = self.rows(session, statements, rows, guards).await?;
        if fetched.has_long {
            self.page.items.truncate(items);
            (self.bytes, self.page.more, self.is_long) = (bytes, false, true);
            fetched = self.rows(session, statements, rows, guards).await?;
        }
        self.row_bytes.saw(fetched.rows, fetched.bytes);
        if self.page.more || fetched.rows < rows {
            return Ok(true);
        }
        if let Some((last, _)) = self.page.items.last() {
            match self.direction {
                Direction::Forward => self.rest.start = after_key(last),
                Direction::Backward => self.rest.end = Some(last.clone()),
            }
            self.is_long = self.is_long || !Bounds::of(&self.rest).are_heads();
        }
        Ok(false)
    }

    /// How many rows the next statement asks for.
    pub(crate) fn next_rows(&self) -> usize {
        let average = self.bytes / self.page.items.len().max(1);
        let left = self.limit.bytes.min(PageLimit::MAX.bytes).saturating_sub(self.bytes);
        let fit = left / average.max(1) * 5 / 4 + FIRST_ROWS_LEAST;
        fit.min(all_rows(self.limit) - self.page.items.len())
    }

    /// The statements that a scan uses: for short keys, and for long ones.
    pub(crate) fn statements(direction: Direction) -> [Sql; 2] {
        match direction {
            Direction::Forward => [Sql::Scan, Sql::ScanLong],
            Direction::Backward => [Sql::ScanBack, Sql::ScanLongBack],
        }
    }

    async fn rows(
        &mut self,
        session: &Session,
        [short, long]: &[Statement; 2],
        most: usize,
        guards: &Arrays<'_>,
    ) -> Result<Fetched, Fault> {
        let bounds = Bounds::of(&self.rest);
        let ((start, start_tail), (end, end_tail)) = (&bounds.start, &bounds.end);
        let (start, start_tail) = (&start[..], &start_tail[..]);
        let (end, end_tail) = (&end[..], &end_tail[..]);
        let (most, count) = (most as i64, guards.count());
        let (heads, hashes) = (&guards.heads, &guards.hashes);
        let rows = if self.is_long {
            let parameters: Parameters<'_, 8> =
                [&start, &start_tail, &end, &end_tail, &most, heads, hashes, &count];
            session.client.query_raw(long, parameters).await?
        } else {
            let parameters: Parameters<'_, 6> = [&start, &end, &most, heads, hashes, &count];
            session.client.query_raw(short, parameters).await?
        };
        let mut rows = pin!(rows);
        let mut fetched = Fetched { rows: 0, bytes: 0, has_long: false };
        while let Some(row) = rows.try_next().await? {
            self.take(&row, &mut fetched)?;
        }
        Ok(fetched)
    }

    fn take(&mut self, row: &Row, fetched: &mut Fetched) -> Result<(), Fault> {
        let Some(head) = row.try_get::<_, Option<&[u8]>>(0)? else { return Err(moved().into()) };
        let (tail, value): (&[u8], &[u8]) = (row.try_get(1)?, row.try_get(2)?);
        let weight = head.len() + tail.len() + value.len();
        fetched.rows += 1;
        fetched.bytes += weight;
        fetched.has_long |= !self.is_long && !tail.is_empty();
        if self.page.more || fetched.has_long {
            return Ok(());
        }
        if self.limit.is_full(self.page.items.len(), self.bytes, weight) {
            self.page.more = true;
            return Ok(());
        }
        let key = joined(head, tail);
        if self.page.items.last().is_some_and(|last| !self.follows(last, &key)) {
            let message = "the database returned rows out of order";
            return Err(Error::internal("rows-out-of-order", message).into());
        }
        self.bytes += weight;
        self.page.items.push((key, Bytes::copy_from_slice(value)));
        Ok(())
    }

    fn follows(&self, (last, _): &Item, key: &Bytes) -> bool {
        match self.direction {
            Direction::Forward => last < key,
            Direction::Backward => last > key,
        }
    }
}
