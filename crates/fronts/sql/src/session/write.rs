//! Writes on several shards: in a transaction that asks for two-phase commit, and only there.

use std::sync::Arc;

use bytes::BytesMut;
use lazuli_pg::Bind;
use lazuli_pg::client::{write_bind, write_execute, write_parse, write_query, write_sync};
use lazuli_pg::server::{ErrorFields, tag, write_command_complete};
use lazuli_sharded_sql::{SETTING_REFERENCE, Snapshot};
use sqlparser::ast::{BinaryOperator, Expr, Statement};

use super::describe::write_fields;
use super::relay::{finish_setup, is_aside, relay_rows};
use super::route::To;
use super::spread::spread_error;
use super::{Session, Stop};
use crate::error::{SqlError, code, two_phase_needed};
use crate::plan::{Spread, WriteEverywhere};
use crate::shard::Ended;
use crate::space::Planned;

/// How many rows of one shard were written, and the words before their number.
struct Written {
    verb: String,
    count: u64,
}

impl Session {
    pub(super) async fn write(
        &mut self,
        snapshot: &Arc<Snapshot>,
        planned: &Arc<Planned>,
        spread: &Spread,
        bind: &Bind,
        to: &To,
        is_simple: bool,
    ) -> Result<(), Stop> {
        let texts = texts(snapshot, &planned.text, spread, to)?;
        let is_reference = matches!(spread, Spread::Reference);
        let is_spread = texts.len() > 1;
        let may = if self.tx.is_auto() { self.own.is_two_phase } else { self.tx.is_two_phase };
        if is_spread && !may {
            let what = if is_reference { "a write to a reference table" } else { "this statement" };
            return Err(two_phase_needed(what).into());
        }
        let description = self.describe(snapshot, planned).await?;
        let is_own = self.tx.is_auto();
        if is_own {
            self.tx.begin_implicit(true);
        }
        let sent = self.client.out.len();
        if is_simple && description.fields.is_some() {
            write_fields(&mut self.client.out, description.fields.as_deref(), &[]);
        }
        let ran =
            self.write_all(snapshot, &texts, &description.parameters, bind, is_reference).await;
        let ran = match ran {
            Ok(written) if is_own => match self.commit().await {
                Ok(_) => Ok(written),
                Err(stop) => Err(stop),
            },
            other => other,
        };
        match ran {
            Ok(Written { verb, count }) => {
                write_command_complete(&mut self.client.out, &format!("{verb}{count}"));
                Ok(())
            }
            Err(stop) => {
                if !self.client.has_sent {
                    self.client.out.truncate(sent);
                }
                if is_own {
                    self.roll_back().await;
                }
                Err(stop)
            }
        }
    }

