//! Whole shards are drained, all partitions of a table at once, while clients overwrite values of one size.
//!
//! An overwrite that a move loses changes neither the count of items nor that of bytes, so only reading shows it.
//! Every client also follows the change feed of its shardlets: each write comes once, in order, on any shard.

use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use lazuli_engine::{Lsn, MoveOptions, Transaction, Tx};
use lazuli_shardmap::Partition;
use lazuli_store::{PageLimit, Result as StoreResult};

use super::map_changes::{end_moves, entries, shards};
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

/// Shardlets of each client.
const SHARDLETS: i64 = 4;
const ROW: &[u8] = b"row";

/// A client's state of one of its shardlets.
#[derive(Clone, Debug, Default)]
struct KnownShardlet {
    /// The last value, none before the first write.
    value: Option<u64>,
    writes: u64,
    /// The position in its feed.
    position: Bytes,
    seen: u64,
    last: Lsn,
}

pub struct Drains {
    table: Table,
    /// By client.
    known: Mutex<Vec<Vec<KnownShardlet>>>,
}

struct Overwrite(lazuli_engine::ItemKey, u64);

impl Transaction for Overwrite {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        tx.put(&self.0, Bytes::copy_from_slice(&self.1.to_be_bytes())).await
    }
}

impl Drains {
    pub async fn setup(cluster: &Cluster) -> Built {
        let clients = cluster.settings.clients;
        let table = cluster.create_table_with_feed("drains", 0..clients as i64 * SHARDLETS).await?;
        let known = vec![vec![KnownShardlet::default(); SHARDLETS as usize]; clients as usize];
        Ok(Arc::new(Self { table, known: Mutex::new(known) }))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Vec<Vec<KnownShardlet>>> {
        lock(&self.known)
    }

    async fn value(&self, client: &Client, at: i64) -> Result<Option<u64>, String> {
        let item = client.get_surely(&self.table, at, ROW).await?;
        Ok(item.map(|mut item| item.payload.get_u64()))
    }

    async fn write(
        &self,
        client: &Client,
        at: i64,
        known: &mut KnownShardlet,
        value: u64,
    ) -> Found {
        let put = Overwrite(self.table.key(at, ROW), value);
        let is_made = match client.write(&self.table, at, put).await? {
            Answer::Done(()) => true,
            Answer::Refused(_) => false,
            Answer::Unknown => {
                let found = self.value(client, at).await?;
                let either = found == Some(value) || found == known.value;
                ensure!(either, "shardlet {at}: {found:?} is neither before nor after {value}");
                found == Some(value)
            }
        };
        if is_made {
            known.value = Some(value);
            known.writes += 1;
        }
        Ok(())
    }

    /// Reads the feed of a shardlet to its end, which must contain every write.
    async fn follow(&self, client: &Client, at: i64, known: &mut KnownShardlet) -> Found {
        let (id, route) = (self.table.id, self.table.route(at));
        let limit = PageLimit::items(client.random.between(1, 20) as usize);
        loop {
            let page = client.ask_surely("feed", || {
                let (route, after) = (route.clone(), known.position.clone());
                move |engine| async move { engine.changes(id, &route, &after, limit).await }
            });
            let page = page.await?;
            for change in page.changes.iter().filter(|it| it.key.route() == &route[..]) {
                ensure!(change.lsn > known.last, "the feed of shardlet {at} went back");
                known.last = change.lsn;
                known.seen += 1;
            }
            known.position = page.position;
            if !page.more {
                break;
            }
        }
        let KnownShardlet { writes, seen, .. } = known;
        ensure!(writes == seen, "shardlet {at}: {writes} writes were made, {seen} were seen");
        Ok(())
    }

    async fn check_value(&self, client: &Client, at: i64, known: &KnownShardlet) -> Found {
        let (found, expected) = (self.value(client, at).await?, known.value);
        ensure!(found == expected, "shardlet {at} is {found:?}, answered was {expected:?}");
        Ok(())
    }

    async fn drain(&self, client: &Client, known: &mut [KnownShardlet]) -> Found {
        let first = client.number as i64 * SHARDLETS;
        for round in 0..client.rounds() * 2 {
            let nth = client.random.index(known.len());
            let at = first + nth as i64;
            match client.random.index(10) {
                0 => drain(client, &self.table).await?,
                1 => self.check_value(client, at, &known[nth]).await?,
                2 | 3 => self.follow(client, at, &mut known[nth]).await?,
                _ => self.write(client, at, &mut known[nth], round).await?,
            }
            client.think().await;
        }
        end_moves(client).await
    }
}

/// Begins to move every partition of the table that is on one shard, each to any other.
async fn drain(client: &Client, table: &Table) -> Found {
    let shards = shards(client).await?;
    let source = *client.random.pick(&shards);
    let entries = entries(client, table).await?;
    let leaving = entries.into_iter().map(|entry| entry.partition);
    for Partition { id, .. } in leaving.filter(|partition| partition.shard == source) {
        let target = *client.random.pick(&shards);
        let drain = client.ask("drain", move |engine| async move {
            engine.move_partition(id, target, MoveOptions::default()).await
        });
        drain.await?;
    }
    Ok(())
}

impl Workload for Drains {
    fn client(client: Client) -> Client {
        client.patient()
    }

    async fn live(&self, client: &Client) -> Found {
        let at = client.number as usize;
        let mut known = std::mem::take(&mut self.known()[at]);
        let found = self.drain(client, &mut known).await;
        self.known()[at] = known;
        found
    }

    async fn check(&self, client: &Client) -> Found {
        end_moves(client).await?;
        let mut all = self.known().clone();
        for (at, known) in (0..).zip(all.iter_mut().flatten()) {
            self.check_value(client, at, known).await?;
            self.follow(client, at, known).await?;
        }
        Ok(())
    }
}
