//! COPY: rows go to the shards of their keys, or come from all shards, one after the other.

use std::collections::BTreeMap;

use bytes::{BufMut, BytesMut};
use lazuli_pg::ClientMessage;
use lazuli_pg::client::{message, write_copy_data, write_copy_done, write_copy_fail, write_query};
use lazuli_pg::server::{ErrorFields, tag, write_command_complete};
use lazuli_sharded_sql::{SETTING_REFERENCE, Snapshot, TableKind};

use super::copy_rows::{Rows, field};
use super::relay::{finish_setup, is_aside};
use super::route::place;
use super::spread::spread_error;
use super::{Session, Stop};
use crate::error::{SqlError, code, two_phase_needed};
use crate::limits::OUT_BYTES;
use crate::plan::CopyPlan;
use crate::shard::Ended;

/// A shard that takes rows.
struct Taking {
    id: u32,
    out: BytesMut,
}

impl Session {
    pub(super) async fn copy(
        &mut self,
        snapshot: &Snapshot,
        copy: &CopyPlan,
        text: &str,
    ) -> Result<(), Stop> {
        if copy.is_to {
            return self.copy_out(snapshot, copy, text).await;
        }
        let is_own = self.tx.is_auto();
        if is_own {
            self.tx.begin_implicit(self.own.is_two_phase);
        }
        let ran = self.copy_in(snapshot, copy).await;
        let ran = match ran {
            Ok(count) if is_own => self.commit().await.map(|_| count),
            other => other,
        };
        match ran {
            Ok(count) => {
                write_command_complete(&mut self.client.out, &format!("COPY {count}"));
                Ok(())
            }
            Err(stop) => {
                if is_own {
                    self.roll_back().await;
                }
                Err(stop)
            }
        }
    }

    async fn copy_in(&mut self, snapshot: &Snapshot, copy: &CopyPlan) -> Result<u64, Stop> {
        self.has_begun = true;
        let columns = copy.columns.len();
        message(&mut self.client.out, tag::COPY_IN, |out| {
            out.put_u8(0);
            out.put_u16(columns as u16);
            (0..columns).for_each(|_| out.put_i16(0));
        });
        self.client.send().await?;
        let (mut rows, mut taking) = (Rows::new(copy.shape.clone()), BTreeMap::new());
        let mut header = copy.shape.has_header;
        let mut failed = None;
        // After an error the client's data is read and dropped until it ends.
        loop {
            let is_last = match self.client.next().await? {
                Ok(ClientMessage::CopyData(data)) => {
                    rows.add(&data);
                    false
                }
                Ok(ClientMessage::CopyDone) => true,
                Ok(ClientMessage::CopyFail(why)) => {
                    let message = format!("COPY from stdin failed: {why}");
                    failed.get_or_insert(Stop::Error(SqlError::new("57014", message)));
                    break;
                }
                Ok(ClientMessage::Flush | ClientMessage::Sync) => continue,
                Ok(_) => {
                    let message = "unexpected message during COPY from stdin";
                    failed.get_or_insert(Stop::Error(SqlError::new(code::PROTOCOL, message)));
                    break;
                }
                Err(error) => {
                    failed.get_or_insert(Stop::Error(error));
                    break;
                }
            };
            if failed.is_none() {
                let taken = self
                    .take_rows(snapshot, copy, &mut rows, &mut taking, &mut header, is_last)
                    .await;
                failed = taken.err();
            }
            if is_last {
                break;
            }
            // Nothing more of it is kept once it has failed.
            if failed.is_some() {
                rows = Rows::new(copy.shape.clone());
            }
        }
        self.end_rows(taking, failed.is_none(), copy)
            .await
            .and_then(|count| failed.map_or(Ok(count), Err))
    }

