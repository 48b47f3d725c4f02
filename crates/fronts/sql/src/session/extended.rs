//! The extended protocol: Parse, Bind, Describe, Execute and Close, gathered until Sync or Flush.
//!
//! What is for one shard goes there in one piece, answers come back as they are. If nothing was done because the rows have
//! moved, the messages since the last Sync are run once more.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use lazuli_pg::client::{write_bind, write_close, write_execute, write_flush, write_sync};
use lazuli_pg::server::{tag, write_command_complete, write_empty};
use lazuli_pg::{Bind, ClientMessage, Parse, Target};
use lazuli_sharded_sql::Snapshot;

use super::relay::Expect;
use super::route::To;
use super::simple::bytes;
use super::{Gone, Portal, Prepared, Session, Stop};
use crate::error::{SqlError, code};
use crate::limits::{PORTALS_MAX, STATEMENTS_MAX};
use crate::plan::Plan;
use crate::shard::{Ended, statement_name};

/// Messages for one shard that are not sent yet, and the answers that will come.
pub(crate) struct Batch {
    shard: u32,
    pub(super) out: BytesMut,
    pub(super) expected: Vec<Expect>,
    /// Statements that are prepared in it for the first time.
    fresh: Vec<u64>,
}

impl Session {
    pub(super) async fn sync(&mut self) -> Result<(), Gone> {
        let began = Instant::now();
        self.front.metrics.count_request();
        let ran = self.round(true).await;
        let is_failed = ran.is_err() || self.is_skipping;
        let outcome = self.outcome(ran)?;
        self.front.metrics.observe("extended", outcome, began.elapsed());
        if std::mem::take(&mut self.has_copied) {
            self.is_skipping = is_failed;
            return self.client.send().await;
        }
        self.is_skipping = false;
        self.has_begun = false;
        self.finish_round(is_failed).await;
        self.release();
        self.ready();
        // Another round may have come in with this one.
        if self.client.has_next() {
            self.client.send_if_much().await
        } else {
            self.client.send().await
        }
    }

    pub(super) async fn flush(&mut self) -> Result<(), Gone> {
        let ran = self.round(false).await;
        if ran.is_err() {
            self.is_skipping = true;
        }
        self.outcome(ran)?;
        self.has_begun |= !self.tx.leases.is_empty();
        self.client.send().await
    }

    /// Runs the messages since the last Sync or Flush.
    async fn round(&mut self, has_sync: bool) -> Result<(), Stop> {
        let messages = std::mem::take(&mut self.recent);
        self.recent_bytes = 0;
        if self.is_skipping {
            return Ok(());
        }
        let (begun, sent) = (Instant::now(), self.client.out.len());
        self.client.has_sent = false;
        self.has_begun |= !self.tx.leases.is_empty();
        loop {
            let snapshot = self.snapshot().await?;
            match self.messages(&snapshot, &messages, has_sync).await {
                Err(Stop::Again(again)) => {
                    drop(snapshot);
                    self.batch = None;
                    self.once_more(again, begun, sent).await?;
                }
                ran => return ran,
            }
        }
    }

    async fn messages(
        &mut self,
        snapshot: &Arc<Snapshot>,
        messages: &[ClientMessage],
        has_sync: bool,
    ) -> Result<(), Stop> {
        for message in messages {
            match message {
                ClientMessage::Parse(parse) => self.parse(snapshot, parse)?,
                ClientMessage::Bind(bind) => self.bind(snapshot, bind).await?,
                ClientMessage::Describe(Target::Statement, name) => {
                    self.describe_statement(snapshot, name).await?;
                }
                ClientMessage::Describe(Target::Portal, name) => {
                    self.describe_portal(snapshot, name).await?;
                }
                ClientMessage::Execute { portal, rows_max } => {
                    self.execute(snapshot, portal, *rows_max).await?;
                }
                ClientMessage::Close(target, name) => self.close(*target, name),
                _ => {}
            }
        }
        self.send_batch(has_sync).await
    }

    /// Ends what a Flush has left open on a shard outside of a transaction.
    async fn finish_round(&mut self, is_failed: bool) {
        self.batch = None;
        if !self.tx.is_auto() {
            return;
        }
        for lease in self.tx.leases.values_mut().filter(|lease| lease.is_dirty) {
            let ended = if is_failed {
                lease.spoil().await
            } else {
                let mut out = BytesMut::new();
                write_sync(&mut out);
                match lease.write(&out).await {
                    Ok(()) => lease.drain().await,
                    Err(error) => Err(error.into()),
                }
            };
            if let Err(why) = ended {
                tracing::debug!(%why, "a connection to a shard was lost at Sync");
            }
        }
    }

    /// Answers of ours stay behind those of the shard that are still to come.
    pub(super) fn emit(&mut self, answer: Bytes) {
        match &mut self.batch {
            Some(batch) => batch.expected.push(Expect::Emit(answer)),
            None => self.client.out.extend_from_slice(&answer),
        }
    }

