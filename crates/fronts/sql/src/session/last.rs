//! The last step of a SELECT over several shards, by PostgreSQL itself: the rows of all shards are its parameters.

use std::sync::Arc;

use bytes::BytesMut;
use lazuli_pg::Bind;
use lazuli_pg::client::{write_bind, write_execute, write_parse, write_sync};
use lazuli_pg::server::write_command_complete;
use lazuli_sharded_sql::Snapshot;

use super::relay::finish_setup;
use super::spread::Rows;
use super::{Session, Stop, arrays};
use crate::error::{SqlError, code};
use crate::plan::{FanOut, Last, OrderKey};
use crate::shard::Ended;
use crate::space::{Description, Planned};

/// The number of PostgreSQL's type `text[]`.
pub(super) const TEXTS: u32 = 1009;

impl Session {
    /// What PostgreSQL itself makes of the rows of all shards.
    pub(super) async fn last_step(
        &mut self,
        snapshot: &Arc<Snapshot>,
        planned: &Arc<Planned>,
        fan_out: &FanOut,
        bind: &Bind,
        description: &Description,
        rows: Rows,
    ) -> Result<(), Stop> {
        let shard_text = fan_out.query.to_string();
        let columns = match planned.columns.get() {
            Some(known) => known.clone(),
            None => {
                let described =
                    self.describe_text(snapshot, &shard_text, &description.parameters).await?;
                planned.columns.get_or_init(|| described).clone()
            }
        };
        let fields = columns.fields.as_deref().unwrap_or_default();
        let types: Vec<_> = fields.iter().map(|field| (field.oid, field.modifier)).collect();
        let mut out = BytesMut::new();
        let pool = self.pools[snapshot.catalog_shard].clone();
        let mut lease = pool.lease(&self.settings, self.role.as_deref(), &mut out).await?;
        if !out.is_empty() {
            lease.write(&out).await.map_err(Ended::from)?;
            finish_setup(&mut lease).await?;
            lease.is_dirty = false;
        }
        let names = self.space.type_names(&mut lease, &types).await?;
        let text = last_text(fan_out, &types, &names, description.parameters.len())?;
        let mut last = Bind { portal: String::new(), statement: String::new(), ..bind.clone() };
        last.formats =
            (0..bind.values.len()).map(|index| i16::from(bind.is_binary(index))).collect();
        let mut parameter_types = description.parameters.clone();
        for column in 0..types.len() {
            let values = rows.iter().map(|row| row.get(column).and_then(Option::as_deref));
            last.values.push(Some(arrays::of_texts(values)));
            last.formats.push(1);
            parameter_types.push(TEXTS);
        }
        drop(rows);
        let mut out = BytesMut::new();
        write_parse(&mut out, "", &text, &parameter_types);
        write_bind(&mut out, &last);
        write_execute(&mut out, "", 0);
        write_sync(&mut out);
        lease.write(&out).await.map_err(Ended::from)?;
        self.cancel.add(lease.canceller());
        let count = self.rows_of(&mut lease).await?;
        write_command_complete(&mut self.client.out, &format!("SELECT {count}"));
        Ok(())
    }
}

/// A query for rows that are parameters behind the first ones: an array of texts for each column.
pub(super) fn rows_sql(
    types: &[String],
    parameters: usize,
    name: impl Fn(usize) -> String,
) -> String {
    let list =
        |make: &dyn Fn(usize) -> String| (0..types.len()).map(make).collect::<Vec<_>>().join(", ");
    let casts = list(&|index| format!("c{}::{} AS {}", index + 1, types[index], name(index)));
    let arrays = list(&|index| format!("${}::text[]", parameters + index + 1));
    let columns = list(&|index| format!("c{}", index + 1));
    format!("SELECT {casts} FROM unnest({arrays}) AS lazuli_values({columns})")
}

/// The statement of the last step, over rows that are parameters: an array of texts for each column.
fn last_text(
    fan_out: &FanOut,
    types: &[(u32, i32)],
    names: &[String],
    parameters: usize,
) -> Result<String, SqlError> {
    let count = types.len();
    let rows = rows_sql(names, parameters, |index| format!("c{}", index + 1));
    let rows = format!("({rows}) AS lazuli_rows");
    match &fan_out.last {
        Last::Concatenate => Err(SqlError::new(code::INTERNAL, "rows without a last step")),
        Last::Arrange { keys, hidden, is_distinct, tail } => {
            let visible = count.saturating_sub(*hidden);
            let shown: Vec<_> = (1..=visible).map(|number| format!("c{number}")).collect();
            let key = |(key, direction): &(OrderKey, String)| {
                let number = match key {
                    OrderKey::Output(number) => *number,
                    OrderKey::Hidden(number) => visible + number,
                };
                format!("c{number}{direction}")
            };
            let order: Vec<_> = keys.iter().map(key).collect();
            let order = if order.is_empty() {
                String::new()
            } else {
                format!(" ORDER BY {}", order.join(", "))
            };
            let distinct = if *is_distinct { "DISTINCT " } else { "" };
            Ok(format!("SELECT {distinct}{} FROM {rows}{order}{tail}", shown.join(", ")))
        }
        Last::Compute { select, tail, checks } => {
            let (mut select, mut tail) = (select.clone(), tail.clone());
            for check in checks {
                check.apply(types, names, &mut select)?;
                check.apply(types, names, &mut tail)?;
            }
            Ok(format!("SELECT {select} FROM {rows}{tail}"))
        }
    }
}
