//! Snapshots: one statement for one read, a read-only transaction for several.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join;
use lazuli_env::BoxFuture;
use lazuli_store::{Direction, Error, KeyRange, Page, PageLimit, Reader, Result};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;

use crate::error::{DatabaseReason, moved, too_old};
use crate::fault::Fault;
use crate::key::Arrays;
use crate::limits::{ANSWER_TIME_MAX, PAGE_TIME_MAX};
use crate::pool::Lease;
use crate::rows::{self, RowBytes, Scan, all_rows};
use crate::session::Session;
use crate::sql::Sql;
use crate::store::Shared;

/// A snapshot for one read, which takes it together with its guards in one statement.
pub(crate) struct OneRead {
    pub(crate) shared: Arc<Shared>,
    pub(crate) guards: Vec<Bytes>,
}

impl OneRead {
    async fn get_on(&self, lease: &Lease, key: &[u8]) -> Result<Option<Bytes>> {
        let guards = Arrays::of(&self.guards);
        lease.run_beside(ANSWER_TIME_MAX, rows::get(lease.session(), key, &guards)).await
    }

    async fn scan_on(
        &self,
        lease: &Lease,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> Result<Page> {
        let guards = Arrays::of(&self.guards);
        let scan = Scan::new(range, direction, limit, &self.shared.row_bytes);
        let first = self.shared.row_bytes.first_rows(limit);
        if first == all_rows(limit) {
            let page = one_statement(lease.session(), scan, direction, first, &guards);
            return lease.run(PAGE_TIME_MAX, page).await;
        }
        let page = begin_and_scan(lease.session(), scan, direction, first, &guards);
        lease.run_on(PAGE_TIME_MAX, page).await
    }
}

impl Reader for OneRead {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.get_on(&*self.shared.reads.share().await?, key).await })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            self.scan_on(&self.shared.reads.lease().await?, range, direction, limit).await
        })
    }
}

/// The same where a standby may answer. What it cannot or may not answer, the primary does.
pub(crate) struct StaleRead(pub(crate) OneRead);

impl Reader for StaleRead {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let answered =
                async { self.0.get_on(&self.0.shared.standby_lease().await?, key).await };
            match answered.await {
                Ok(value) => Ok(value),
                Err(_) => self.0.get(key).await,
            }
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let answered = async {
                let lease = self.0.shared.standby_lease().await?;
                self.0.scan_on(&lease, range, direction, limit).await
            };
            match answered.await {
                Ok(page) => Ok(page),
                Err(_) => self.0.scan(range, direction, limit).await,
            }
        })
    }
}

async fn one_statement(
    session: &Session,
    mut scan: Scan<'_>,
    direction: Direction,
    rows: usize,
    guards: &Arrays<'_>,
) -> Result<Page, Fault> {
    let statements = session.prepared(Scan::statements(direction)).await?;
    scan.fetch(session, &statements, rows, guards).await?;
    Ok(scan.into_page())
}

/// A page of several statements needs a transaction, so that they read the same state.
async fn begin_and_scan(
    session: &Session,
    mut scan: Scan<'_>,
    direction: Direction,
    rows: usize,
    guards: &Arrays<'_>,
) -> Result<Page, Fault> {
    let [begin] = session.prepared([Sql::BeginSnapshot]).await?;
    let statements = session.prepared(Scan::statements(direction)).await?;
    let begun = async { Ok::<_, Fault>(session.client.execute(&begin, &[]).await?) };
    let first = scan.fetch(session, &statements, rows, guards);
    let (_, is_complete) = try_join(begun, first).await?;
    if !is_complete {
        go_on(session, &mut scan, &statements).await?;
    }
    Ok(scan.into_page())
}

/// The rest of a page, in a transaction that has checked its guards.
async fn go_on(
    session: &Session,
    scan: &mut Scan<'_>,
    statements: &[tokio_postgres::Statement; 2],
) -> Result<(), Fault> {
    let none = Arrays::default();
    while !scan.fetch(session, statements, scan.next_rows(), &none).await? {}
    Ok(())
}

/// A page in a transaction that has checked its guards.
pub(crate) async fn scan_in(
    session: &Session,
    range: &KeyRange,
    direction: Direction,
    limit: PageLimit,
    row_bytes: &RowBytes,
) -> Result<Page, Fault> {
    let mut scan = Scan::new(range, direction, limit, row_bytes);
    if scan.is_empty() {
        return Ok(scan.into_page());
    }
    let statements = session.prepared(Scan::statements(direction)).await?;
    let first = row_bytes.first_rows(limit);
    if !scan.fetch(session, &statements, first, &Arrays::default()).await? {
        go_on(session, &mut scan, &statements).await?;
    }
    Ok(scan.into_page())
}

/// A snapshot for several reads: a read-only transaction, ended when it is dropped or when its time is over.
pub(crate) struct Snapshot {
    shared: Arc<Shared>,
    lease: Arc<Mutex<Option<Arc<Lease>>>>,
    end: AbortHandle,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Snapshot {
    pub(crate) async fn begin(
        shared: Arc<Shared>,
        lease: Lease,
        guards: &[Bytes],
        life: Duration,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Self> {
        let begun = begin(lease.session(), guards, permit.is_some());
        lease.run_on(ANSWER_TIME_MAX, begun).await?;
        let lease = Arc::new(Mutex::new(Some(Arc::new(lease))));
        let ended = Arc::downgrade(&lease);
        let end = shared.database.runtime.spawn(async move {
            tokio::time::sleep(life).await;
            if let Some(lease) = ended.upgrade() {
                drop(lease.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
        });
        Ok(Self { shared, lease, end: end.abort_handle(), _permit: permit })
    }

    fn lease(&self) -> Result<Arc<Lease>> {
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        lease.clone().ok_or_else(too_old)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.end.abort();
    }
}

/// Opens the transaction and checks the guards in one trip. The check takes the snapshot, also without guards.
async fn begin(session: &Session, guards: &[Bytes], is_long: bool) -> Result<(), Fault> {
    let [begin, keep, check] =
        session.prepared([Sql::BeginSnapshot, Sql::KeepOpen, Sql::CheckGuards]).await?;
    let guards = Arrays::of(guards);
    let begun = session.client.execute(&begin, &[]);
    let kept = async {
        match is_long {
            true => session.client.execute(&keep, &[]).await,
            false => Ok(0),
        }
    };
    let parameters: [&(dyn ToSql + Sync); 2] = [&guards.heads, &guards.hashes];
    let checked = session.client.query_one(&check, &parameters);
    let (_, (_, row)) = try_join(begun, try_join(kept, checked)).await?;
    match row.try_get::<_, i64>(0)? == guards.count() {
        true => Ok(()),
        false => Err(moved().into()),
    }
}

impl Reader for Snapshot {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let lease = self.lease()?;
            let none = Arrays::default();
            lease.run_on(ANSWER_TIME_MAX, rows::get(lease.session(), key, &none)).await
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let lease = self.lease()?;
            let row_bytes = &self.shared.row_bytes;
            let page = scan_in(lease.session(), range, direction, limit, row_bytes);
            lease.run_on(PAGE_TIME_MAX, page).await
        })
    }
}

/// The answer to a long snapshot when there are as many as the store allows.
pub(crate) fn refused() -> Error {
    Error::unavailable(
        DatabaseReason::SnapshotRefused,
        "the database has as many long snapshots as it may",
    )
}