    fn parse(&mut self, snapshot: &Snapshot, parse: &Parse) -> Result<(), Stop> {
        self.plan(&parse.text, &parse.types, snapshot)?;
        if !parse.name.is_empty() && self.statements.contains_key(&parse.name) {
            let message = format!("prepared statement \"{}\" already exists", parse.name);
            return Err(SqlError::new(code::DUPLICATE_STATEMENT, message).into());
        }
        if self.statements.len() >= STATEMENTS_MAX {
            return Err(SqlError::new(code::TOO_MANY, "too many prepared statements").into());
        }
        let prepared = Prepared { text: parse.text.as_str().into(), types: parse.types.clone() };
        self.statements.insert(parse.name.clone(), prepared);
        self.emit(bytes(|out| write_empty(out, tag::PARSE_COMPLETE)));
        Ok(())
    }

    pub(super) fn prepared(&self, name: &str) -> Result<Prepared, SqlError> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = format!("prepared statement \"{name}\" does not exist");
            SqlError::new(code::BAD_STATEMENT_NAME, message)
        })
    }

    async fn bind(&mut self, snapshot: &Snapshot, bind: &Bind) -> Result<(), Stop> {
        let prepared = self.prepared(&bind.statement)?;
        let planned = self.plan(&prepared.text, &prepared.types, snapshot)?;
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            let message = format!("cursor \"{}\" already exists", bind.portal);
            return Err(SqlError::new(code::DUPLICATE_CURSOR, message).into());
        }
        if self.portals.len() >= PORTALS_MAX {
            return Err(SqlError::new(code::TOO_MANY, "too many portals").into());
        }
        let to = self.route(snapshot, &planned, bind)?;
        let bound = Bind { statement: statement_name(planned.id), ..bind.clone() };
        match to {
            To::Shard(shard) if !self.is_outside(&planned.plan) => {
                let shard = self.batch_for(snapshot, shard).await?;
                let lease = self.tx.leases.get_mut(&shard).ok_or(Stop::Gone)?;
                if let (Some(types), Some(known)) = (&lease.types, planned.description.get()) {
                    let fields = known.fields.as_deref().unwrap_or_default();
                    crate::types::refuse_carried(fields, &bound.result_formats, types)?;
                }
                if planned.changes_settings {
                    lease.forget_settings();
                }
                if let Some(batch) = &mut self.batch {
                    let answers =
                        lease.prepare(&mut batch.out, planned.id, &planned.text, &planned.types);
                    if answers > 0 {
                        batch.fresh.push(planned.id);
                    }
                    batch.expected.extend((0..answers).map(|_| Expect::Swallow));
                    write_bind(&mut batch.out, &bound);
                    batch.expected.push(Expect::One);
                }
            }
            _ => self.emit(bytes(|out| write_empty(out, tag::BIND_COMPLETE))),
        }
        let portal = Portal { planned, bind: bound, to, rest: None };
        self.portals.insert(bind.portal.clone(), portal);
        Ok(())
    }

    /// The batch for this shard; one for another shard is sent first.
    pub(super) async fn batch_for(
        &mut self,
        snapshot: &Snapshot,
        shard: usize,
    ) -> Result<u32, Stop> {
        let id = snapshot.shards[shard].id;
        if self.batch.as_ref().is_some_and(|batch| batch.shard != id) {
            self.send_batch(false).await?;
        }
        if self.batch.is_none() {
            let mut out = BytesMut::with_capacity(512);
            self.join(snapshot, shard, &mut out).await?;
            self.batch = Some(Batch { shard: id, out, expected: Vec::new(), fresh: Vec::new() });
        }
        Ok(id)
    }

    /// Sends the batch and passes its answers on.
    pub(super) async fn send_batch(&mut self, has_sync: bool) -> Result<(), Stop> {
        let Some(Batch { shard, mut out, expected, fresh }) = self.batch.take() else {
            return Ok(());
        };
        if has_sync {
            write_sync(&mut out);
        } else {
            write_flush(&mut out);
        }
        let lease = self.tx.leases.get_mut(&shard).ok_or(Stop::Gone)?;
        let ran = match lease.write(&out).await {
            Ok(()) => self.relay_expected(shard, expected, has_sync).await,
            Err(error) => Err(Ended::from(error).into()),
        };
        if ran.is_err()
            && let Some(lease) = self.tx.leases.get_mut(&shard)
        {
            // Whether the shard has taken them is not known.
            fresh.into_iter().for_each(|id| lease.forget(id));
        }
        if ran.is_ok() && !has_sync {
            self.has_begun = true;
        }
        ran
    }

    fn close(&mut self, target: Target, name: &str) {
        match target {
            Target::Statement => drop(self.statements.remove(name)),
            Target::Portal => {
                let closed = self.portals.remove(name);
                if let (Some(Portal { to: To::Shard(_), .. }), Some(batch)) =
                    (closed, &mut self.batch)
                {
                    write_close(&mut batch.out, Target::Portal, name);
                    batch.expected.push(Expect::Swallow);
                }
            }
        }
        self.emit(bytes(|out| write_empty(out, tag::CLOSE_COMPLETE)));
    }

    pub(super) fn portal(&self, name: &str) -> Result<&Portal, SqlError> {
        self.portals.get(name).ok_or_else(|| {
            SqlError::new(code::BAD_CURSOR, format!("portal \"{name}\" does not exist"))
        })
    }

    async fn execute(
        &mut self,
        snapshot: &Arc<Snapshot>,
        name: &str,
        rows_max: u32,
    ) -> Result<(), Stop> {
        let portal = self.portal(name)?;
        let (planned, bind, to) = (portal.planned.clone(), portal.bind.clone(), portal.to.clone());
        match to {
            To::Shard(shard) if !self.is_outside(&planned.plan) => {
                self.batch_for(snapshot, shard).await?;
                if let Some(batch) = &mut self.batch {
                    write_execute(&mut batch.out, name, rows_max);
                    batch.expected.push(Expect::Rows);
                }
                Ok(())
            }
            To::Shard(shard) => {
                self.send_batch(false).await?;
                self.execute_outside(snapshot, shard, &planned, &bind).await
            }
            To::Here => {
                self.send_batch(false).await?;
                if let Plan::Copy(copy) = &planned.plan {
                    // The Sync behind Execute comes while data is awaited, and is ignored like any other then.
                    self.has_copied = !copy.is_to;
                    return self.copy(snapshot, copy, &planned.text).await;
                }
                if let Plan::CopyQuery(copy) = &planned.plan {
                    return self.copy_query(snapshot, &planned, &copy.shape).await;
                }
                if let Plan::Empty = planned.plan {
                    write_empty(&mut self.client.out, tag::EMPTY_QUERY);
                    return Ok(());
                }
                let done = self.own(snapshot, &planned).await?;
                done.write(&mut self.client.out, false);
                Ok(())
            }
            To::Shards(_) | To::Rows(_) => {
                self.send_batch(false).await?;
                self.execute_spread(snapshot, name, &planned, &bind, &to, rows_max).await
            }
        }
    }

    /// Runs a statement without tables for itself, before the transaction has a shard.
    async fn execute_outside(
        &mut self,
        snapshot: &Snapshot,
        shard: usize,
        planned: &crate::space::Planned,
        bind: &Bind,
    ) -> Result<(), Stop> {
        let waiting = std::mem::take(&mut self.tx);
        let mut out = BytesMut::new();
        let ran = match self.join(snapshot, shard, &mut out).await {
            Ok(id) => match self.tx.leases.get_mut(&id) {
                Some(lease) => {
                    if planned.changes_settings {
                        lease.forget_settings();
                    }
                    let answers =
                        lease.prepare(&mut out, planned.id, &planned.text, &planned.types);
                    write_bind(&mut out, &Bind { portal: String::new(), ..bind.clone() });
                    write_execute(&mut out, "", 0);
                    write_sync(&mut out);
                    let mut expected: Vec<_> = (0..=answers).map(|_| Expect::Swallow).collect();
                    expected.push(Expect::Rows);
                    match lease.write(&out).await {
                        Ok(()) => self.relay_expected(id, expected, true).await,
                        Err(error) => Err(Ended::from(error).into()),
                    }
                }
                None => Err(Stop::Gone),
            },
            Err(stop) => Err(stop),
        };
        self.release();
        self.tx = waiting;
        ran
    }

    /// Rows of several shards: all of them, or as many as the client wants now.
    async fn execute_spread(
        &mut self,
        snapshot: &Arc<Snapshot>,
        name: &str,
        planned: &Arc<crate::space::Planned>,
        bind: &Bind,
        to: &To,
        rows_max: u32,
    ) -> Result<(), Stop> {
        let rest = self.portals.get_mut(name).and_then(|portal| portal.rest.take());
        if rows_max == 0 && rest.is_none() {
            return self.run_spread(snapshot, planned, bind, to, false).await;
        }
        let (mut rows, done) = match rest {
            Some(rest) => rest,
            None => self.gather_spread(snapshot, planned, bind, to).await?,
        };
        let count = if rows_max == 0 { rows.len() } else { rows.len().min(rows_max as usize) };
        for row in rows.drain(..count) {
            self.client.out.extend_from_slice(&row);
        }
        if rows.is_empty() {
            write_command_complete(&mut self.client.out, &done);
        } else {
            write_empty(&mut self.client.out, tag::PORTAL_SUSPENDED);
        }
        if let Some(portal) = self.portals.get_mut(name) {
            portal.rest = Some((rows, done));
        }
        Ok(())
    }
}
