//! Bulk loads. Small ones are a commit; larger ones are copied into the table in a transaction that locks its guards at the end.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::SinkExt;
use futures_util::future::{join, try_join};
use lazuli_env::BoxFuture;
use lazuli_store::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use lazuli_store::{Error, Item, Loading, Result, Txn, Write, check_sorted};
use tokio_postgres::CopyInSink;
use tokio_postgres::types::ToSql;

use crate::commit::{Ending, finish};
use crate::error::{GUARD_MISSING, is, moved};
use crate::fault::Fault;
use crate::key::{Arrays, Columns, columns, cut};
use crate::limits::{ANSWER_TIME_MAX, COPY_BYTES, LOAD_BYTES, LOAD_PART_TIME_MAX};
use crate::pool::Lease;
use crate::session::Session;
use crate::sql::Sql;
use crate::store::Shared;
use crate::txn::{Transaction, lock_guards, lock_statement};

/// What every binary COPY begins with: a signature, flags, and the length of an extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with.
const TRAILER: i16 = -1;

/// Items on their way into the table.
pub(crate) struct Load {
    shared: Arc<Shared>,
    guards: Vec<Bytes>,
    /// Items that were not sent yet.
    waiting: Vec<Item>,
    waiting_bytes: usize,
    /// The last key that was added.
    last: Option<Bytes>,
    /// The transaction, once there was enough for one.
    open: Option<Open>,
}

struct Open {
    lease: Lease,
    xid: String,
    bytes: usize,
}

impl Load {
    pub(crate) fn new(shared: Arc<Shared>, mut guards: Vec<Bytes>) -> Self {
        guards.sort_unstable();
        guards.dedup();
        Self { shared, guards, waiting: Vec::new(), waiting_bytes: 0, last: None, open: None }
    }

