//! Where the bytes are: in rows beside the files' own, or in an object store. It is written down with the first file that
//! may need it, and never changes after that.

use std::sync::Arc;

use lazuli_store::objects::Objects;
use lazuli_store::{Error, Result};
use tokio_postgres::Row;

use crate::error::DatabaseReason;
use crate::fault::Fault;
use crate::limits::ANSWER_TIME_MAX;
use crate::pool::Pool;
use crate::session::Session;

/// What the row of the place begins with, in the table of formats.
const MARK: &str = "objects";

pub(super) enum Place {
    Rows,
    Objects {
        objects: Arc<dyn Objects>,
        /// The folder of these blocks. No other database has the same, also in the same bucket.
        root: String,
    },
}

impl Place {
    /// Compares where the blocks are with where they are wanted, and writes it down if there are none yet.
    pub(super) async fn settle(pool: &Arc<Pool>, wanted: Option<Arc<dyn Objects>>) -> Result<Self> {
        let lease = pool.lease().await?;
        let schema = &pool.database.settings.schema;
        let place = wanted.as_ref().map(|it| it.place());
        let root = lease.run(ANSWER_TIME_MAX, settle(lease.session(), schema, place)).await?;
        Ok(match (wanted, root) {
            (Some(objects), Some(root)) => Self::Objects { objects, root },
            _ => Self::Rows,
        })
    }

    pub(super) fn objects(&self) -> Option<(&Arc<dyn Objects>, &str)> {
        match self {
            Self::Rows => None,
            Self::Objects { objects, root } => Some((objects, root)),
        }
    }
}

/// The folder of objects, if the blocks are objects.
async fn settle(
    session: &Session,
    schema: &str,
    wanted: Option<&str>,
) -> Result<Option<String>, Fault> {
    let client = &session.client;
    let known = format!("SELECT part FROM {schema}.format WHERE part LIKE '{MARK} %'");
    let rows = client.query(&known, &[]).await?;
    if wanted.is_none() && rows.is_empty() {
        return Ok(None);
    }
    if let Some(found) = rows.first() {
        return check(found, wanted).map(Some);
    }
    // Two processes may do this at once: the second waits, and finds what the first has written down.
    let lock = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
         LOCK TABLE {schema}.format IN SHARE ROW EXCLUSIVE MODE"
    );
    client.batch_execute(&lock).await?;
    let outcome = async {
        if let Some(found) = client.query(&known, &[]).await?.first() {
            return check(found, wanted);
        }
        let files = format!("SELECT 1 FROM {schema}.files LIMIT 1");
        if client.query_opt(&files, &[]).await?.is_some() {
            return Err(elsewhere("rows of this database").into());
        }
        let mark = format!(
            "INSERT INTO {schema}.format SELECT '{MARK} ' || gen_random_uuid() || ' ' || $1::text, 1 \
             RETURNING part"
        );
        check(&client.query_one(&mark, &[&wanted.unwrap_or_default()]).await?, wanted)
    };
    let outcome = outcome.await;
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await?;
    outcome.map(Some)
}

/// The folder that a row names, if its place is the one that is wanted.
fn check(row: &Row, wanted: Option<&str>) -> Result<String, Fault> {
    let text: &str = row.try_get(0)?;
    let mut parts = text.splitn(3, ' ').skip(1);
    let (root, place) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match wanted {
        Some(wanted) if wanted == place => Ok(root.to_owned()),
        _ => Err(elsewhere(place).into()),
    }
}

fn elsewhere(place: &str) -> Error {
    let message = format!(
        "large blobs of this database are kept in {place}: name the same place, or another schema"
    );
    Error::invalid(DatabaseReason::BlocksElsewhere, message)
}
