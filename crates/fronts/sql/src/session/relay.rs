//! One shard's answers, passed on to the client without being decoded.

use bytes::{Bytes, BytesMut};
use lazuli_pg::client::{write_query, write_sync};
use lazuli_pg::limits::SERVER_MESSAGE_BYTES_MAX;
use lazuli_pg::server::{ErrorFields, tag};
use lazuli_pg::{Frame, TxStatus};
use lazuli_sharded_sql::{ShardRefusal, Snapshot};

use super::{Again, Client, Session, Stop};
use crate::error::{SqlError, code};
use crate::shard::{Lease, foreign_error};

/// What is awaited from a shard.
#[derive(Debug)]
pub(crate) enum Expect {
    /// Something of ours that stands between its answers.
    Emit(Bytes),
    /// An answer that the client has not asked for.
    Swallow,
    /// An answer to one message: passed on.
    One,
    /// Rows and what ends them.
    Rows,
}

/// What an error of a shard means for us.
pub(crate) fn again(error: &ErrorFields) -> Option<Again> {
    match ShardRefusal::of_sqlstate(error.sqlstate()) {
        Some(ShardRefusal::Fenced) => Some(Again::Fenced),
        Some(ShardRefusal::Elsewhere | ShardRefusal::Stale) => Some(Again::Moved),
        Some(ShardRefusal::Offline | ShardRefusal::Forbidden) => None,
        None => {
            let is_stale = error.sqlstate() == code::NOT_SUPPORTED
                && error.message().contains("cached plan must not change result type");
            is_stale.then_some(Again::StalePlan)
        }
    }
}

/// Reads the answers to what has set the session up. An error there is the statement's.
pub(crate) async fn finish_setup(lease: &mut Lease) -> Result<(), Stop> {
    let mut error = None;
    while lease.setup > 0 {
        let frame = lease.next().await?;
        match frame.tag {
            tag::READY => {
                lease.setup -= 1;
                lease.status = TxStatus::read(&frame.body()).map_err(SqlError::from)?;
            }
            tag::ERROR => error = Some(ErrorFields::read(frame.body()).map_err(SqlError::from)?),
            tag::PARAMETER_STATUS => drop(lease.note_parameter(frame.body())?),
            _ => {}
        }
    }
    match error {
        None => Ok(()),
        // The session has settings that nobody wanted: it is not used again, because it stays dirty.
        Some(error) => Err(Stop::Error(foreign_error(&error))),
    }
}

