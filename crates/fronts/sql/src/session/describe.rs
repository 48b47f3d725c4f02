//! Descriptions of statements and portals: the catalog shard's, or that of the shard that runs them.

use std::sync::Arc;

use bytes::BytesMut;
use lazuli_pg::client::{write_describe, write_sync};
use lazuli_pg::server::{tag, write_empty, write_parameter_description, write_row_description};
use lazuli_pg::{Field, Frame, Target};
use lazuli_sharded_sql::Snapshot;

use super::relay::Expect;
use super::route::To;
use super::simple::bytes;
use super::{Session, Stop};
use crate::error::{SqlError, code};
use crate::plan::Plan;
use crate::shard::{Ended, Lease};
use crate::space::{Description, Planned};
use crate::types::FIRST_OWN_OID;

impl Session {
    pub(super) async fn describe_statement(
        &mut self,
        snapshot: &Snapshot,
        name: &str,
    ) -> Result<(), Stop> {
        let prepared = self.prepared(name)?;
        let planned = self.plan(&prepared.text, &prepared.types, snapshot)?;
        let description = self.description(snapshot, &planned).await?;
        let answer = bytes(|out| {
            write_parameter_description(out, &description.parameters);
            write_fields(out, description.fields.as_deref(), &[]);
        });
        self.emit(answer);
        Ok(())
    }

    /// What is known of a statement's parameters and rows, whoever runs it.
    async fn description(
        &mut self,
        snapshot: &Snapshot,
        planned: &Planned,
    ) -> Result<Arc<Description>, Stop> {
        match &planned.plan {
            Plan::Empty | Plan::Copy(_) | Plan::CopyQuery(_) => {
                Ok(Arc::new(Description { parameters: Vec::new(), fields: None }))
            }
            Plan::Command(command) => {
                let fields = super::own::fields(command);
                Ok(Arc::new(Description { parameters: Vec::new(), fields }))
            }
            Plan::Anywhere | Plan::Routed(_) => self.describe(snapshot, planned).await,
            Plan::Cursor => self.describe_cursor(&planned.text).await,
        }
    }

    pub(super) async fn describe_portal(
        &mut self,
        snapshot: &Snapshot,
        name: &str,
    ) -> Result<(), Stop> {
        let portal = self.portal(name)?;
        let (planned, formats) = (portal.planned.clone(), portal.bind.result_formats.clone());
        match portal.to {
            To::Shard(shard) if !self.is_outside(&planned.plan) => {
                self.batch_for(snapshot, shard).await?;
                if let Some(batch) = &mut self.batch {
                    write_describe(&mut batch.out, Target::Portal, name);
                    batch.expected.push(Expect::One);
                }
            }
            _ => {
                let description = self.description(snapshot, &planned).await?;
                self.emit(bytes(|out| write_fields(out, description.fields.as_deref(), &formats)));
            }
        }
        Ok(())
    }

    /// Has the catalog shard describe a statement.
    pub(super) async fn describe_text(
        &mut self,
        snapshot: &Snapshot,
        text: &str,
        types: &[u32],
    ) -> Result<Arc<Description>, Stop> {
        let mut out = BytesMut::new();
        let pool = self.pools[snapshot.catalog_shard].clone();
        let mut lease = pool.lease(&self.settings, self.role.as_deref(), &mut out).await?;
        lazuli_pg::client::write_parse(&mut out, "", text, types);
        write_describe(&mut out, Target::Statement, "");
        write_sync(&mut out);
        lease.write(&out).await.map_err(Ended::from)?;
        super::relay::finish_setup(&mut lease).await?;
        let described = read_description(&mut lease).await?;
        self.described(described)
    }

    /// The rows of a cursor, as the shard that has it describes them: another session may have another one of its name.
    async fn describe_cursor(&mut self, text: &str) -> Result<Arc<Description>, Stop> {
        self.send_batch(false).await?;
        let Some(lease) = self.tx.leases.values_mut().next() else {
            return Err(
                SqlError::new(code::BAD_CURSOR, "there is no cursor in this transaction").into()
            );
        };
        let mut out = BytesMut::new();
        lazuli_pg::client::write_parse(&mut out, "", text, &[]);
        write_describe(&mut out, Target::Statement, "");
        write_sync(&mut out);
        lease.write(&out).await.map_err(Ended::from)?;
        let described = read_description(lease).await?;
        let fields =
            described.as_ref().ok().and_then(|it| it.fields.as_ref()).into_iter().flatten();
        if lease.types.is_some() && fields.clone().any(|field| field.oid >= FIRST_OWN_OID) {
            let message = "a cursor over types of users' own cannot be described";
            return Err(SqlError::refused(message).hint("FETCH by a simple query.").into());
        }
        self.described(described)
    }

    /// What a shard has described, or its error for the client.
    fn described(
        &mut self,
        described: Result<Description, Frame>,
    ) -> Result<Arc<Description>, Stop> {
        match described {
            Ok(description) => Ok(Arc::new(description)),
            Err(frame) => {
                self.client.out.extend_from_slice(&frame.whole);
                Err(Stop::Relayed)
            }
        }
    }
}

/// What a shard answers to Parse, Describe and Sync: a description, or an error of its own.
async fn read_description(lease: &mut Lease) -> Result<Result<Description, Frame>, Stop> {
    let (mut parameters, mut fields, mut error) = (Vec::new(), None, None);
    loop {
        let frame = lease.next().await?;
        match frame.tag {
            tag::PARAMETER_DESCRIPTION => {
                parameters = lazuli_pg::server::read_parameter_description(frame.body())
                    .map_err(SqlError::from)?;
            }
            tag::ROW_DESCRIPTION => {
                let read = lazuli_pg::server::read_row_description(frame.body());
                fields = Some(read.map_err(SqlError::from)?);
            }
            tag::ERROR => error = Some(frame),
            tag::READY => {
                lease.ready(&frame)?;
                break;
            }
            _ => {}
        }
    }
    Ok(error.map_or(Ok(Description { parameters, fields }), Err))
}

/// A RowDescription with the formats that the client has asked for.
pub(super) fn write_fields(out: &mut BytesMut, fields: Option<&[Field]>, formats: &[i16]) {
    let Some(fields) = fields else { return write_empty(out, tag::NO_DATA) };
    let mut fields = fields.to_vec();
    for (index, field) in fields.iter_mut().enumerate() {
        field.format = match formats {
            [] => 0,
            [one] => *one,
            many => many.get(index).copied().unwrap_or(0),
        };
    }
    write_row_description(out, &fields);
}
