//! The end of a transaction. Once COMMIT has been sent there is no taking back: a cancel request could even make the server
//! acknowledge what it has not replicated. If the answer is lost, the server is asked what became of the transaction.

use std::time::Duration;

use lazuli_store::{Error, Result, StoreReason};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{DatabaseReason, failed, is, is_refusal, timed_out};
use crate::limits::{
    ANSWER_TIME_MAX, COMMIT_BYTES_PER_SECOND, COMMIT_TIME_MAX, OUTCOME_INTERVAL, OUTCOME_TIME_MAX,
};
use crate::pool::Lease;
use crate::session::{Life, Session};
use crate::sql::Sql;
use crate::store::Shared;

pub(crate) struct Ending<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) xid: &'a str,
    /// How much is written, which decides how long it may take.
    pub(crate) bytes: usize,
}

/// Runs the statements that end a transaction, COMMIT among them, and answers whether it has committed.
pub(crate) async fn finish(
    ending: Ending<'_>,
    lease: Lease,
    statements: impl AsyncFnOnce(&Session) -> Result<(), tokio_postgres::Error>,
) -> Result<()> {
    let Ending { shared, xid, bytes } = ending;
    let time = COMMIT_TIME_MAX + Duration::from_secs((bytes / COMMIT_BYTES_PER_SECOND) as u64);
    let error = match timeout(time, statements(lease.session())).await {
        Ok(Ok(())) => {
            lease.done();
            shared.took_write();
            return Ok(());
        }
        Ok(Err(error)) if is_refusal(&error) => {
            let told = failed(&error);
            // The server has rolled back, and nothing is under way.
            lease.done();
            if is(&error, &tokio_postgres::error::SqlState::DISK_FULL) {
                shared.is_full(&told);
            }
            return Err(told);
        }
        Ok(Err(error)) => failed(&error),
        Err(_) => timed_out(),
    };
    let life = lease.session().life.clone();
    let (pool, permit) = lease.kill();
    pool.database.suspect();
    // The connection that the permit stood for is closed, and the question needs one.
    drop(permit);
    ask(shared, xid, &life, error).await
}

/// Asks what became of a transaction until it is decided. An error says that it may have committed.
async fn ask(shared: &Shared, xid: &str, life: &Life, error: Error) -> Result<()> {
    let until = Instant::now() + OUTCOME_TIME_MAX;
    while Instant::now() < until {
        match status(shared, xid, life).await {
            Ok(Some(Outcome::Committed)) => return Ok(()),
            Ok(Some(Outcome::InProgress)) => sleep(OUTCOME_INTERVAL).await,
            Ok(Some(Outcome::Aborted)) => {
                let message = "the connection was lost, and the database has not committed";
                return Err(Error::unavailable(StoreReason::Down, message).context(error.message()));
            }
            Ok(None) => break,
            // The database may come back.
            Err(_) => sleep(OUTCOME_INTERVAL * 10).await,
        }
    }
    Err(Error::unavailable(DatabaseReason::OutcomeUnknown, error.message()))
}

enum Outcome {
    Committed,
    Aborted,
    InProgress,
}

/// None if the server cannot know: the id may have been given to another transaction since.
async fn status(shared: &Shared, xid: &str, life: &Life) -> Result<Option<Outcome>> {
    let lease = shared.writes.lease().await?;
    let session = lease.session();
    let asked = async {
        let [status] = session.prepared([Sql::Status]).await?;
        let row = session.client.query_one(&status, &[&xid]).await?;
        Ok(row.try_get::<_, Option<String>>(0)?)
    };
    let status = lease.run(ANSWER_TIME_MAX, asked).await?;
    Ok(match status.as_deref() {
        Some("committed") if lease.session().life == *life => Some(Outcome::Committed),
        Some("aborted") => Some(Outcome::Aborted),
        Some("in progress") if lease.session().life == *life => Some(Outcome::InProgress),
        _ => None,
    })
}
