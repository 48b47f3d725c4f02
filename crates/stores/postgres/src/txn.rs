//! Transactions: the guards are locked first, in a statement of their own, at READ COMMITTED. What the holder before has written
//! is visible to every statement behind the lock, and nobody else writes under the guards until the transaction ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{join3, try_join};
use lazuli_env::BoxFuture;
use lazuli_store::{
    Direction, KeyRange, Page, PageLimit, Reader, Result, StoreReason, Txn, Write, check_sizes,
};
use tokio_postgres::types::ToSql;

use crate::commit::{Ending, finish};
use crate::error::{GUARD_MISSING, is, moved};
use crate::fault::Fault;
use crate::key::{Arrays, columns};
use crate::limits::{ANSWER_TIME_MAX, PAGE_TIME_MAX};
use crate::pool::Lease;
use crate::reader::scan_in;
use crate::rows;
use crate::session::Session;
use crate::sql::Sql;
use crate::store::Shared;

/// An open transaction that holds the locks of its guards.
pub(crate) struct Transaction {
    shared: Arc<Shared>,
    lease: Lease,
    /// Its id, by which its outcome can be asked for.
    xid: String,
}

impl Transaction {
    pub(crate) async fn begin(shared: Arc<Shared>, mut guards: Vec<Bytes>) -> Result<Self> {
        guards.sort_unstable();
        guards.dedup();
        let lease = shared.writes.lease().await?;
        let begun = begin(lease.session(), &guards);
        let xid = lease.run_on(ANSWER_TIME_MAX, begun).await?;
        Ok(Self { shared, lease, xid })
    }

    async fn commit(self, writes: Vec<Write>) -> Result<()> {
        check_sizes(&writes)?;
        let Self { shared, lease, xid } = self;
        let bytes = writes.iter().map(Write::bytes).sum();
        let ending = Ending { shared: &shared, xid: &xid, bytes };
        finish(ending, lease, async |session| write(session, &writes).await).await
    }
}

/// Opens the transaction and locks the guards, in one trip. Answers with the transaction's id.
async fn begin(session: &Session, guards: &[Bytes]) -> Result<String, Fault> {
    let lock = lock_statement(guards);
    let [begin, lock] = session.prepared([Sql::Begin, lock]).await?;
    let begun = session.client.execute(&begin, &[]);
    match try_join(begun, lock_guards(session, &lock, guards)).await {
        Ok((_, xid)) => Ok(xid),
        Err(error) if is(&error, GUARD_MISSING) => Err(moved().into()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn lock_statement(guards: &[Bytes]) -> Sql {
    match guards {
        [] => Sql::LockAlone,
        [_] => Sql::LockOne,
        _ => Sql::LockMany,
    }
}

/// Locks the guards, which are sorted and different. Everything that is sent behind it fails if one is missing.
pub(crate) async fn lock_guards(
    session: &Session,
    lock: &tokio_postgres::Statement,
    guards: &[Bytes],
) -> Result<String, tokio_postgres::Error> {
    let keys = Arrays::of(guards);
    let one = columns(guards.first().map_or(&[], |guard| &guard[..]));
    let count = keys.count();
    let parameters: &[&(dyn ToSql + Sync)] = match guards {
        [] => &[],
        [_] => &[&one.head, &one.hash],
        _ => &[&keys.heads, &keys.hashes, &count],
    };
    session.client.query_one(lock, parameters).await?.try_get(1)
}

/// Sends deletes, puts and COMMIT in one trip. Answers with the first error of them.
async fn write(session: &Session, writes: &[Write]) -> Result<(), tokio_postgres::Error> {
    // Of two writes to one key the later one counts. Sorted, so that two transactions lock rows in the same order.
    let last: BTreeMap<&Bytes, &Write> = writes.iter().map(|write| (write.key(), write)).collect();
    let deleted = last.iter().filter(|(_, write)| matches!(write, Write::Delete(_)));
    let deleted = Arrays::of(deleted.map(|(key, _)| *key));
    let mut values: Vec<&[u8]> = Vec::with_capacity(last.len());
    let put = last.iter().filter_map(|(key, write)| match write {
        Write::Put(_, value) => {
            values.push(value);
            Some(*key)
        }
        Write::Delete(_) => None,
    });
    let put = Arrays::of(put);
    let [delete, insert, commit] = session.prepared([Sql::Delete, Sql::Put, Sql::Commit]).await?;
    let deleting = async {
        match deleted.heads.is_empty() {
            true => Ok(0),
            false => session.client.execute(&delete, &[&deleted.heads, &deleted.hashes]).await,
        }
    };
    let putting = async {
        match put.heads.is_empty() {
            true => Ok(0),
            false => {
                let parameters: [&(dyn ToSql + Sync); 4] =
                    [&put.heads, &put.hashes, &put.tails, &values];
                session.client.execute(&insert, &parameters).await
            }
        }
    };
    let committing = session.client.execute(&commit, &[]);
    // After an error in front of it, COMMIT rolls back, and does not say so.
    let (deleting, putting, committing) = join3(deleting, putting, committing).await;
    deleting?;
    putting?;
    committing?;
    Ok(())
}

impl Reader for Transaction {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let none = Arrays::default();
            let value = rows::get(self.lease.session(), key, &none);
            self.lease.run_on(ANSWER_TIME_MAX, value).await
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let row_bytes = &self.shared.row_bytes;
            let page = scan_in(self.lease.session(), range, direction, limit, row_bytes);
            self.lease.run_on(PAGE_TIME_MAX, page).await
        })
    }
}

impl Txn for Transaction {
    /// Runs in a task of its own: a caller that goes away does not cut a commit off half-way.
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>> {
        let runtime = self.shared.database.runtime.clone();
        let task = runtime.spawn((*self).commit(writes));
        Box::pin(async move {
            match task.await {
                Ok(committed) => committed,
                Err(error) => Err(lazuli_store::Error::internal(StoreReason::Panicked, error)),
            }
        })
    }
}