    async fn write_all(
        &mut self,
        snapshot: &Snapshot,
        texts: &[(usize, String)],
        types: &[u32],
        bind: &Bind,
        is_reference: bool,
    ) -> Result<Written, Stop> {
        let mut whole: Option<Written> = None;
        for (index, (shard, text)) in texts.iter().enumerate() {
            let shows_rows = !is_reference || index == 0;
            let written = self
                .write_one(snapshot, *shard, text, types, bind, is_reference, shows_rows)
                .await?;
            whole = Some(match whole {
                None => written,
                Some(before) if is_reference && before.count != written.count => {
                    let name = &snapshot.shards[*shard].name;
                    let message = format!(
                        "shard \"{name}\" has other rows in this reference table than the others"
                    );
                    let hint = "`lazuli sql check` shows how they differ, and repairs them.";
                    return Err(SqlError::new(code::NOT_READY, message).hint(hint).into());
                }
                Some(before) if is_reference => before,
                Some(before) => Written { count: before.count + written.count, ..before },
            });
        }
        whole.ok_or_else(|| SqlError::new(code::INTERNAL, "a write without a shard").into())
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "all of it is what one statement on one shard is made of"
    )]
    async fn write_one(
        &mut self,
        snapshot: &Snapshot,
        shard: usize,
        text: &str,
        types: &[u32],
        bind: &Bind,
        is_reference: bool,
        shows_rows: bool,
    ) -> Result<Written, Stop> {
        let mut out = BytesMut::new();
        let id = self.join(snapshot, shard, &mut out).await?;
        let (client, tx) = (&mut self.client, &mut self.tx);
        let lease = tx.leases.get_mut(&id).ok_or(Stop::Gone)?;
        if is_reference {
            write_query(&mut out, &format!("SET LOCAL {SETTING_REFERENCE} = 'on'"));
            lease.setup += 1;
        }
        let types = crate::types::on_shard(types, lease.types.as_deref());
        write_parse(&mut out, "", text, &types);
        write_bind(
            &mut out,
            &Bind { portal: String::new(), statement: String::new(), ..bind.clone() },
        );
        write_execute(&mut out, "", 0);
        write_sync(&mut out);
        lease.write(&out).await.map_err(Ended::from)?;
        finish_setup(lease).await?;
        let (mut written, mut error) = (None, None);
        loop {
            if lease.frames.next_tag() == Some(tag::DATA_ROW) {
                let sent = client.out.len();
                relay_rows(lease, client).await?;
                if !shows_rows {
                    client.out.truncate(sent);
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
                tag::COMMAND_COMPLETE => written = read_written(&frame.body()),
                _ => drop(is_aside(lease, client, &frame)?),
            }
        }
        if let Some(error) = error {
            tx.fail();
            return Err(spread_error(&error));
        }
        written.ok_or_else(|| {
            SqlError::new(code::INTERNAL, "a shard did not say what it has written").into()
        })
    }
}

/// `INSERT 0 5` as words and a number.
fn read_written(body: &[u8]) -> Option<Written> {
    let text = std::str::from_utf8(body.strip_suffix(b"\0")?).ok()?;
    let at = text.rfind(' ')? + 1;
    Some(Written { verb: text[..at].to_owned(), count: text[at..].parse().ok()? })
}

/// The statement for each shard.
fn texts(
    snapshot: &Snapshot,
    text: &str,
    spread: &Spread,
    to: &To,
) -> Result<Vec<(usize, String)>, SqlError> {
    match (spread, to) {
        (Spread::Insert(insert), To::Rows(rows)) => {
            Ok(rows.iter().map(|(shard, rows)| (*shard, insert.text(rows))).collect())
        }
        (Spread::Write(write), To::Shards(shards)) => {
            let own = |shard: &usize| Ok((*shard, owned(snapshot, text, write, *shard)?));
            shards.iter().map(own).collect()
        }
        (Spread::Reference, To::Shards(shards)) => {
            Ok(shards.iter().map(|shard| (*shard, text.to_owned())).collect())
        }
        _ => {
            Err(SqlError::new(code::INTERNAL, "a statement was spread in another way than planned"))
        }
    }
}

/// While rows move, only those that the shard owns are written.
fn owned(
    snapshot: &Snapshot,
    text: &str,
    write: &WriteEverywhere,
    shard: usize,
) -> Result<String, SqlError> {
    let table = snapshot.tables.get(&write.table);
    let alias = lazuli_sharded_sql::quote_ident(&write.alias);
    let condition = table.and_then(|table| snapshot.owned_sql(table, shard, &alias));
    let Some(condition) = condition else { return Ok(text.to_owned()) };
    let condition = crate::plan::expression(&condition)?;
    let mut statement = write.statement.clone();
    let selection = match statement.as_mut() {
        Statement::Update(update) => &mut update.selection,
        Statement::Delete(delete) => &mut delete.selection,
        _ => return Ok(text.to_owned()),
    };
    *selection = Some(match selection.take() {
        None => condition,
        Some(before) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(before))),
            op: BinaryOperator::And,
            right: Box::new(condition),
        },
    });
    Ok(statement.to_string())
}
