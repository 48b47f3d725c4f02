//! A statement over the rows of its parts: each part is run like a statement by itself, and PostgreSQL finishes the rest on
//! the catalog shard.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_pg::client::{write_bind, write_execute, write_parse, write_sync};
use lazuli_pg::server::{read_data_row, write_command_complete};
use lazuli_pg::{Bind, Frames};
use lazuli_sharded_sql::{Snapshot, quote_ident};

use super::describe::write_fields;
use super::last::{TEXTS, rows_sql};
use super::relay::finish_setup;
use super::route::To;
use super::spread::{Rows, refuse_binary, too_much};
use super::{Session, Stop, arrays};
use crate::error::{SqlError, code};
use crate::limits::{GATHERED_BYTES_MAX, GATHERED_ROWS_MAX};
use crate::plan::Gather;
use crate::shard::Ended;
use crate::space::{Description, Planned};
use crate::types::on_shard;

/// The rows of one part, and what they are.
struct Fetched {
    description: Arc<Description>,
    rows: Rows,
}

impl Session {
    /// Fetches the parts of a statement and has PostgreSQL answer it from them.
    pub(super) async fn finish_parts(
        &mut self,
        snapshot: &Arc<Snapshot>,
        planned: &Arc<Planned>,
        gather: &Gather,
        bind: &Bind,
        is_simple: bool,
    ) -> Result<(), Stop> {
        self.refuse_one_snapshot()?;
        let description = self.describe(snapshot, planned).await?;
        refuse_binary(&self.space, &description, &bind.result_formats)?;
        let (mut fetched, mut count) = (Vec::new(), 0);
        for part in &planned.parts {
            if part.description.get().is_none() {
                // Parameters have the types that they have in the whole statement.
                let described =
                    self.describe_text(snapshot, &part.text, &description.parameters).await?;
                let _ = part.description.set(described);
            }
            let part_description = self.describe(snapshot, part).await?;
            let rows = self.fetch(snapshot, part, bind, &part_description).await?;
            count += rows.len();
            if count > GATHERED_ROWS_MAX {
                return Err(too_much().into());
            }
            fetched.push(Fetched { description: part_description, rows });
        }
        if is_simple {
            write_fields(&mut self.client.out, description.fields.as_deref(), &[]);
        }
        self.finish(snapshot, gather, bind, &description, fetched).await
    }

    /// The rows of one part, in text form.
    pub(super) async fn fetch(
        &mut self,
        snapshot: &Arc<Snapshot>,
        part: &Arc<Planned>,
        bind: &Bind,
        description: &Description,
    ) -> Result<Rows, Stop> {
        let asking = Bind {
            portal: String::new(),
            statement: String::new(),
            result_formats: Vec::new(),
            ..bind.clone()
        };
        let shard = match self.route(snapshot, part, &asking)? {
            To::Shard(shard) => shard,
            to @ To::Shards(_) => {
                let (frames, _) = self.gather_spread(snapshot, part, &asking, &to).await?;
                return decoded(&frames).map_err(Stop::from);
            }
            To::Here | To::Rows(_) => {
                return Err(SqlError::new(code::INTERNAL, "a part that is no query").into());
            }
        };
        let mut out = BytesMut::new();
        let own = self.space.types.get(&snapshot.shards[shard].id);
        let parameters = on_shard(&description.parameters, own.map(AsRef::as_ref));
        write_parse(&mut out, "", &part.text, &parameters);
        write_bind(&mut out, &asking);
        write_execute(&mut out, "", 0);
        write_sync(&mut out);
        let asked = self.ask(snapshot, shard, &out).await?;
        self.gather(vec![asked]).await
    }

    /// The last statement, on the catalog shard.
    async fn finish(
        &mut self,
        snapshot: &Arc<Snapshot>,
        gather: &Gather,
        bind: &Bind,
        description: &Description,
        fetched: Vec<Fetched>,
    ) -> Result<(), Stop> {
        let mut last = Bind { portal: String::new(), statement: String::new(), ..bind.clone() };
        last.formats =
            (0..bind.values.len()).map(|index| i16::from(bind.is_binary(index))).collect();
        let mut parameter_types = description.parameters.clone();
        let mut with = Vec::new();
        for (index, Fetched { description, rows }) in fetched.into_iter().enumerate() {
            let fields = description.fields.as_deref().unwrap_or_default();
            if fields.is_empty() {
                return Err(SqlError::refused("a part of a query without columns").into());
            }
            let types: Vec<_> = fields.iter().map(|field| (field.oid, field.modifier)).collect();
            let types = self.names_of(snapshot, &types).await?;
            let name = |column: usize| quote_ident(&fields[column].name);
            let text = rows_sql(&types, last.values.len(), name);
            with.push(format!("{} AS ({text})", Gather::name(index)));
            for column in 0..fields.len() {
                let values = rows.iter().map(|row| row.get(column).and_then(Option::as_deref));
                last.values.push(Some(arrays::of_texts(values)));
                last.formats.push(1);
                parameter_types.push(TEXTS);
            }
        }
        let behind = if gather.has_with { ", " } else { " " };
        let text = format!("WITH {}{behind}{}", with.join(", "), gather.rest);
        let mut out = BytesMut::new();
        write_parse(&mut out, "", &text, &parameter_types);
        write_bind(&mut out, &last);
        write_execute(&mut out, "", 0);
        write_sync(&mut out);
        // In the session of the transaction, if it has one there: it may have written to reference tables.
        let asked = self.ask(snapshot, snapshot.catalog_shard, &out).await?;
        let Some(mut lease) = asked.lease else {
            return Err(SqlError::new(code::CONNECTION, "the first shard does not answer").into());
        };
        let count = self.rows_of(&mut lease).await;
        self.hold(asked.id, Some(lease), asked.is_held);
        write_command_complete(&mut self.client.out, &format!("SELECT {}", count?));
        Ok(())
    }

    /// The names of types, asked of the catalog shard where they are not known.
    async fn names_of(
        &mut self,
        snapshot: &Snapshot,
        types: &[(u32, i32)],
    ) -> Result<Vec<String>, Stop> {
        let mut out = BytesMut::new();
        let pool = self.pools[snapshot.catalog_shard].clone();
        let mut lease = pool.lease(&self.settings, self.role.as_deref(), &mut out).await?;
        if !out.is_empty() {
            lease.write(&out).await.map_err(Ended::from)?;
            finish_setup(&mut lease).await?;
            lease.is_dirty = false;
        }
        Ok(self.space.type_names(&mut lease, types).await?)
    }
}

/// Rows as they were to be sent, decoded.
fn decoded(frames: &[Bytes]) -> Result<Rows, SqlError> {
    let (mut rows, mut size) = (Rows::new(), 0);
    for whole in frames {
        size += whole.len();
        if size > GATHERED_BYTES_MAX {
            return Err(too_much());
        }
        let mut one = Frames::default();
        one.buffer().extend_from_slice(whole);
        if let Some(frame) = one.next(GATHERED_BYTES_MAX)? {
            rows.push(read_data_row(frame.body())?);
        }
    }
    Ok(rows)
}