    async fn take_rows(
        &mut self,
        snapshot: &Snapshot,
        copy: &CopyPlan,
        rows: &mut Rows,
        taking: &mut BTreeMap<usize, Taking>,
        header: &mut bool,
        is_last: bool,
    ) -> Result<(), Stop> {
        while let Some(row) = rows.next(is_last)? {
            if std::mem::take(header) {
                continue;
            }
            for shard in shards_of(snapshot, copy, &row)? {
                if !taking.contains_key(&shard) {
                    let begun = self.begin_rows(snapshot, copy, shard, taking.len()).await?;
                    taking.insert(shard, begun);
                }
                if let Some(Taking { id, out }) = taking.get_mut(&shard) {
                    write_copy_data(out, &row);
                    // The last row may have come without a line end, and another shard's rows do not follow here.
                    if !row.ends_with(b"\n") {
                        write_copy_data(out, b"\n");
                    }
                    if out.len() >= OUT_BYTES {
                        let lease = self.tx.leases.get_mut(id).ok_or(Stop::Gone)?;
                        lease.write(out).await.map_err(Ended::from)?;
                        out.clear();
                    }
                }
            }
        }
        Ok(())
    }

    /// Has a shard wait for rows.
    async fn begin_rows(
        &mut self,
        snapshot: &Snapshot,
        copy: &CopyPlan,
        shard: usize,
        before: usize,
    ) -> Result<Taking, Stop> {
        if before > 0 && !self.tx.is_two_phase {
            return Err(two_phase_needed("COPY of rows of several shards").into());
        }
        let mut out = BytesMut::new();
        let id = self.join(snapshot, shard, &mut out).await?;
        let lease = self.tx.leases.get_mut(&id).ok_or(Stop::Gone)?;
        if copy.kind == TableKind::Reference {
            write_query(&mut out, &format!("SET LOCAL {SETTING_REFERENCE} = 'on'"));
            lease.setup += 1;
        }
        write_query(&mut out, &copy.bare);
        lease.write(&out).await.map_err(Ended::from)?;
        finish_setup(lease).await?;
        loop {
            let frame = lease.next().await?;
            match frame.tag {
                tag::COPY_IN => return Ok(Taking { id, out: BytesMut::new() }),
                tag::ERROR => {
                    let error = ErrorFields::read(frame.body()).map_err(SqlError::from)?;
                    lease.drain().await?;
                    return Err(Stop::Error(crate::shard::foreign_error(&error)));
                }
                _ => drop(is_aside(lease, &mut self.client, &frame)?),
            }
        }
    }

    /// Ends the rows of all shards, and sums up.
    async fn end_rows(
        &mut self,
        taking: BTreeMap<usize, Taking>,
        is_fine: bool,
        copy: &CopyPlan,
    ) -> Result<u64, Stop> {
        let (mut count, mut failed) = (0, None);
        for Taking { id, mut out } in taking.into_values() {
            let Some(lease) = self.tx.leases.get_mut(&id) else { continue };
            if is_fine && failed.is_none() {
                write_copy_done(&mut out);
            } else {
                out.clear();
                write_copy_fail(&mut out, "the COPY has failed elsewhere");
            }
            lease.write(&out).await.map_err(Ended::from)?;
            loop {
                let frame = lease.next().await?;
                match frame.tag {
                    tag::COMMAND_COMPLETE => {
                        let body = frame.body();
                        let text = String::from_utf8_lossy(&body);
                        let number = text.trim_end_matches('\0').rsplit(' ').next();
                        let more: u64 = number.and_then(|it| it.parse().ok()).unwrap_or(0);
                        // Every shard has the same rows of a reference table.
                        count = if copy.kind == TableKind::Reference { more } else { count + more };
                    }
                    tag::ERROR => {
                        let error = ErrorFields::read(frame.body()).map_err(SqlError::from)?;
                        failed.get_or_insert(spread_error(&error));
                    }
                    tag::READY => {
                        lease.ready(&frame)?;
                        break;
                    }
                    _ => drop(is_aside(lease, &mut self.client, &frame)?),
                }
            }
        }
        failed.filter(|_| is_fine).map_or(Ok(count), Err)
    }

