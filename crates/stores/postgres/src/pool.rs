//! Connections that are used again. Each store has two pools, so that reads and writes do not wait for each other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lazuli_store::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

use crate::database::Database;
use crate::error::{DatabaseReason, failed, is_broken, timed_out};
use crate::fault::Fault;
use crate::limits::{ACQUIRE_TIME_MAX, CLEAN_TIME_MAX, GETS_PER_CONNECTION, IDLE_TIME_MAX};
use crate::session::Session;
use crate::sql::Sql;

pub(crate) struct Pool {
    pub(crate) database: Arc<Database>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
    /// Connections that several statements may use at once, while any does.
    shared: Mutex<Vec<Weak<Lease>>>,
}

impl Pool {
    pub(crate) fn new(database: Arc<Database>, connections: usize) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(connections));
        Arc::new(Self { database, permits, idle: Mutex::default(), shared: Mutex::default() })
    }

    /// A connection for one statement that changes nothing and is no part of a transaction. Others may use it for the same
    /// at the same time; [`Lease::run_beside`] runs the statement.
    pub(crate) async fn share(self: &Arc<Self>) -> Result<Arc<Lease>> {
        if let Some(lease) = self.shared_lease() {
            return Ok(lease);
        }
        let lease = Arc::new(self.lease().await?);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|lease| lease.strong_count() > 0);
        shared.push(Arc::downgrade(&lease));
        Ok(lease)
    }

    /// One that is in use and has room for another statement.
    fn shared_lease(&self) -> Option<Arc<Lease>> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room =
            |lease: &&Weak<Lease>| (1..GETS_PER_CONNECTION).contains(&lease.strong_count());
        let leases = shared.iter().filter(has_room).filter_map(Weak::upgrade);
        leases.into_iter().find(|lease| lease.is_sound())
    }

    /// A connection that nobody else uses, within a bounded time.
    pub(crate) async fn lease(self: &Arc<Self>) -> Result<Lease> {
        if let Some(away) = self.database.away() {
            return Err(away);
        }
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => match timeout(ACQUIRE_TIME_MAX, self.permits.clone().acquire_owned()).await {
                Ok(Ok(permit)) => permit,
                _ => {
                    let message = "all connections to the database are in use";
                    return Err(Error::unavailable(DatabaseReason::Busy, message));
                }
            },
        };
        let session = match self.take() {
            Some(session) => session,
            None => self.database.connect().await?,
        };
        Ok(Lease {
            session: Some(session),
            pool: self.clone(),
            permit: Some(permit),
            is_busy: AtomicBool::new(false),
            beside: AtomicUsize::new(0),
            is_stuck: AtomicBool::new(false),
        })
    }

    fn take(&self) -> Option<Session> {
        loop {
            let session = self.idle().pop()?;
            let is_young = session.idle_since.elapsed() < IDLE_TIME_MAX;
            if session.client.is_closed() {
                // All of them may have been lost together, and the primary may be another one now.
                self.database.suspect();
            } else if is_young && self.database.is_current(&session) {
                return Some(session);
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, mut session: Session) {
        let is_wanted = self.database.away().is_none() && self.database.is_current(&session);
        if !session.client.is_closed() && is_wanted {
            session.idle_since = Instant::now();
            self.idle().push(session);
        }
    }

    pub(crate) fn close(&self) {
        self.idle().clear();
    }
}

/// A connection in use. Dropped, it returns to its pool, after a rollback if something was under way.
pub(crate) struct Lease {
    session: Option<Session>,
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
    is_busy: AtomicBool,
    /// Statements that were begun beside others and have no answer.
    beside: AtomicUsize,
    /// Whether one of them was not answered in time.
    is_stuck: AtomicBool,
}

impl Lease {
    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().expect("a lease has a session until it is dropped")
    }

    /// Something begins that must be ended before the connection is used by others.
    pub(crate) fn busy(&self) {
        self.is_busy.store(true, Ordering::Release);
    }

    /// Nothing is under way any more.
    pub(crate) fn done(&self) {
        self.is_busy.store(false, Ordering::Release);
    }

    /// Runs statements outside of a transaction: the connection is free for others after them.
    pub(crate) async fn run<T>(
        &self,
        time: Duration,
        statements: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T> {
        self.busy();
        let answer = timeout(time, statements).await;
        if !matches!(&answer, Ok(Err(Fault::Statement(error))) if is_broken(error))
            && answer.is_ok()
        {
            self.done();
        }
        self.told(answer)
    }

    /// Runs statements that begin a transaction, or are part of one: the connection stays busy.
    pub(crate) async fn run_on<T>(
        &self,
        time: Duration,
        statements: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T> {
        self.busy();
        self.told(timeout(time, statements).await)
    }

    /// Runs one statement that changes nothing, beside others of the same kind.
    pub(crate) async fn run_beside<T>(
        &self,
        time: Duration,
        statement: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T> {
        self.beside.fetch_add(1, Ordering::AcqRel);
        let answer = timeout(time, statement).await;
        match &answer {
            Ok(_) => drop(self.beside.fetch_sub(1, Ordering::AcqRel)),
            // Those that come later would wait behind it.
            Err(_) => self.is_stuck.store(true, Ordering::Release),
        }
        self.told(answer)
    }

    /// Whether another statement may be sent beside those that are under way.
    fn is_sound(&self) -> bool {
        let session = self.session();
        !self.is_stuck.load(Ordering::Acquire)
            && !session.client.is_closed()
            && self.pool.database.is_current(session)
    }

    fn told<T>(&self, answer: Result<Result<T, Fault>, Elapsed>) -> Result<T> {
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Fault::Told(error))) => Err(error),
            Ok(Err(Fault::Statement(error))) => {
                if is_broken(&error) {
                    self.pool.database.suspect();
                }
                Err(failed(&error))
            }
            Err(_) => {
                self.pool.database.suspect();
                Err(timed_out())
            }
        }
    }

    /// Closes the connection, whatever the server still does with what it was sent, and tells what it was connected to.
    pub(crate) fn kill(mut self) -> (Arc<Pool>, Option<OwnedSemaphorePermit>) {
        if let Some(session) = self.session.take() {
            session.kill();
        }
        (self.pool.clone(), self.permit.take())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if session.client.is_closed() {
            self.pool.database.suspect();
            return;
        }
        // A statement that its caller has given up is under way, too.
        let is_beside = self.beside.load(Ordering::Acquire) > 0;
        if !self.is_busy.load(Ordering::Acquire) && !is_beside {
            self.pool.put(session);
            return;
        }
        // The next user of this connection would have to wait for what is under way, and would be in its transaction.
        let (pool, permit) = (self.pool.clone(), self.permit.take());
        self.pool.database.runtime.spawn(async move {
            let ending = async {
                let [rollback] = session.prepared([Sql::Rollback]).await?;
                session.client.execute(&rollback, &[]).await
            };
            match timeout(CLEAN_TIME_MAX, ending).await {
                Ok(Ok(_)) => pool.put(session),
                Ok(Err(_)) => session.kill(),
                Err(_) => {
                    session.kill();
                    pool.database.suspect();
                }
            }
            drop(permit);
        });
    }
}
