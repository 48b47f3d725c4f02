//! The store as the engine sees it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::{
    Copies, Error, KeyRange, Loading, Reader, Reads, Result, Shortage, Store, StoreHealth, Txn,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::database::Database;
use crate::fault::Fault;
use crate::key::Bounds;
use crate::limits::{
    DELETE_KEYS_MAX, FULL_TIME, LONG_SNAPSHOT_LIFE_MAX, LONG_SNAPSHOTS_MAX, PAGE_TIME_MAX,
};
use crate::load::Load;
use crate::pool::{Lease, Pool};
use crate::reader::{OneRead, Snapshot, StaleRead, refused};
use crate::rows::RowBytes;
use crate::schema::Tables;
use crate::session::Session;
use crate::settings::Settings;
use crate::size::size;
use crate::sql::Sql;
use crate::standby::{self, Standbys};
use crate::txn::Transaction;

/// A shard's store, or the catalog's, in one schema of a PostgreSQL database. Any number of processes may have it open.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) database: Arc<Database>,
    pub(crate) reads: Arc<Pool>,
    pub(crate) writes: Arc<Pool>,
    /// The standbys, if the address may name some and they may be read.
    standbys: Option<Standbys>,
    pub(crate) row_bytes: RowBytes,
    /// Long snapshots that may still be opened.
    long: Arc<Semaphore>,
    /// When the server last said that its disk is full, and how.
    full: Mutex<Option<(Instant, Error)>>,
}

impl PostgresStore {
    /// Connects, and creates the tables if they are not there yet. Fails if the database cannot be reached or used.
    pub async fn open(settings: Settings) -> Result<Self> {
        let store = Self::start(settings)?;
        match store.shared.writes.lease().await {
            Ok(_) => Ok(store),
            Err(error) => {
                store.shared.close();
                Err(error)
            }
        }
    }

    /// The same without waiting for the database: calls answer `Unavailable` until it can be reached, and the tables are
    /// created then. Fails only for settings that can never work. To be called within a Tokio runtime.
    pub fn start(settings: Settings) -> Result<Self> {
        let (reads, writes) = (settings.read_connections, settings.write_connections);
        let standby_reads = settings.reads_standbys && settings.hosts.len() > 1;
        let standby_connections = settings.standby_connections;
        let database = Database::new(settings, Tables::Store)?;
        let shared = Shared {
            standbys: standby_reads
                .then(|| Standbys::new(database.standbys(), standby_connections)),
            reads: Pool::new(database.clone(), reads),
            writes: Pool::new(database.clone(), writes),
            database,
            row_bytes: RowBytes::default(),
            long: Arc::new(Semaphore::new(LONG_SNAPSHOTS_MAX)),
            full: Mutex::default(),
        };
        let shared = Arc::new(shared);
        if shared.standbys.is_some() {
            shared.database.runtime.spawn(standby::watch(Arc::downgrade(&shared)));
        }
        Ok(Self { shared })
    }

    /// The highest timeline that this process has seen of the database; what the settings say before the first connection.
    /// Remember it, and pass it as [`Settings::timeline_least`] at the next start.
    pub fn timeline(&self) -> u32 {
        self.shared.database.timeline()
    }
}

impl Shared {
    pub(crate) fn is_full(&self, error: &Error) {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        *full = Some((Instant::now(), error.clone()));
    }

    pub(crate) fn took_write(&self) {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if full.is_some() {
            *full = None;
        }
    }

    /// How long a snapshot for several reads is kept, and what a long one needs beside.
    fn keeping(&self, reads: Reads) -> Result<(Duration, Option<OwnedSemaphorePermit>)> {
        if reads != Reads::Long {
            return Ok((self.database.settings.snapshot_life, None));
        }
        let permit = self.long.clone().try_acquire_owned().map_err(|_| refused())?;
        Ok((LONG_SNAPSHOT_LIFE_MAX, Some(permit)))
    }

    pub(crate) fn standbys(&self) -> Option<&Standbys> {
        self.standbys.as_ref()
    }

    /// A connection to a standby that is not too far behind.
    pub(crate) async fn standby_lease(&self) -> Result<Lease> {
        match &self.standbys {
            Some(standbys) => standbys.lease().await,
            None => Err(standby::unused("the address names no standby to read from")),
        }
    }

    fn close(&self) {
        self.database.close();
        self.reads.close();
        self.writes.close();
        self.standbys.iter().for_each(Standbys::close);
    }
}