    async fn take(&mut self, items: Vec<Item>) -> Result<()> {
        check(&items)?;
        let Some((first, _)) = items.first() else { return Ok(()) };
        if self.last.as_ref().is_some_and(|last| last >= first) {
            return Err(Error::invalid("not-sorted", "ingested items must ascend by key"));
        }
        self.last = items.last().map(|(key, _)| key.clone());
        for item in items {
            self.waiting_bytes += item.0.len() + item.1.len();
            self.waiting.push(item);
            if self.waiting_bytes >= LOAD_BYTES {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Sends what waits.
    async fn send(&mut self) -> Result<()> {
        if self.open.is_none() {
            let lease = self.shared.writes.lease().await?;
            let xid = lease.run_on(ANSWER_TIME_MAX, begin(lease.session())).await?;
            self.open = Some(Open { lease, xid, bytes: 0 });
        }
        let items = std::mem::take(&mut self.waiting);
        let bytes = std::mem::take(&mut self.waiting_bytes);
        if let Some(open) = &mut self.open {
            open.bytes += bytes;
            open.lease.run_on(LOAD_PART_TIME_MAX, copy(open.lease.session(), &items)).await?;
        }
        Ok(())
    }

    async fn end(mut self) -> Result<()> {
        if self.open.is_none() {
            let put = |(key, value)| Write::Put(key, value);
            let writes = std::mem::take(&mut self.waiting).into_iter().map(put).collect();
            let transaction = Transaction::begin(self.shared, self.guards).await?;
            return Box::new(transaction).commit(writes).await;
        }
        if !self.waiting.is_empty() {
            self.send().await?;
        }
        let Some(Open { lease, xid, bytes }) = self.open.take() else { return Ok(()) };
        let (shared, guards) = (self.shared, self.guards);
        // In a task of its own: a caller that goes away does not cut a commit off half-way.
        let task = shared.database.runtime.clone().spawn(async move {
            let mut is_missing = false;
            let ending = Ending { shared: &shared, xid: &xid, bytes };
            let ended = finish(ending, lease, async |session| {
                let ended = lock_and_commit(session, &guards).await;
                is_missing = matches!(&ended, Err(error) if is(error, GUARD_MISSING));
                ended
            });
            let ended = ended.await;
            if is_missing { Err(moved()) } else { ended }
        });
        let panicked = |error| Error::internal(lazuli_store::StoreReason::Panicked, error);
        task.await.map_err(panicked)?
    }
}

fn check(items: &[Item]) -> Result<()> {
    check_sorted(items)?;
    for (key, value) in items {
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            let (key, value) = (key.len(), value.len());
            let message = format!("a key of {key} bytes with a value of {value} bytes");
            return Err(Error::too_large("value-too-large", message));
        }
    }
    Ok(())
}

/// Opens a transaction that may wait for its next part for a while.
async fn begin(session: &Session) -> Result<String, Fault> {
    let [begin, keep, id] = session.prepared([Sql::Begin, Sql::KeepOpen, Sql::Id]).await?;
    let begun = session.client.execute(&begin, &[]);
    let kept = session.client.execute(&keep, &[]);
    let id = session.client.query_one(&id, &[]);
    let (_, (_, row)) = try_join(begun, try_join(kept, id)).await?;
    Ok(row.try_get(0)?)
}

/// Puts items. COPY cannot replace a row, so where there are rows already it is done by an upsert.
async fn copy(session: &Session, items: &[Item]) -> Result<(), Fault> {
    let (Some((first, _)), Some((last, _))) = (items.first(), items.last()) else { return Ok(()) };
    let [holds, copy, put] = session.prepared([Sql::Holds, Sql::Copy, Sql::Put]).await?;
    let row = session.client.query_one(&holds, &[&cut(first).0, &cut(last).0]).await?;
    if row.try_get(0)? {
        let keys = Arrays::of(items.iter().map(|(key, _)| key));
        let values: Vec<&[u8]> = items.iter().map(|(_, value)| &value[..]).collect();
        let parameters: [&(dyn ToSql + Sync); 4] =
            [&keys.heads, &keys.hashes, &keys.tails, &values];
        session.client.execute(&put, &parameters).await?;
        return Ok(());
    }
    let sink: CopyInSink<Bytes> = session.client.copy_in(&copy).await?;
    let mut sink = std::pin::pin!(sink);
    let mut buffer = BytesMut::with_capacity(COPY_BYTES + COPY_BYTES / 4);
    buffer.put_slice(HEADER);
    for (key, value) in items {
        add_row(&mut buffer, key, value);
        if buffer.len() >= COPY_BYTES {
            sink.feed(buffer.split().freeze()).await?;
            buffer.reserve(COPY_BYTES + COPY_BYTES / 4);
        }
    }
    buffer.put_i16(TRAILER);
    sink.send(buffer.freeze()).await?;
    sink.finish().await?;
    Ok(())
}

fn add_row(buffer: &mut BytesMut, key: &[u8], value: &[u8]) {
    let Columns { head, hash, tail } = columns(key);
    let fields = [head, &hash, tail, value];
    buffer.put_i16(fields.len() as i16);
    for field in fields {
        // Keys and values are far below what a length can say.
        buffer.put_i32(field.len() as i32);
        buffer.put_slice(field);
    }
}

/// Locks the guards and commits in one trip. If a guard is missing, the division by zero in front of COMMIT rolls it back.
async fn lock_and_commit(session: &Session, guards: &[Bytes]) -> Result<(), tokio_postgres::Error> {
    let [lock, commit] = session.prepared([lock_statement(guards), Sql::Commit]).await?;
    let locking = lock_guards(session, &lock, guards);
    let committing = session.client.execute(&commit, &[]);
    let (locking, committing) = join(locking, committing).await;
    locking?;
    committing?;
    Ok(())
}

impl Loading for Load {
    fn add(&mut self, items: Vec<Item>) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.take(items))
    }

    fn finish<'a>(self: Box<Self>) -> BoxFuture<'a, Result<()>>
    where
        Self: 'a,
    {
        Box::pin((*self).end())
    }
}
