//! Counters that are incremented on condition of their version, by several clients at once.
//!
//! A counter must equal the answered increments, plus at most those whose answer was lost. Versions grow: a read
//! after an answered write sees that version or a later one.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{Condition, ItemKey, Lsn, Transaction, Tx};
use lazuli_store::Result as StoreResult;

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

const COUNTERS: i64 = 4;

#[derive(Clone, Copy, Default)]
struct Tally {
    done: u64,
    unknown: u64,
    /// The highest version in any answer.
    version: Lsn,
}

pub struct EtagCounter {
    table: Table,
    tallies: Mutex<Vec<Tally>>,
}

struct Increment {
    key: ItemKey,
    condition: Condition,
    value: u64,
}

impl Transaction for Increment {
    type Output = Lsn;

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<Lsn> {
        tx.check(&self.key, self.condition).await?;
        tx.put(&self.key, Bytes::copy_from_slice(&self.value.to_be_bytes())).await?;
        Ok(tx.lsn())
    }
}

impl EtagCounter {
    pub async fn setup(cluster: &Cluster) -> Built {
        let table = cluster.create_table("etag_counter", 0..COUNTERS).await?;
        let tallies = Mutex::new(vec![Tally::default(); COUNTERS as usize]);
        Ok(Arc::new(Self { table, tallies }))
    }

    fn tallies(&self) -> std::sync::MutexGuard<'_, Vec<Tally>> {
        lock(&self.tallies)
    }

    async fn increment(&self, client: &Client, counter: i64) -> Found {
        let at = counter as usize;
        let before = self.tallies()[at].version;
        let Answer::Done(found) = client.get(&self.table, counter, b"").await? else {
            return Ok(());
        };
        let (value, version) =
            found.map_or((0, Lsn::ZERO), |item| (number(&item.payload), item.version));
        ensure!(
            version >= before,
            "counter {counter}: version {before} was answered, {version} read"
        );
        let condition =
            if version == Lsn::ZERO { Condition::Absent } else { Condition::Version(version) };
        let key = self.table.key(counter, b"");
        let increment = Increment { key, condition, value: value + 1 };
        match client.write(&self.table, counter, increment).await? {
            Answer::Done(lsn) => {
                ensure!(lsn > version, "counter {counter}: version {lsn} after {version}");
                let tally = &mut self.tallies()[at];
                tally.done += 1;
                tally.version = tally.version.max(lsn);
            }
            Answer::Refused(_) => {}
            Answer::Unknown => self.tallies()[at].unknown += 1,
        }
        Ok(())
    }
}

fn number(payload: &[u8]) -> u64 {
    payload.try_into().map_or(0, u64::from_be_bytes)
}

impl Workload for EtagCounter {
    async fn round(&self, client: &Client, _: u64) -> Found {
        let counter = client.random.between(0, COUNTERS as u64 - 1) as i64;
        self.increment(client, counter).await
    }

    async fn check(&self, client: &Client) -> Found {
        for counter in 0..COUNTERS {
            let found = client.get_surely(&self.table, counter, b"").await?;
            let value = found.map_or(0, |item| number(&item.payload));
            let Tally { done, unknown, .. } = self.tallies()[counter as usize];
            ensure!(
                (done..=done + unknown).contains(&value),
                "counter {counter} is {value}: {done} increments were answered, {unknown} unknown"
            );
        }
        Ok(())
    }
}
