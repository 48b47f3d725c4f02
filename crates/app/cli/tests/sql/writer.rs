//! One writer of the chaos: what it does at the endpoint, and what it knows of each write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio_postgres::Client;

use crate::chaos::Chance;
use crate::shop::connect;

pub(crate) const TENANTS: u64 = 30;
/// Longer than anything that heals by itself.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(40);

pub(crate) struct Writer {
    id: u64,
    chance: Chance,
    endpoint: Arc<RwLock<String>>,
    stop: Arc<AtomicBool>,
    log: Log,
    last_number: i64,
    /// The highest value of each counter that was read, or is sure to be reached.
    seen: BTreeMap<i64, i64>,
}

/// What became of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    InDoubt,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) writer: u64,
    /// Rows that were answered, and those that are in doubt: tenant and number.
    pub(crate) appended: BTreeSet<(i64, i64)>,
    pub(crate) doubtful: BTreeSet<(i64, i64)>,
    /// By tenant, increments that were answered and those in doubt.
    added: BTreeMap<i64, (i64, i64)>,
    outcomes: BTreeMap<&'static str, [u64; 3]>,
    reasons: BTreeMap<String, u64>,
}

impl Log {
    pub(crate) fn added(&self, tenant: i64) -> (i64, i64) {
        self.added.get(&tenant).copied().unwrap_or_default()
    }

    pub(crate) fn sum(logs: &[Self]) -> Self {
        let mut all = Self::default();
        for log in logs {
            for (name, counts) in &log.outcomes {
                let sum = all.outcomes.entry(name).or_default();
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            for (reason, count) in &log.reasons {
                *all.reasons.entry(reason.clone()).or_default() += count;
            }
        }
        all
    }

    pub(crate) fn done(&self) -> u64 {
        self.outcomes.values().map(|counts| counts[0]).sum()
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, [done, failed, doubtful]) in &self.outcomes {
            writeln!(f, "{name}: {done} done, {failed} failed, {doubtful} in doubt")?;
        }
        write!(f, "why: {:?}", self.reasons)
    }
}

impl Writer {
    pub(crate) fn new(
        id: u64,
        seed: u64,
        endpoint: Arc<RwLock<String>>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let chance = Chance(seed.wrapping_add(id * 7919));
        let log = Log { writer: id, ..Log::default() };
        Self { id, chance, endpoint, stop, log, last_number: 0, seen: BTreeMap::new() }
    }

    pub(crate) async fn run(mut self) -> Log {
        while !self.stop.load(Ordering::Relaxed) {
            let endpoint = self.endpoint.read().unwrap().clone();
            let Ok(client) = connect(&endpoint).await else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let set = "SET lazuli.transaction = 'two-phase'; SET lock_timeout = '5s'";
            if client.batch_execute(set).await.is_err() {
                continue;
            }
            while !self.stop.load(Ordering::Relaxed) && self.step(&client).await {}
        }
        self.log
    }

    /// Does one thing; false if the connection is of no use any more.
    async fn step(&mut self, client: &Client) -> bool {
        let tenant = self.chance.below(TENANTS) as i64 + 1;
        match self.chance.below(10) {
            0..3 => self.add(client, tenant).await,
            3..5 => self.append(client, tenant).await,
            5 | 6 => self.pair(client, tenant).await,
            7 => self.transfer(client, tenant).await,
            8 => self.read(client, tenant).await,
            _ => self.count(client).await,
        }
    }

    async fn add(&mut self, client: &Client, tenant: i64) -> bool {
        let text = format!("UPDATE counter SET value = value + 1 WHERE tenant = {tenant}");
        let outcome = self.ask("counter", client, &text).await;
        let (done, doubtful) = self.log.added.entry(tenant).or_default();
        match outcome {
            Outcome::Done => {
                *done += 1;
                let done = *done;
                let seen = self.seen.entry(tenant).or_default();
                *seen = done.max(*seen);
            }
            Outcome::InDoubt => *doubtful += 1,
            Outcome::Failed => {}
        }
        outcome != Outcome::InDoubt
    }

    async fn append(&mut self, client: &Client, tenant: i64) -> bool {
        let text = self.insert(tenant, false);
        let outcome = self.ask("append", client, &text).await;
        self.appended(tenant, outcome)
    }

    fn insert(&mut self, tenant: i64, is_paired: bool) -> String {
        self.last_number += 1;
        let (writer, number) = (self.id, self.last_number);
        format!(
            "INSERT INTO event (tenant, writer, number, is_paired) VALUES ({tenant}, {writer}, {number}, {is_paired})"
        )
    }

    fn appended(&mut self, tenant: i64, outcome: Outcome) -> bool {
        let row = (tenant, self.last_number);
        match outcome {
            Outcome::Done => drop(self.log.appended.insert(row)),
            Outcome::InDoubt => drop(self.log.doubtful.insert(row)),
            Outcome::Failed => {}
        }
        outcome != Outcome::InDoubt
    }

