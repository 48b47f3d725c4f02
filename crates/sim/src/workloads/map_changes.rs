//! Splits, merges, locks, read-only and offline partitions, at random, on the tables of all other workloads.
//!
//! At every moment the catalog's map tiles its space. A partition that is locked is changed by nobody else. In the end
//! everything is online again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_shardmap::catalog::Entry;
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::route::{virtual_routes, virtual_shards};
use lazuli_shardmap::{MapKind, Partition, PartitionState};
use lazuli_store::KeyRange;

use super::{Client, Workload};
use crate::answer::Answer;
use crate::checkers::tiles;
use crate::client::Request;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::scenario::Found;

pub struct MapChanges {
    cluster: Cluster,
}

impl MapChanges {
    pub async fn setup(cluster: &Cluster) -> Result<Arc<dyn Workload>, String> {
        Ok(Arc::new(Self { cluster: cluster.clone() }))
    }

    async fn change(&self, client: &Client) -> Found {
        let tables = self.cluster.tables();
        if tables.is_empty() {
            return Ok(());
        }
        let table = client.random.pick(&tables);
        let entries = entries(client, table).await?;
        tiles::check(table, &entries)?;
        if entries.is_empty() {
            return Ok(());
        }
        let at = client.random.index(entries.len());
        let partition = &entries[at].partition;
        match client.random.index(6) {
            5 => stats(client, partition).await,
            0 | 1 => split(client, table, partition).await,
            2 | 3 => match entries.get(at + 1) {
                Some(right) => merge(client, partition, &right.partition).await,
                None => Ok(()),
            },
            _ if client.random.chance(300) => lock(client, table, partition).await,
            _ => pause(client, table, partition).await,
        }
    }
}

pub(crate) async fn entries(client: &Client, table: &Table) -> Result<Vec<Entry>, String> {
    let id = table.id;
    let request = || -> Request<Vec<Entry>> {
        Box::new(move |engine| {
            Box::pin(async move {
                let all = KeyRange::all();
                engine.manager().catalog().partitions_in(id, &all, usize::MAX).await
            })
        })
    };
    client.ask_surely("read the map", request).await
}

/// A bound inside the partition at which it may be cut.
fn cut(client: &Client, table: &Table, partition: &Partition) -> Option<Bytes> {
    match table.kind {
        MapKind::List => None,
        MapKind::Range => {
            let span = (table.shardlets.end - table.shardlets.start) as u64;
            let shardlet = table.shardlets.start + client.random.between(0, span) as i64;
            Some(table.route(shardlet))
        }
        MapKind::Hash => {
            let shards = virtual_shards(&partition.routes)?;
            let at = client.random.between(shards.start.into(), shards.end.into()) as u16;
            virtual_routes(shards.start..at).ok()?.end
        }
    }
}

async fn split(client: &Client, table: &Table, partition: &Partition) -> Found {
    let Some(at) = cut(client, table, partition) else { return Ok(()) };
    let known = Known::from(partition);
    let request: Request<_> =
        Box::new(move |engine| Box::pin(async move { engine.manager().split(known, at).await }));
    client.ask("split", request).await.map(|_| ())
}

async fn merge(client: &Client, left: &Partition, right: &Partition) -> Found {
    let (left, right) = (Known::from(left), Known::from(right));
    let request: Request<_> =
        Box::new(move |engine| Box::pin(async move { engine.manager().merge(left, right).await }));
    client.ask("merge", request).await.map(|_| ())
}

/// Asks for the figures of a partition, which makes the engine count it if it must.
async fn stats(client: &Client, partition: &Partition) -> Found {
    let (id, shard) = (partition.id, partition.shard);
    let request: Request<_> =
        Box::new(move |engine| Box::pin(async move { engine.partition_stats(id, shard).await }));
    client.ask("stats", request).await.map(|_| ())
}

/// Locks a partition, has somebody without the token try to change it, and gives the lock back.
async fn lock(client: &Client, table: &Table, partition: &Partition) -> Found {
    let (known, id) = (Known::from(partition), table.id);
    let token = client.ask_surely("token", || {
        Box::new(|engine| Box::pin(async move { Ok(engine.manager().new_token()) }))
    });
    let token = token.await?;
    let locking: Request<()> =
        Box::new(move |engine| Box::pin(async move { engine.manager().lock(known, token).await }));
    if let Answer::Done(()) = client.ask("lock", locking).await? {
        let foreign: Request<_> = Box::new(move |engine| {
            Box::pin(
                async move { engine.manager().set_state(known, PartitionState::Offline).await },
            )
        });
        let changed = client.ask("change what is locked", foreign).await?.done();
        ensure!(changed.is_none(), "partition {} was locked and changed: {changed:?}", known.id);
    }
    let unlock = || -> Request<usize> {
        Box::new(move |engine| {
            Box::pin(async move { engine.manager().unlock_all(id, token).await })
        })
    };
    client.ask_surely("unlock", unlock).await.map(|_| ())
}

/// Takes a partition offline or makes it read-only for a while.
async fn pause(client: &Client, table: &Table, partition: &Partition) -> Found {
    let state = *client.random.pick(&[PartitionState::Offline, PartitionState::ReadOnly]);
    let known = Known::from(partition);
    let request: Request<_> = Box::new(move |engine| {
        Box::pin(async move { engine.manager().set_state(known, state).await })
    });
    client.ask("pause", request).await?;
    let millis = client.random.between(0, 100);
    client.cluster.world.sleep(Duration::from_millis(millis)).await;
    bring_online(client, table).await
}

/// Brings every partition of a table online, whoever took it off.
async fn bring_online(client: &Client, table: &Table) -> Found {
    let id = table.id;
    loop {
        // What was begun and not finished may yet take something offline.
        let settle = || -> Request<()> {
            Box::new(move |engine| Box::pin(async move { engine.manager().settle(id).await }))
        };
        client.ask_surely("settle", settle).await?;
        let entries = entries(client, table).await?;
        tiles::check(table, &entries)?;
        let off = entries.iter().find(|entry| entry.partition.state != PartitionState::Online);
        let Some(entry) = off else { return Ok(()) };
        let known = Known { lock: entry.lock, ..Known::from(&entry.partition) };
        let request: Request<_> = Box::new(move |engine| {
            Box::pin(async move { engine.manager().set_state(known, PartitionState::Online).await })
        });
        client.ask("bring online", request).await?;
        client.think().await;
    }
}

impl Workload for MapChanges {
    fn start(self: Arc<Self>, client: Client) -> BoxFuture<'static, Found> {
        Box::pin(async move {
            for _ in 0..client.rounds() {
                self.change(&client).await?;
                client.think().await;
            }
            // What a hung-up request of its own left behind.
            for table in self.cluster.tables() {
                bring_online(&client, &table).await?;
            }
            Ok(())
        })
    }

    fn check<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Found> {
        Box::pin(async move {
            for table in self.cluster.tables() {
                bring_online(client, &table).await?;
            }
            Ok(())
        })
    }
}