    /// The rows of all shards, one after the other; the first has the header.
    async fn copy_out(
        &mut self,
        snapshot: &Snapshot,
        copy: &CopyPlan,
        text: &str,
    ) -> Result<(), Stop> {
        let shards = match &copy.kind {
            TableKind::Sharded { map, .. } => {
                snapshot.maps.get(*map).map(|map| map.shards()).unwrap_or_default()
            }
            TableKind::Reference => vec![snapshot.catalog_shard],
            TableKind::Single { shard } => vec![*shard],
        };
        if snapshot.maps.iter().any(|map| map.is_in_transit) && shards.len() > 1 {
            return Err(SqlError::new(
                code::NOT_READY,
                "COPY TO waits until no rows are being moved",
            )
            .hint("Use SELECT, or try again later.")
            .into());
        }
        let mut count = 0;
        for (index, shard) in shards.iter().enumerate() {
            let text = if index == 0 { text } else { &copy.bare };
            count += self.copy_from_shard(snapshot, *shard, text, index == 0).await?;
        }
        message(&mut self.client.out, tag::COPY_DONE, |_| {});
        // The header is not counted by PostgreSQL either.
        write_command_complete(&mut self.client.out, &format!("COPY {count}"));
        Ok(())
    }

    async fn copy_from_shard(
        &mut self,
        snapshot: &Snapshot,
        shard: usize,
        text: &str,
        is_first: bool,
    ) -> Result<u64, Stop> {
        let mut out = BytesMut::new();
        let id = snapshot.shards[shard].id;
        let held = self.tx.leases.remove(&id);
        let is_held = held.is_some();
        let mut lease = match held {
            Some(lease) => lease,
            None => {
                self.pools[shard]
                    .clone()
                    .lease(&self.settings, self.role.as_deref(), &mut out)
                    .await?
            }
        };
        write_query(&mut out, text);
        lease.write(&out).await.map_err(Ended::from)?;
        finish_setup(&mut lease).await?;
        let (mut count, mut error) = (0, None);
        loop {
            let frame = lease.next().await?;
            match frame.tag {
                tag::COPY_OUT if is_first => self.client.out.extend_from_slice(&frame.whole),
                tag::COPY_OUT | tag::COPY_DONE => {}
                tag::COPY_DATA => {
                    self.client.out.extend_from_slice(&frame.whole);
                    self.client.send_if_much().await?;
                }
                tag::COMMAND_COMPLETE => {
                    let body = frame.body();
                    let text = String::from_utf8_lossy(&body);
                    let number = text.trim_end_matches('\0').rsplit(' ').next();
                    count = number.and_then(|it| it.parse().ok()).unwrap_or(0);
                }
                tag::ERROR => {
                    error = Some(ErrorFields::read(frame.body()).map_err(SqlError::from)?)
                }
                tag::READY => {
                    lease.ready(&frame)?;
                    break;
                }
                _ => drop(is_aside(&mut lease, &mut self.client, &frame)?),
            }
        }
        if is_held {
            self.tx.leases.insert(id, lease);
        }
        match error {
            None => Ok(count),
            Some(error) => Err(Stop::Error(crate::shard::foreign_error(&error))),
        }
    }
}

/// The shards that a row goes to.
fn shards_of(snapshot: &Snapshot, copy: &CopyPlan, row: &[u8]) -> Result<Vec<usize>, Stop> {
    match &copy.kind {
        TableKind::Reference => Ok((0..snapshot.shards.len()).collect()),
        TableKind::Single { shard } => Ok(vec![*shard]),
        TableKind::Sharded { map, key } => {
            let mut parts = Vec::with_capacity(key.len());
            for (name, column) in key {
                let missing = || {
                    let message = format!("COPY does not name the sharding key \"{name}\"");
                    SqlError::new(code::KEY_NULL, message)
                };
                let index = copy.columns.iter().position(|it| it == name).ok_or_else(missing)?;
                let value = field(row, index, &copy.shape)?;
                let value = value.ok_or_else(|| {
                    SqlError::new(
                        code::KEY_NULL,
                        format!("the sharding key \"{name}\" of a row is NULL"),
                    )
                })?;
                let part = column.parse(&value);
                parts.push(part.map_err(|error| SqlError::new(code::BAD_COPY, error.to_string()))?);
            }
            Ok(vec![place(snapshot, *map, &parts, true)?.shard])
        }
    }
}
