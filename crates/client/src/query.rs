//! One statement on many shards at once, its rows with the name of the shard that each is from.
//!
//! While rows move, a shard may have rows that it does not own. `{owned TABLE ALIAS}` in the text stands for the condition
//! that leaves them out. A text without it is refused while rows move, and no answer is given out if the maps have changed
//! while the shards were asked.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lazuli_sharded_sql::quote_ident;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connection::open;
use crate::database::ShardedDatabase;
use crate::error::{Error, Result};
use crate::state::{Shard, State};

/// How long one shard may take.
const SHARD_TIME_MAX: Duration = Duration::from_secs(30);
/// How often a statement is asked again because the maps have changed meanwhile.
const TRIES: u32 = 3;
/// The most rows of all shards.
const ROWS_MAX: usize = 1_000_000;
const OWNED: &str = "{owned ";

/// What a shard that fails means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The first one fails the query.
    Complete,
    /// Its rows are left out, and it is named. Only if all fail the query does.
    Partial,
}

/// A statement for many shards.
#[derive(Clone, Debug)]
pub struct MultiShardQuery {
    database: ShardedDatabase,
    shards: Option<Vec<String>>,
    policy: Policy,
    shard_time_max: Duration,
}

/// The rows of all shards, one shard behind the other.
#[derive(Debug)]
pub struct MultiShardRows {
    pub rows: Vec<ShardRow>,
    /// The shards whose rows are missing. Empty unless the policy allows it.
    pub failed: Vec<ShardFailure>,
}

/// A row, and the name of the shard that it is from.
#[derive(Clone, Debug)]
pub struct ShardRow {
    shard: Arc<str>,
    row: Row,
}

impl ShardRow {
    pub fn shard(&self) -> &str {
        &self.shard
    }
}

impl Deref for ShardRow {
    type Target = Row;

    fn deref(&self) -> &Row {
        &self.row
    }
}

/// A shard that has failed.
#[derive(Debug)]
pub struct ShardFailure {
    pub shard: String,
    pub error: Error,
}

impl fmt::Display for ShardFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {}: {}", self.shard, self.error)
    }
}

/// What one shard answers: names and types of the columns, and rows.
type Answer = (Vec<(String, u32)>, Vec<Row>);

impl ShardedDatabase {
    /// A query over all shards.
    pub fn multi_shard(&self) -> MultiShardQuery {
        let (shards, policy) = (None, Policy::Complete);
        MultiShardQuery { database: self.clone(), shards, policy, shard_time_max: SHARD_TIME_MAX }
    }
}

impl MultiShardQuery {
    /// Only over these shards.
    pub fn on(mut self, shards: &[&str]) -> Self {
        self.shards = Some(shards.iter().map(|it| (*it).to_owned()).collect());
        self
    }

    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How long one shard may take; 30 seconds without.
    pub fn shard_time_max(mut self, time: Duration) -> Self {
        self.shard_time_max = time;
        self
    }

    /// The rows that all shards answer. The statement must be one that only reads.
    pub async fn query(
        &self,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<MultiShardRows> {
        for _ in 0..TRIES {
            self.database.refresh().await?;
            let before = self.database.state();
            if before.is_moving() && !text.contains(OWNED) {
                return Err(Error::Moved);
            }
            let rows = self.ask(&before, text, parameters).await?;
            self.database.refresh().await?;
            if self.database.state().places == before.places {
                return Ok(rows);
            }
        }
        Err(Error::Moved)
    }

    async fn ask(
        &self,
        state: &State,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<MultiShardRows> {
        let all: Vec<usize> = match &self.shards {
            Some(names) => names.iter().map(|name| state.shard(name)).collect::<Result<_>>()?,
            None => (0..state.shards.len()).collect(),
        };
        let texts: Vec<String> =
            all.iter().map(|index| with_owned(text, state, *index)).collect::<Result<_>>()?;
        let one = |(index, text): (&usize, &String)| {
            let (shard, text) = (&state.shards[*index], text.clone());
            async move {
                let asked = self.ask_one(shard, &text, parameters);
                let late = || Error::Unavailable("no answer in time".to_owned());
                timeout(self.shard_time_max, asked).await.unwrap_or_else(|_| Err(late()))
            }
        };
        let answers = join_all(all.iter().zip(&texts).map(one)).await;
        let names = all.iter().map(|index| state.shards[*index].name.clone());
        self.put_together(names.zip(answers))
    }

    async fn ask_one(
        &self,
        shard: &Shard,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Answer> {
        let client = open(shard, self.database.login(), None).await?;
        let statement = client.prepare(text).await?;
        let columns = statement.columns().iter();
        let columns = columns.map(|it| (it.name().to_owned(), it.type_().oid())).collect();
        let rows = client.query(&statement, parameters).await?;
        if rows.len() > ROWS_MAX {
            return Err(Error::Invalid(format!("the answer has over {ROWS_MAX} rows")));
        }
        Ok((columns, rows))
    }

    /// One answer of those of all shards. Columns must be the same everywhere.
    fn put_together(
        &self,
        answers: impl Iterator<Item = (String, Result<Answer>)>,
    ) -> Result<MultiShardRows> {
        let (mut rows, mut failed, mut first) = (Vec::new(), Vec::new(), None);
        let mut count = 0;
        for (shard, answer) in answers {
            count += 1;
            let (columns, found) = match answer {
                Ok(answer) => answer,
                Err(error) => {
                    failed.push(ShardFailure { shard, error });
                    continue;
                }
            };
            if first.get_or_insert_with(|| columns.clone()) != &columns {
                let error = Error::SchemaMismatch { shard: shard.clone() };
                failed.push(ShardFailure { shard, error });
                continue;
            }
            let name: Arc<str> = shard.into();
            rows.extend(found.into_iter().map(|row| ShardRow { shard: name.clone(), row }));
        }
        let is_failed = match self.policy {
            Policy::Complete => !failed.is_empty(),
            Policy::Partial => failed.len() == count && count > 0,
        };
        if is_failed { Err(Error::Shards(failed)) } else { Ok(MultiShardRows { rows, failed }) }
    }
}

/// The text for one shard: each `{owned TABLE ALIAS}` as the condition that keeps the rows that it owns.
fn with_owned(text: &str, state: &State, shard: usize) -> Result<String> {
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(OWNED) {
        let wrong = || Error::Invalid("write {owned TABLE ALIAS}".to_owned());
        let (inner, after) = after.split_once('}').ok_or_else(wrong)?;
        let mut words = inner.split_whitespace();
        let (Some(name), Some(alias), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong());
        };
        let (schema, short) = name.split_once('.').unwrap_or(("public", name));
        let mut tables = state.tables.iter();
        let table = tables.find(|it| it.schema == schema && it.name == short);
        let table = table.ok_or_else(|| Error::Unknown(format!("sharded table {name}")))?;
        let map = &state.maps[table.map];
        let condition = match map.is_in_transit {
            true => {
                let columns: Vec<_> = table
                    .columns
                    .iter()
                    .map(|(name, kind)| (*kind, format!("{alias}.{}", quote_ident(name))))
                    .collect();
                let columns: Vec<_> =
                    columns.iter().map(|(kind, name)| (*kind, name.as_str())).collect();
                map.owned_sql(shard, &columns)
            }
            false => "true".to_owned(),
        };
        made.push_str(before);
        made.push_str(&condition);
        rest = after;
    }
    Ok(made + rest)
}
