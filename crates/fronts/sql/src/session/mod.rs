//! One session of a client.
//!
//! `startup` lets the client in, `client` reads and writes its messages. `simple` answers Query messages and `extended` those
//! of the extended protocol; both route statements (`route`), run them on one shard (`relay`) or on several (`spread`, `parts`, `write`),
//! or by themselves (`own`). `transaction` holds the sessions on shards that a transaction uses, `copy` carries data of COPY.

mod arrays;
mod client;
mod copy;
mod copy_query;
mod copy_rows;
mod describe;
mod extended;
mod last;
mod own;
mod parts;
mod relay;
mod route;
mod simple;
mod spread;
mod startup;
mod transaction;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use lazuli_pg::server::write_ready;
use lazuli_pg::{Bind, ClientMessage, TxStatus};
use lazuli_sharded_sql::Snapshot;

use crate::Front;
use crate::error::{SqlError, code};
use crate::limits::{PIPELINE_BYTES_MAX, PIPELINE_MAX};
use crate::plan::Plan;
use crate::shard::{Canceller, Ended, Pool};
use crate::space::{Description, Planned, Space};

pub(crate) use client::{Client, Gone};
#[cfg(any(test, fuzzing))]
pub(crate) use copy_rows::try_copy_rows;
pub(crate) use startup::serve;

use route::To;
use transaction::Transaction;

/// The settings that a session has on every shard: what `SET` was given, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) values: BTreeMap<String, String>,
}

/// Settings of the endpoint's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// `lazuli.transaction = 'two-phase'`: a transaction may write on several shards.
    pub(crate) is_two_phase: bool,
    /// `lazuli.fanout = 'partial'`: rows of shards that fail are left out, with a warning for each.
    pub(crate) is_partial: bool,
}

/// Why a statement was not finished.
#[derive(Debug)]
pub(crate) enum Stop {
    Gone,
    /// The client is to be told.
    Error(SqlError),
    /// The client was told, in a shard's own words.
    Relayed,
    /// Nothing was done, and it may succeed with a newer map or a new plan.
    Again(Again),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The key's range is at the end of a move.
    Fenced,
    /// The shard does not hold the key any more.
    Moved,
    /// A table was changed since the statement was prepared there.
    StalePlan,
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

impl From<Ended> for Stop {
    fn from(ended: Ended) -> Self {
        Self::Error(ended.into())
    }
}

/// A statement that the client has named.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    text: Arc<str>,
    types: Vec<u32>,
}

/// A statement with its parameters.
pub(crate) struct Portal {
    planned: Arc<Planned>,
    bind: Bind,
    to: To,
    /// Rows of several shards that the client has not asked for yet, and what is said behind the last one.
    rest: Option<(Vec<bytes::Bytes>, String)>,
}

/// The connections that a cancel of this session ends.
#[derive(Default)]
pub(crate) struct CancelSlot {
    running: Mutex<Vec<Canceller>>,
}

