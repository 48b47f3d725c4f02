//! Items that expire, items that do not, and items whose expiry is extended or removed.
//!
//! No item disappears before its expiry, and none is returned after it, within the error of the clocks. In the end
//! expired items are gone from the disks, together with their rows in the expiry space.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{ItemKey, Transaction, Tx};
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::{KeyRange, Result as StoreResult};

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::clock::WALL_START_MS;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

/// Items of each client.
const ITEMS: i64 = 4;
const TTL_MS_MAX: u64 = 3_000;
/// Without faults everything that has expired is swept after this time.
const SWEEP_MAX: Duration = Duration::from_secs(120);
/// Tolerance for rounding to milliseconds.
const SLACK_MS: u64 = 2;

/// The expected state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Nothing,
    Until(u64),
    Forever,
    /// A write without an answer.
    Unknown,
}

pub struct TimeToLive {
    table: Table,
    lives: Mutex<Vec<Life>>,
}

struct Put {
    key: ItemKey,
    ttl_ms: Option<u64>,
}

impl Transaction for Put {
    type Output = Option<u64>;

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<Option<u64>> {
        let expires_ms = self.ttl_ms.map(|ttl| tx.now_ms() + ttl);
        tx.put_until(&self.key, Bytes::from_static(b"alive"), expires_ms).await?;
        Ok(expires_ms)
    }
}

/// The true time, which no process knows.
fn truth_ms(client: &Client) -> u64 {
    WALL_START_MS + u64::try_from(client.cluster.world.now().as_millis()).unwrap_or(0)
}

impl TimeToLive {
    pub async fn setup(cluster: &Cluster) -> Built {
        let items = cluster.settings.clients as i64 * ITEMS;
        let table = cluster.create_table("time_to_live", 0..items).await?;
        Ok(Arc::new(Self { table, lives: Mutex::new(vec![Life::Nothing; items as usize]) }))
    }

    fn lives(&self) -> std::sync::MutexGuard<'_, Vec<Life>> {
        lock(&self.lives)
    }

    async fn put(&self, client: &Client, at: i64) -> Found {
        let ttl_ms = client.random.chance(800).then(|| client.random.between(0, TTL_MS_MAX));
        let put = Put { key: self.table.key(at, b"row"), ttl_ms };
        let answer = client.write(&self.table, at, put).await?;
        let life = &mut self.lives()[at as usize];
        match answer {
            Answer::Done(Some(expires_ms)) => *life = Life::Until(expires_ms),
            Answer::Done(None) => *life = Life::Forever,
            Answer::Refused(_) => {}
            Answer::Unknown => *life = Life::Unknown,
        }
        Ok(())
    }

    async fn look(&self, client: &Client, at: i64) -> Found {
        let skew = client.cluster.settings.clock.skew_ms_max + SLACK_MS;
        let before = truth_ms(client);
        let Answer::Done(found) = client.get(&self.table, at, b"row").await? else { return Ok(()) };
        let after = truth_ms(client);
        match (self.lives()[at as usize], found.is_some()) {
            (Life::Nothing, true) => Err(format!("item {at} is there and was never written")),
            (Life::Forever, false) => Err(format!("item {at} is gone and never expires")),
            (Life::Until(end), true) => {
                ensure!(before <= end + skew, "item {at} is there at {before}, expired at {end}");
                Ok(())
            }
            (Life::Until(end), false) => {
                ensure!(after + skew >= end, "item {at} is gone at {after}, expires at {end}");
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Workload for TimeToLive {
    fn client(client: Client) -> Client {
        client.patient()
    }

    async fn live(&self, client: &Client) -> Found {
        for _ in 0..client.rounds() {
            let item = client.random.between(0, ITEMS as u64 - 1) as i64;
            let at = client.number as i64 * ITEMS + item;
            match client.random.chance(500) {
                true => self.put(client, at).await?,
                false => self.look(client, at).await?,
            }
            client.think().await;
            let pause = client.random.between(0, TTL_MS_MAX / 10);
            client.cluster.world.sleep(Duration::from_millis(pause)).await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        let cluster = &client.cluster;
        let items = self.lives().len();
        for at in 0..items {
            self.look(client, at as i64).await?;
        }
        let skew = Duration::from_millis(2 * cluster.settings.clock.skew_ms_max + TTL_MS_MAX);
        cluster.world.sleep(skew + SWEEP_MAX).await;
        let rows = |space| -> usize {
            let keys = KeyRange::prefix(layout::prefix(self.table.id, space));
            cluster.disks().shards.iter().map(|disk| disk.items(&keys).len()).sum()
        };
        let lives = self.lives();
        let forever = lives.iter().filter(|life| **life == Life::Forever).count();
        let unknown = lives.iter().filter(|life| **life == Life::Unknown).count();
        let items = rows(Space::ITEMS);
        ensure!(
            (forever..=forever + unknown).contains(&items),
            "{items} items are left, {forever} never expire, {unknown} may not"
        );
        ensure!(rows(Space::EXPIRY) == 0, "{} expiry rows are left", rows(Space::EXPIRY));
        Ok(())
    }
}
