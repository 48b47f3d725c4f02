//! SELECT over several shards: all of them are asked at once, and answer one after the other.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_pg::client::{write_bind, write_execute, write_parse, write_sync};
use lazuli_pg::limits::SERVER_MESSAGE_BYTES_MAX;
use lazuli_pg::server::{
    ErrorFields, Report, read_data_row, tag, write_command_complete, write_notice,
};
use lazuli_pg::{Bind, Frames};
use lazuli_sharded_sql::Snapshot;

use super::describe::write_fields;
use super::relay::{again, finish_setup, is_aside, relay_rows};
use super::route::To;
use super::{Session, Stop};
use crate::error::{SqlError, code};
use crate::limits::{GATHERED_BYTES_MAX, GATHERED_ROWS_MAX};
use crate::plan::{FanOut, Last, Plan, Spread};
use crate::shard::{Ended, Lease};
use crate::space::{Description, Planned, Space};
use crate::types::{FIRST_OWN_OID, on_shard};

/// A session on a shard for the time of one statement.
pub(super) struct Asked {
    pub(super) id: u32,
    name: String,
    /// None if the shard could not be reached, which is fine where partial answers are.
    pub(super) lease: Option<Lease>,
    /// Whether it belongs to the transaction.
    pub(super) is_held: bool,
}

pub(super) type Rows = Vec<Vec<Option<Bytes>>>;

impl Session {
    /// Runs a statement of several shards. `is_simple`: the client has not asked for a description.
    pub(super) async fn run_spread(
        &mut self,
        snapshot: &Arc<Snapshot>,
        planned: &Arc<Planned>,
        bind: &Bind,
        to: &To,
        is_simple: bool,
    ) -> Result<(), Stop> {
        let Plan::Routed(routed) = &planned.plan else {
            return Err(SqlError::new(code::INTERNAL, "a plan for one shard was spread").into());
        };
        match (&routed.spread, to) {
            (Spread::Select(fan_out), To::Shards(shards)) => {
                self.select(snapshot, planned, fan_out, bind, shards, is_simple).await
            }
            (Spread::Gather(gather), To::Shards(_)) => {
                // A part may be made of parts.
                Box::pin(self.finish_parts(snapshot, planned, gather, bind, is_simple)).await
            }
            (Spread::Refused(error), _) => Err(error.clone().into()),
            _ => self.write(snapshot, planned, &routed.spread, bind, to, is_simple).await,
        }
    }

    /// The same, with the rows kept for later.
    pub(super) async fn gather_spread(
        &mut self,
        snapshot: &Arc<Snapshot>,
        planned: &Arc<Planned>,
        bind: &Bind,
        to: &To,
    ) -> Result<(Vec<Bytes>, String), Stop> {
        let before = std::mem::take(&mut self.client.out);
        let was_held = std::mem::replace(&mut self.client.is_held, true);
        let ran = self.run_spread(snapshot, planned, bind, to, false).await;
        self.client.is_held = was_held;
        let answers = std::mem::replace(&mut self.client.out, before);
        if let Err(stop) = ran {
            self.client.out.extend_from_slice(&answers);
            return Err(stop);
        }
        let (mut rows, mut done, mut frames) = (Vec::new(), String::new(), Frames::default());
        *frames.buffer() = answers;
        while let Some(frame) = frames.next(SERVER_MESSAGE_BYTES_MAX).map_err(SqlError::from)? {
            match frame.tag {
                tag::DATA_ROW => rows.push(frame.whole),
                tag::COMMAND_COMPLETE => {
                    let text = frame.body();
                    let text = text.strip_suffix(b"\0").unwrap_or(&text);
                    done = String::from_utf8_lossy(text).into_owned();
                }
                _ => self.client.out.extend_from_slice(&frame.whole),
            }
        }
        Ok((rows, done))
    }