impl CancelSlot {
    pub(crate) fn running(&self) -> Vec<Canceller> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, canceller: Canceller) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(canceller);
    }

    fn clear(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

pub(crate) struct Session {
    front: Arc<Front>,
    client: Client,
    database: String,
    role: Option<String>,
    settings: Arc<Settings>,
    /// The settings that the client began with, for RESET.
    first_settings: Arc<Settings>,
    own: Own,
    search_path: Vec<String>,
    statements: HashMap<String, Prepared>,
    portals: HashMap<String, Portal>,
    tx: Transaction,
    space: Arc<Space>,
    pools: Vec<Arc<Pool>>,
    cancel: Arc<CancelSlot>,
    /// Messages since the last Sync or Flush.
    recent: Vec<ClientMessage>,
    recent_bytes: usize,
    batch: Option<extended::Batch>,
    /// Messages are dropped until the next Sync.
    is_skipping: bool,
    /// Whether something of this round has been run for good, so that it cannot be tried again.
    has_begun: bool,
    /// Whether the messages since the last Sync had a COPY that takes data.
    has_copied: bool,
    turn: usize,
}

impl Session {
    /// Answers messages until the client leaves or the server stops.
    pub(crate) async fn run(&mut self, stop: &mut lazuli_net::Stop) -> Result<(), Gone> {
        loop {
            let message = tokio::select! {
                biased;
                () = stop.stopped(), if self.tx.is_idle() => {
                    let message = "terminating connection due to administrator command";
                    SqlError::new(code::SHUTDOWN, message).fatal().write(&mut self.client.out);
                    return self.client.send().await;
                }
                message = self.client.next() => message?,
            };
            let message = match message {
                Ok(message) => message,
                Err(error) => {
                    error.write(&mut self.client.out);
                    return self.client.send().await;
                }
            };
            match message {
                ClientMessage::Terminate => return Ok(()),
                ClientMessage::Query(text) => self.query(&text).await?,
                ClientMessage::Sync => self.sync().await?,
                ClientMessage::Flush => self.flush().await?,
                // What a client sends behind a COPY that has failed.
                ClientMessage::CopyData(_)
                | ClientMessage::CopyDone
                | ClientMessage::CopyFail(_) => {}
                ClientMessage::FunctionCall => {
                    let error = SqlError::refused("function calls by message are not supported");
                    self.fail(&error);
                    self.ready();
                }
                ClientMessage::Password(_) => {
                    let error =
                        SqlError::new(code::PROTOCOL, "nobody asked for a password").fatal();
                    error.write(&mut self.client.out);
                    return self.client.send().await;
                }
                message => {
                    self.recent.push(message);
                    self.recent_bytes += self.client.last_bytes;
                    if self.recent.len() > PIPELINE_MAX || self.recent_bytes > PIPELINE_BYTES_MAX {
                        let error =
                            SqlError::new(code::LIMIT, "too many messages without Sync").fatal();
                        error.write(&mut self.client.out);
                        return self.client.send().await;
                    }
                }
            }
        }
    }

    /// Tells the client of an error. An open transaction fails with it.
    fn fail(&mut self, error: &SqlError) {
        error.write(&mut self.client.out);
        self.tx.fail();
    }

    fn ready(&mut self) {
        let status = self.tx.status();
        write_ready(&mut self.client.out, status);
        if status == TxStatus::Idle {
            self.portals.clear();
        }
    }

    /// The newest map, with what is known of it.
    async fn snapshot(&mut self) -> Result<Arc<Snapshot>, SqlError> {
        let snapshot = self.front.databases.snapshot(&self.database).ok_or_else(|| {
            let message = format!("database \"{}\" does not exist any more", self.database);
            SqlError::new(code::NO_DATABASE, message).fatal()
        })?;
        if self.pools.is_empty() || snapshot.version != self.space.version {
            self.pools = snapshot.shards.iter().map(|shard| self.front.pools.pool(shard)).collect();
            self.space = self.front.space(&snapshot).await?;
        }
        Ok(snapshot)
    }

    fn plan(
        &self,
        text: &str,
        types: &[u32],
        snapshot: &Snapshot,
    ) -> Result<Arc<Planned>, SqlError> {
        let planned = self.space.plan(text, types, snapshot, &self.search_path)?;
        if self.tx.is_failed() && !is_end(&planned.plan) {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new(code::IN_FAILED, message));
        }
        Ok(planned)
    }

    /// Sends what is in `out` to a shard of the transaction, or to a session of its own, and keeps that.
    async fn join(
        &mut self,
        snapshot: &Snapshot,
        shard: usize,
        out: &mut BytesMut,
    ) -> Result<u32, Stop> {
        let id = snapshot.shards[shard].id;
        if self.tx.leases.contains_key(&id) {
            return Ok(id);
        }
        self.tx.may_join(&snapshot.shards[shard].name)?;
        let pool = self.pools[shard].clone();
        let mut lease = pool.lease(&self.settings, self.role.as_deref(), out).await?;
        lease.types = self.space.types.get(&id).cloned();
        self.tx.begin_on(&mut lease, out);
        self.cancel.add(lease.canceller());
        self.tx.leases.insert(id, lease);
        Ok(id)
    }

    /// Gives back the sessions on shards that no transaction holds.
    fn release(&mut self) {
        if self.tx.is_auto() {
            self.tx.leases.clear();
            self.cancel.clear();
        }
    }

    /// As the catalog shard describes a statement.
    async fn describe(
        &mut self,
        snapshot: &Snapshot,
        planned: &Planned,
    ) -> Result<Arc<Description>, Stop> {
        if let Some(known) = planned.description.get() {
            return Ok(known.clone());
        }
        let described = self.describe_text(snapshot, &planned.text, &planned.types).await?;
        Ok(planned.description.get_or_init(|| described).clone())
    }
}

/// Whether a statement ends a transaction, which is all that a failed one takes.
fn is_end(plan: &Plan) -> bool {
    use crate::plan::Command;
    match plan {
        Plan::Command(command) => {
            matches!(command, Command::Commit | Command::Rollback | Command::RollbackTo(_))
        }
        Plan::Empty
        | Plan::Anywhere
        | Plan::Routed(_)
        | Plan::Copy(_)
        | Plan::CopyQuery(_)
        | Plan::Cursor => false,
    }
}