impl Store for PostgresStore {
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let shared = self.shared.clone();
            if reads == Reads::One {
                let reader: Box<dyn Reader> =
                    Box::new(OneRead { shared, guards: distinct(guards) });
                return Ok(reader);
            }
            let (life, permit) = shared.keeping(reads)?;
            let lease = shared.reads.lease().await?;
            let guards = distinct(guards);
            let reader: Box<dyn Reader> =
                Box::new(Snapshot::begin(shared, lease, &guards, life, permit).await?);
            Ok(reader)
        })
    }

    fn stale_snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let (shared, distinct) = (self.shared.clone(), distinct(guards));
            if reads == Reads::One {
                let reader: Box<dyn Reader> =
                    Box::new(StaleRead(OneRead { shared, guards: distinct }));
                return Ok(reader);
            }
            let begun = async {
                let (life, permit) = shared.keeping(reads)?;
                let lease = shared.standby_lease().await?;
                Snapshot::begin(shared.clone(), lease, &distinct, life, permit).await
            };
            match begun.await {
                Ok(snapshot) => Ok(Box::new(snapshot) as Box<dyn Reader>),
                // It may lack a guard only because it is behind, and it may have gone away.
                Err(_) => self.snapshot(guards, reads).await,
            }
        })
    }

    fn copies(&self) -> Option<Copies> {
        self.shared.standbys.as_ref().map(Standbys::state)
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        Box::pin(async move {
            let transaction = Transaction::begin(self.shared.clone(), guards).await?;
            let txn: Box<dyn Txn> = Box::new(transaction);
            Ok(txn)
        })
    }

    fn load(&self, guards: Vec<Bytes>) -> Box<dyn Loading + '_> {
        Box::new(Load::new(self.shared.clone(), guards))
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            if range.is_empty() || keys_max == 0 {
                return Ok(0);
            }
            let lease = self.shared.writes.lease().await?;
            delete(&lease, range, keys_max).await
        })
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        Box::pin(async move {
            if range.is_empty() {
                return Ok(0);
            }
            let lease = self.shared.reads.lease().await?;
            let schema = &self.shared.database.settings.schema;
            lease.run(PAGE_TIME_MAX, size(lease.session(), schema, range)).await
        })
    }

    fn health(&self) -> StoreHealth {
        if let Some(away) = self.shared.database.away() {
            return StoreHealth::Failed(away);
        }
        let full = self.shared.full.lock().unwrap_or_else(PoisonError::into_inner);
        match &*full {
            Some((since, error)) if since.elapsed() < FULL_TIME => {
                StoreHealth::Full(Shortage::Tight, error.clone())
            }
            _ => StoreHealth::Well,
        }
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        self.shared.close();
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Guards are counted, so none may be there twice.
fn distinct(guards: &[Bytes]) -> Vec<Bytes> {
    let mut guards = guards.to_vec();
    guards.sort_unstable();
    guards.dedup();
    guards
}

/// Deletes slices, each by a statement. More than one of them are a transaction, so that what is counted goes all at once.
async fn delete(lease: &Lease, range: &KeyRange, keys_max: usize) -> Result<usize> {
    let session = lease.session();
    if keys_max <= DELETE_KEYS_MAX {
        return lease.run(PAGE_TIME_MAX, delete_slice(session, range, keys_max)).await;
    }
    let begun = async {
        let [begin] = session.prepared([Sql::Begin]).await?;
        Ok(session.client.execute(&begin, &[]).await?)
    };
    lease.run_on(PAGE_TIME_MAX, begun).await?;
    let mut deleted = 0;
    while deleted < keys_max {
        let slice = DELETE_KEYS_MAX.min(keys_max - deleted);
        let gone = lease.run_on(PAGE_TIME_MAX, delete_slice(session, range, slice)).await?;
        deleted += gone;
        if gone < slice {
            break;
        }
    }
    let committed = async {
        let [commit] = session.prepared([Sql::Commit]).await?;
        Ok(session.client.execute(&commit, &[]).await?)
    };
    lease.run(PAGE_TIME_MAX, committed).await?;
    Ok(deleted)
}

async fn delete_slice(session: &Session, range: &KeyRange, keys: usize) -> Result<usize, Fault> {
    let [delete] = session.prepared([Sql::DeleteRange]).await?;
    let bounds = Bounds::of(range);
    let (start, start_tail) = (&bounds.start.0[..], &bounds.start.1[..]);
    let (end, end_tail) = (&bounds.end.0[..], &bounds.end.1[..]);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&start, &start_tail, &end, &end_tail, &(keys as i64)];
    let deleted = session.client.execute(&delete, &parameters).await?;
    Ok(deleted as usize)
}