/// Notices, notifications and changed settings come at any time. Whether the frame was one of them.
pub(crate) fn is_aside(
    lease: &mut Lease,
    client: &mut Client,
    frame: &Frame,
) -> Result<bool, Stop> {
    match frame.tag {
        tag::NOTICE => client.out.extend_from_slice(&frame.whole),
        tag::PARAMETER_STATUS => {
            lease.note_parameter(frame.body())?;
            client.out.extend_from_slice(&frame.whole);
        }
        tag::NOTIFICATION => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Passes rows on until something else comes.
pub(crate) async fn relay_rows(lease: &mut Lease, client: &mut Client) -> Result<u64, Stop> {
    let mut count = 0;
    loop {
        let (rows, more) = lease
            .frames
            .run(tag::DATA_ROW, SERVER_MESSAGE_BYTES_MAX)
            .map_err(|error| Stop::Error(error.into()))?;
        count += more;
        client.out.extend_from_slice(&rows);
        client.send_if_much().await?;
        match lease.frames.next_tag() {
            Some(tag::DATA_ROW) | None => lease.fill().await?,
            Some(_) => return Ok(count),
        }
    }
}

impl Session {
    /// Runs one statement in text form on one shard.
    pub(super) async fn relay_simple(
        &mut self,
        snapshot: &Snapshot,
        shard: usize,
        text: &str,
    ) -> Result<(), Stop> {
        let mut out = BytesMut::new();
        let id = self.join(snapshot, shard, &mut out).await?;
        write_query(&mut out, text);
        let may_retry = !self.has_begun;
        let (client, tx) = (&mut self.client, &mut self.tx);
        let lease = tx.leases.get_mut(&id).ok_or(Stop::Gone)?;
        lease.write(&out).await.map_err(crate::shard::Ended::from)?;
        finish_setup(lease).await?;
        let sent = client.out.len();
        client.has_sent = false;
        let mut failed = None;
        loop {
            if lease.frames.next_tag() == Some(tag::DATA_ROW) {
                relay_rows(lease, client).await?;
                continue;
            }
            let frame = lease.next().await?;
            match frame.tag {
                tag::READY => {
                    lease.ready(&frame)?;
                    break;
                }
                tag::ERROR => {
                    let error = ErrorFields::read(frame.body()).map_err(SqlError::from)?;
                    let is_fresh = may_retry && !client.has_sent && client.out.len() == sent;
                    failed = Some(again(&error).filter(|_| is_fresh));
                    if !matches!(failed, Some(Some(_))) {
                        client.out.extend_from_slice(&frame.whole);
                    }
                }
                tag::COPY_IN | tag::COPY_OUT | tag::COPY_BOTH => {
                    return Err(SqlError::refused("COPY cannot be run in this way").into());
                }
                _ if is_aside(lease, client, &frame)? => {}
                _ => client.out.extend_from_slice(&lease.shown(&frame)?),
            }
        }
        if crate::space::changes_settings(text) {
            lease.forget_settings();
        }
        if lease.status == TxStatus::Failed {
            tx.fail();
        }
        match failed {
            None => Ok(()),
            Some(Some(again)) => Err(Stop::Again(again)),
            Some(None) => Err(Stop::Relayed),
        }
    }

    /// Passes on the answers to a batch of messages. After an error the rest of them does not come.
    pub(super) async fn relay_expected(
        &mut self,
        id: u32,
        expected: Vec<Expect>,
        has_sync: bool,
    ) -> Result<(), Stop> {
        let may_retry = !self.has_begun;
        let (client, tx) = (&mut self.client, &mut self.tx);
        let lease = tx.leases.get_mut(&id).ok_or(Stop::Gone)?;
        finish_setup(lease).await?;
        client.has_sent = false;
        let mut has_rows = false;
        for expect in expected {
            let error = match expect {
                Expect::Emit(bytes) => {
                    client.out.extend_from_slice(&bytes);
                    None
                }
                Expect::Swallow => answer(lease, client, false).await?,
                Expect::One => answer(lease, client, true).await?,
                Expect::Rows => {
                    has_rows |= relay_rows(lease, client).await? > 0;
                    answer(lease, client, true).await?
                }
            };
            if let Some(frame) = error {
                let error = ErrorFields::read(frame.body()).map_err(SqlError::from)?;
                if !has_sync {
                    let mut out = BytesMut::new();
                    write_sync(&mut out);
                    lease.write(&out).await.map_err(crate::shard::Ended::from)?;
                }
                lease.drain().await?;
                if lease.status == TxStatus::Failed {
                    tx.fail();
                }
                let is_fresh = may_retry && !client.has_sent && !has_rows;
                if let Some(again) = again(&error).filter(|_| is_fresh) {
                    return Err(Stop::Again(again));
                }
                client.out.extend_from_slice(&frame.whole);
                return Err(Stop::Relayed);
            }
        }
        if has_sync {
            lease.drain().await?;
            if lease.status == TxStatus::Failed {
                tx.fail();
            }
        }
        Ok(())
    }
}

/// The next answer that is not said aside: passed on or not, or handed out if it is an error.
async fn answer(
    lease: &mut Lease,
    client: &mut Client,
    is_relayed: bool,
) -> Result<Option<Frame>, Stop> {
    loop {
        let frame = lease.next().await?;
        if frame.tag == tag::ERROR {
            return Ok(Some(frame));
        }
        if is_aside(lease, client, &frame)? {
            continue;
        }
        if matches!(frame.tag, tag::COPY_IN | tag::COPY_OUT | tag::COPY_BOTH) {
            return Err(SqlError::refused("COPY is supported in simple queries only").into());
        }
        if is_relayed {
            client.out.extend_from_slice(&lease.shown(&frame)?);
        }
        return Ok(None);
    }
}
