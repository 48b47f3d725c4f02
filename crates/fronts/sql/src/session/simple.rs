//! Query messages: one statement, or several that are one transaction.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_net::Outcome;
use lazuli_pg::Bind;
use lazuli_pg::server::{tag, write_empty};
use lazuli_sharded_sql::Snapshot;

use super::route::To;
use super::{Again, Gone, Session, Stop};
use crate::error::{SqlError, code};
use crate::limits::{FENCE_RETRY, FENCE_WAIT_MAX, QUERY_STATEMENTS_MAX};
use crate::plan::{Command, Plan, split};

/// No parameters, and text.
pub(crate) fn no_parameters() -> Bind {
    Bind {
        portal: String::new(),
        statement: String::new(),
        formats: Vec::new(),
        values: Vec::new(),
        result_formats: Vec::new(),
    }
}

impl Session {
    pub(super) async fn query(&mut self, text: &str) -> Result<(), Gone> {
        let began = Instant::now();
        self.front.metrics.count_request();
        self.recent.clear();
        self.recent_bytes = 0;
        self.batch = None;
        self.is_skipping = false;
        self.portals.remove("");
        let statements = split::split(text);
        let ran = match statements[..] {
            [] => {
                write_empty(&mut self.client.out, tag::EMPTY_QUERY);
                Ok(())
            }
            [one] => self.statement(one).await,
            _ => self.statements(&statements).await,
        };
        let outcome = self.outcome(ran)?;
        self.front.metrics.observe("query", outcome, began.elapsed());
        self.release();
        self.ready();
        self.client.send().await
    }

    /// Tells the client why a statement was not finished.
    pub(super) fn outcome(&mut self, ran: Result<(), Stop>) -> Result<Outcome, Gone> {
        match ran {
            Ok(()) => Ok(Outcome::Ok),
            Err(Stop::Gone) => Err(Gone),
            Err(Stop::Relayed) => {
                self.tx.fail();
                Ok(Outcome::Refused("shard-error"))
            }
            Err(Stop::Error(error)) => {
                self.fail(&error);
                Ok(error.outcome())
            }
            Err(Stop::Again(again)) => {
                let error = moved(again);
                self.fail(&error);
                Ok(error.outcome())
            }
        }
    }

    /// Several statements: one transaction, unless they say something else.
    async fn statements(&mut self, statements: &[&str]) -> Result<(), Stop> {
        if statements.len() > QUERY_STATEMENTS_MAX {
            return Err(SqlError::new(code::LIMIT, "too many statements in one query").into());
        }
        for statement in statements {
            if self.tx.is_auto() && !self.is_begin(statement).await? {
                self.tx.begin_implicit(self.own.is_two_phase);
            }
            if let Err(stop) = self.statement(statement).await {
                if !self.tx.is_auto() && !self.tx.is_explicit() {
                    self.roll_back().await;
                }
                return Err(stop);
            }
        }
        if self.tx.is_auto() || self.tx.is_explicit() {
            return Ok(());
        }
        self.commit().await.map(drop)
    }

    async fn is_begin(&mut self, statement: &str) -> Result<bool, Stop> {
        let snapshot = self.snapshot().await?;
        let planned = self.plan(statement, &[], &snapshot)?;
        Ok(matches!(planned.plan, Plan::Command(Command::Begin(_))))
    }

    /// One statement in text form, tried again while its rows move.
    async fn statement(&mut self, text: &str) -> Result<(), Stop> {
        let (begun, sent) = (Instant::now(), self.client.out.len());
        self.client.has_sent = false;
        self.has_begun = !self.tx.leases.is_empty();
        loop {
            let mut snapshot = self.snapshot().await?;
            match self.statement_once(&mut snapshot, text).await {
                Err(Stop::Again(again)) => {
                    drop(snapshot);
                    self.once_more(again, begun, sent).await?;
                }
                ran => return ran,
            }
        }
    }

    /// Prepares for another try of what has done nothing yet, or fails.
    pub(super) async fn once_more(
        &mut self,
        again: Again,
        begun: Instant,
        sent: usize,
    ) -> Result<(), Stop> {
        if self.has_begun || self.client.has_sent || begun.elapsed() > FENCE_WAIT_MAX {
            return Err(moved(again).into());
        }
        if again == Again::StalePlan {
            for lease in self.tx.leases.values_mut().filter(|lease| !lease.is_dirty) {
                lease.forget_all().await?;
            }
        }
        self.abandon().await;
        self.client.out.truncate(sent);
        if again == Again::Fenced {
            tokio::time::sleep(FENCE_RETRY).await;
        } else if begun.elapsed() > Duration::from_millis(100) {
            // Whoever moves rows tells the shards first and us a moment later.
            tokio::time::sleep(FENCE_RETRY).await;
        }
        if again != Again::StalePlan {
            let _ = self.front.databases.refresh(&self.database).await;
        }
        Ok(())
    }

    /// Runs a statement with the newest map.
    async fn statement_once(
        &mut self,
        snapshot: &mut Arc<Snapshot>,
        text: &str,
    ) -> Result<(), Stop> {
        let planned = self.plan(text, &[], snapshot)?;
        let bind = no_parameters();
        match self.route(snapshot, &planned, &bind)? {
            To::Shard(shard) if self.is_outside(&planned.plan) => {
                self.outside(snapshot, shard, text).await
            }
            To::Shard(shard) => self.relay_simple(snapshot, shard, text).await,
            To::Here => match &planned.plan {
                Plan::Copy(copy) => self.copy(snapshot, copy, text).await,
                Plan::CopyQuery(copy) => self.copy_query(snapshot, &planned, &copy.shape).await,
                _ => {
                    let done = self.own(snapshot, &planned).await?;
                    done.write(&mut self.client.out, true);
                    Ok(())
                }
            },
            to => self.run_spread(snapshot, &planned, &bind, &to, true).await,
        }
    }

    /// Whether a statement without tables comes before the transaction has a shard: then it does not choose one.
    pub(super) fn is_outside(&self, plan: &Plan) -> bool {
        matches!(plan, Plan::Anywhere) && !self.tx.is_auto() && self.tx.leases.is_empty()
    }

    /// Runs such a statement for itself.
    async fn outside(&mut self, snapshot: &Snapshot, shard: usize, text: &str) -> Result<(), Stop> {
        let waiting = std::mem::take(&mut self.tx);
        let ran = self.relay_simple(snapshot, shard, text).await;
        self.release();
        self.tx = waiting;
        ran
    }
}

/// What a client is told if its rows have moved while it was in the middle of something.
pub(super) fn moved(again: Again) -> SqlError {
    let what = match again {
        Again::Fenced => "the rows of this key are being moved to another shard",
        Again::Moved => "the rows of this key have been moved to another shard",
        Again::StalePlan => "a table was changed since this statement was prepared",
    };
    SqlError::new(code::SERIALIZATION, what).hint("Try the transaction again.")
}

/// Bytes that were written into a buffer of their own.
pub(super) fn bytes(write: impl FnOnce(&mut bytes::BytesMut)) -> Bytes {
    let mut out = bytes::BytesMut::new();
    write(&mut out);
    out.freeze()
}