    /// A transaction on one shard.
    async fn pair(&mut self, client: &Client, tenant: i64) -> bool {
        let insert = self.insert(tenant, true);
        let first = format!("UPDATE counter SET paired = paired + 1 WHERE tenant = {tenant}");
        let outcome = self.transact("transaction", client, &[first, insert]).await;
        self.appended(tenant, outcome)
    }

    /// A transaction on two shards, or on one that has both tenants.
    async fn transfer(&mut self, client: &Client, tenant: i64) -> bool {
        let other = self.chance.below(TENANTS) as i64 + 1;
        let add = |tenant: i64, amount: i64| {
            format!("UPDATE counter SET balance = balance + {amount} WHERE tenant = {tenant}")
        };
        // In the order of their keys, because nobody sees a deadlock over two shards.
        let amount = if tenant < other { 5 } else { -5 };
        let texts = [add(tenant.min(other), -amount), add(tenant.max(other), amount)];
        self.transact("transfer", client, &texts).await != Outcome::InDoubt
    }

    async fn transact(&mut self, name: &'static str, client: &Client, texts: &[String]) -> Outcome {
        let begun = tokio::time::timeout(ANSWER_TIME_MAX, async {
            client.batch_execute("BEGIN").await?;
            for text in texts {
                let count = client.execute(text, &[]).await?;
                assert_eq!(count, 1, "{text}");
            }
            Ok::<_, tokio_postgres::Error>(())
        });
        let outcome = match begun.await {
            Ok(Ok(())) => return self.ask(name, client, "COMMIT").await,
            // Nothing of it is there before COMMIT was sent.
            Ok(Err(error)) => {
                self.reason(&error);
                let is_gone = error.is_closed() || error.code().is_none();
                if is_gone || client.batch_execute("ROLLBACK").await.is_err() {
                    Outcome::InDoubt
                } else {
                    Outcome::Failed
                }
            }
            Err(_) => Outcome::InDoubt,
        };
        self.count_outcome(name, outcome);
        outcome
    }

    /// What was answered or seen is never unseen.
    async fn read(&mut self, client: &Client, tenant: i64) -> bool {
        let text = format!("SELECT value FROM counter WHERE tenant = {tenant}");
        let rows = tokio::time::timeout(ANSWER_TIME_MAX, client.query(&text, &[])).await;
        let rows = match rows {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => {
                self.reason(&error);
                return !error.is_closed();
            }
            Err(_) => return false,
        };
        assert_eq!(rows.len(), 1, "tenant {tenant} is there once");
        let value: i64 = rows[0].get(0);
        let seen = self.seen.entry(tenant).or_default();
        assert!(value >= *seen, "counter {tenant} was {seen} and is {value}");
        *seen = value;
        self.count_outcome("read", Outcome::Done);
        true
    }

    /// A query over all shards has every row once, also while rows move.
    async fn count(&mut self, client: &Client) -> bool {
        let text = "SELECT count(*), count(DISTINCT tenant) FROM counter";
        match tokio::time::timeout(ANSWER_TIME_MAX, client.query_one(text, &[])).await {
            Ok(Ok(row)) => {
                let counts: [i64; 2] = [row.get(0), row.get(1)];
                assert_eq!(counts, [TENANTS as i64; 2], "each tenant is there once");
                self.count_outcome("count", Outcome::Done);
                true
            }
            Ok(Err(error)) => {
                self.reason(&error);
                !error.is_closed()
            }
            Err(_) => false,
        }
    }

    async fn ask(&mut self, name: &'static str, client: &Client, text: &str) -> Outcome {
        let asked = tokio::time::timeout(ANSWER_TIME_MAX, client.execute(text, &[])).await;
        let outcome = match asked {
            Ok(Ok(_)) => Outcome::Done,
            Ok(Err(error)) => {
                self.reason(&error);
                match error.code().map(|code| code.code()) {
                    // Connections that broke, servers that ended, and outcomes that nobody knows.
                    None | Some("40003" | "XX000") => Outcome::InDoubt,
                    Some(code) if code.starts_with("08") || code.starts_with("57") => {
                        Outcome::InDoubt
                    }
                    Some(_) => Outcome::Failed,
                }
            }
            Err(_) => Outcome::InDoubt,
        };
        self.count_outcome(name, outcome);
        outcome
    }

    fn reason(&mut self, error: &tokio_postgres::Error) {
        let reason = match error.as_db_error() {
            Some(told) => format!("{} {}", told.code().code(), told.message()),
            None => "the connection broke".to_owned(),
        };
        // Names of rows and mappings would make each reason another one.
        let reason: String =
            reason.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).take(80).collect();
        *self.log.reasons.entry(reason).or_default() += 1;
    }

    fn count_outcome(&mut self, name: &'static str, outcome: Outcome) {
        self.log.outcomes.entry(name).or_default()[outcome as usize] += 1;
    }
}