    async fn select(
        &mut self,
        snapshot: &Arc<Snapshot>,
        planned: &Arc<Planned>,
        fan_out: &FanOut,
        bind: &Bind,
        shards: &[usize],
        is_simple: bool,
    ) -> Result<(), Stop> {
        self.refuse_one_snapshot()?;
        let description = self.describe(snapshot, planned).await?;
        refuse_binary(&self.space, &description, &bind.result_formats)?;
        let is_last = fan_out.last != Last::Concatenate;
        let formats = if is_last { Vec::new() } else { bind.result_formats.clone() };
        let mut asked = Vec::new();
        let asking = Bind {
            portal: String::new(),
            statement: String::new(),
            result_formats: formats,
            ..bind.clone()
        };
        for shard in shards {
            let text = fan_out.text(snapshot, *shard, &self.search_path);
            let mut out = BytesMut::new();
            let own = self.space.types.get(&snapshot.shards[*shard].id);
            let parameters = on_shard(&description.parameters, own.map(AsRef::as_ref));
            write_parse(&mut out, "", &text, &parameters);
            write_bind(&mut out, &asking);
            write_execute(&mut out, "", 0);
            write_sync(&mut out);
            asked.push(self.ask(snapshot, *shard, &out).await?);
        }
        if is_simple {
            write_fields(&mut self.client.out, description.fields.as_deref(), &[]);
        }
        let ran = if is_last {
            self.gather(asked).await
        } else {
            self.concatenate(asked).await.map(|()| Vec::new())
        };
        match ran {
            Ok(rows) if is_last => {
                self.last_step(snapshot, planned, fan_out, bind, &description, rows).await
            }
            Ok(_) => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn refuse_one_snapshot(&self) -> Result<(), SqlError> {
        if !self.tx.is_snapshot() {
            return Ok(());
        }
        let message = "a transaction with one snapshot cannot read from several shards";
        Err(SqlError::refused(message).hint("Use READ COMMITTED, or name one key."))
    }

    /// Sends a statement to a shard, in the transaction's session there or in one for the time of the statement.
    pub(super) async fn ask(
        &mut self,
        snapshot: &Snapshot,
        shard: usize,
        message: &[u8],
    ) -> Result<Asked, Stop> {
        let (id, name) = (snapshot.shards[shard].id, snapshot.shards[shard].name.clone());
        if let Some(mut lease) = self.tx.leases.remove(&id) {
            lease.write(message).await.map_err(Ended::from)?;
            return Ok(Asked { id, name, lease: Some(lease), is_held: true });
        }
        let mut out = BytesMut::new();
        let pool = self.pools[shard].clone();
        let leased = pool.lease(&self.settings, self.role.as_deref(), &mut out).await;
        out.extend_from_slice(message);
        let sent = match leased {
            Ok(mut lease) => match lease.write(&out).await {
                Ok(()) => Ok(lease),
                Err(error) => Err(Ended::from(error).into()),
            },
            Err(error) => Err(error),
        };
        match sent {
            Ok(lease) => {
                self.cancel.add(lease.canceller());
                Ok(Asked { id, name, lease: Some(lease), is_held: false })
            }
            Err(error) if self.own.is_partial => {
                self.missing(&name, &error.message);
                Ok(Asked { id, name, lease: None, is_held: false })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn missing(&mut self, shard: &str, why: &str) {
        let message = format!("the rows of shard \"{shard}\" are missing: {why}");
        let report = Report {
            severity: "WARNING",
            code: "01000",
            message: &message,
            detail: None,
            hint: None,
        };
        write_notice(&mut self.client.out, &report);
    }

    /// Puts the transaction's session back.
    pub(super) fn hold(&mut self, id: u32, lease: Option<Lease>, is_held: bool) {
        if let (true, Some(lease)) = (is_held, lease) {
            self.tx.leases.insert(id, lease);
        }
    }

    /// The rows of one shard behind those of the other, as they are.
    async fn concatenate(&mut self, asked: Vec<Asked>) -> Result<(), Stop> {
        let (mut count, mut failed) = (0, None);
        for Asked { id, name, lease, is_held } in asked {
            let Some(mut lease) = lease else { continue };
            if failed.is_none() {
                match self.rows_of(&mut lease).await {
                    Ok(more) => count += more,
                    Err(Stop::Error(error)) if self.own.is_partial => {
                        self.missing(&name, &error.message)
                    }
                    Err(stop) => failed = Some(stop),
                }
            } else if is_held {
                lease.drain().await?;
            } else if lease.is_dirty {
                lease.canceller().cancel().await;
            }
            self.hold(id, Some(lease), is_held);
        }
        if let Some(stop) = failed {
            return Err(stop);
        }
        write_command_complete(&mut self.client.out, &format!("SELECT {count}"));
        Ok(())
    }

    /// Passes on the rows of one shard; everything else that it says stays here.
    pub(super) async fn rows_of(&mut self, lease: &mut Lease) -> Result<u64, Stop> {
        finish_setup(lease).await?;
        let (mut count, mut error) = (0, None);
        loop {
            if lease.frames.next_tag() == Some(tag::DATA_ROW) {
                count += relay_rows(lease, &mut self.client).await?;
                if self.client.is_held && self.client.out.len() > GATHERED_BYTES_MAX {
                    return Err(too_much().into());
                }
                continue;
            }
            let frame = lease.next().await?;
            match frame.tag {
                tag::READY => {
                    lease.ready(&frame)?;
                    break;
                }
                tag::ERROR => {
                    error = Some(ErrorFields::read(frame.body()).map_err(SqlError::from)?)
                }
                _ => drop(is_aside(lease, &mut self.client, &frame)?),
            }
        }
        match error {
            None => Ok(count),
            Some(error) => Err(spread_error(&error)),
        }
    }

    /// The rows of all shards, decoded.
    pub(super) async fn gather(&mut self, asked: Vec<Asked>) -> Result<Rows, Stop> {
        let (mut rows, mut size, mut failed) = (Rows::new(), 0, None);
        for Asked { id, name, lease, is_held } in asked {
            let Some(mut lease) = lease else { continue };
            if failed.is_none() {
                match gather_from(&mut lease, &mut rows, &mut size).await {
                    Ok(()) => {}
                    Err(Stop::Error(error)) if self.own.is_partial && error.code != code::LIMIT => {
                        self.missing(&name, &error.message);
                    }
                    Err(stop) => failed = Some(stop),
                }
            }
            if failed.is_some() && lease.is_dirty {
                if is_held {
                    lease.drain().await?;
                } else {
                    lease.canceller().cancel().await;
                }
            }
            self.hold(id, Some(lease), is_held);
        }
        failed.map_or(Ok(rows), Err)
    }
}

/// Rows of several shards have one description, so none of their values may hold numbers of a shard's own types.
pub(super) fn refuse_binary(
    space: &Space,
    description: &Description,
    formats: &[i16],
) -> Result<(), SqlError> {
    let fields = description.fields.iter().flatten();
    let has_own = fields.filter(|field| field.oid >= FIRST_OWN_OID).count() > 0;
    if has_own && formats.contains(&1) && !space.types.is_empty() {
        return Err(SqlError::refused(
            "types of users' own cannot be sent in binary form from several shards",
        )
        .hint("Ask for text, or name one key."));
    }
    Ok(())
}

async fn gather_from(lease: &mut Lease, rows: &mut Rows, size: &mut usize) -> Result<(), Stop> {
    finish_setup(lease).await?;
    let mut error = None;
    loop {
        let frame = lease.next().await?;
        match frame.tag {
            tag::DATA_ROW => {
                *size += frame.whole.len();
                if rows.len() >= GATHERED_ROWS_MAX || *size > GATHERED_BYTES_MAX {
                    return Err(too_much().into());
                }
                rows.push(read_data_row(frame.body()).map_err(SqlError::from)?);
            }
            tag::READY => {
                lease.ready(&frame)?;
                break;
            }
            tag::ERROR => error = Some(ErrorFields::read(frame.body()).map_err(SqlError::from)?),
            tag::PARAMETER_STATUS => drop(lease.note_parameter(frame.body())?),
            _ => {}
        }
    }
    error.map_or(Ok(()), |error| Err(spread_error(&error)))
}

pub(super) fn too_much() -> SqlError {
    let message = format!(
        "the rows of all shards are more than {GATHERED_ROWS_MAX} or too large to be sorted or grouped"
    );
    SqlError::new(code::LIMIT, message)
        .hint("Add a LIMIT or a condition, or group by the sharding key.")
}

/// An error of one of several shards, in its own words.
pub(super) fn spread_error(error: &ErrorFields) -> Stop {
    if let Some(again) = again(error) {
        return Stop::Again(again);
    }
    Stop::Error(crate::shard::foreign_error(error))
}
