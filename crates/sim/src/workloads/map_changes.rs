//! Splits, merges, moves, locks, read-only and offline partitions, at random, on the tables of all other workloads.
//!
//! At every moment the catalog's map tiles its space. A locked partition is changed only by the holder of its lock.
//! In the end everything is online again, and no move is running.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::MoveOptions;
use lazuli_shardmap::catalog::Entry;
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::route::{virtual_routes, virtual_shards};
use lazuli_shardmap::{MapKind, Move, Partition, PartitionState, ShardId};
use lazuli_store::KeyRange;

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::checkers::tiles;
use crate::client::behind_prefix;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::scenario::Found;

/// How long to wait before checking again whether something has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How many checks are made before a move is cancelled.
const PATIENCE: u64 = 2_000;
/// When a client that leads a move itself disconnects.
const MEDDLE_TIME_MAX: Duration = Duration::from_secs(20);

pub struct MapChanges {
    cluster: Cluster,
}

impl MapChanges {
    pub async fn setup(cluster: &Cluster) -> Built {
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
        match client.random.index(8) {
            6 => send(client, partition).await,
            7 => meddle(client).await,
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
    client
        .ask_surely("read the map", || {
            move |engine| async move {
                let all = KeyRange::all();
                engine.manager().catalog().partitions_in(id, &all, usize::MAX).await
            }
        })
        .await
}

/// A bound inside the partition at which it may be split.
fn cut(client: &Client, table: &Table, partition: &Partition) -> Option<Bytes> {
    match table.kind {
        MapKind::List => None,
        MapKind::Range if table.shardlets.is_empty() => cut_at_item(client, table, partition),
        MapKind::Range => {
            let span = (table.shardlets.end - table.shardlets.start) as u64;
            let shardlet = table.shardlets.start + client.random.between(0, span) as i64;
            Some(table.route(shardlet))
        }
        MapKind::EpkV1 | MapKind::EpkV2 | MapKind::EpkMulti => {
            cut_at_item(client, table, partition)
        }
        MapKind::Hash => {
            let shards = virtual_shards(&partition.routes)?;
            let at = client.random.between(shards.start.into(), shards.end.into()) as u16;
            virtual_routes(shards.start..at).ok()?.end
        }
    }
}

/// The bound before some existing shardlet, for tables whose keys are not numbers.
fn cut_at_item(client: &Client, table: &Table, partition: &Partition) -> Option<Bytes> {
    let keys = KeyRange::prefix(layout::prefix(table.id, Space::ITEMS));
    let disks = &client.cluster.disks().shards;
    let items = disks.iter().flat_map(|disk| disk.items(&keys));
    let route = |key: Bytes| {
        let route = table.kind.unit(&table.schema, behind_prefix(&key)).ok()?;
        partition.routes.contains(route).then(|| Bytes::copy_from_slice(route))
    };
    let routes: Vec<Bytes> = items.filter_map(|(key, _)| route(key)).collect();
    (!routes.is_empty()).then(|| client.random.pick(&routes).clone())
}

async fn split(client: &Client, table: &Table, partition: &Partition) -> Found {
    let Some(at) = cut(client, table, partition) else { return Ok(()) };
    let known = Known::from(partition);
    client
        .ask("split", move |engine| async move { engine.manager().split(known, at).await })
        .await
        .map(|_| ())
}

async fn merge(client: &Client, left: &Partition, right: &Partition) -> Found {
    let (left, right) = (Known::from(left), Known::from(right));
    client
        .ask("merge", move |engine| async move { engine.manager().merge(left, right).await })
        .await
        .map(|_| ())
}

/// Asks for the figures of a partition, which makes the engine count it if it must.
async fn stats(client: &Client, partition: &Partition) -> Found {
    let (id, shard) = (partition.id, partition.shard);
    client
        .ask("stats", move |engine| async move { engine.partition_stats(id, shard).await })
        .await
        .map(|_| ())
}

/// Locks a partition, lets a client without the token try to change it, and unlocks it.
async fn lock(client: &Client, table: &Table, partition: &Partition) -> Found {
    let (known, id) = (Known::from(partition), table.id);
    let token = client
        .ask_surely("token", || |engine| async move { Ok(engine.manager().new_token()) })
        .await?;
    if let Answer::Done(()) = client
        .ask("lock", move |engine| async move { engine.manager().lock(known, token).await })
        .await?
    {
        let changed = client
            .ask("change what is locked", move |engine| async move {
                engine.manager().set_state(known, PartitionState::Offline).await
            })
            .await?
            .done();
        ensure!(changed.is_none(), "partition {} was locked and changed: {changed:?}", known.id);
    }
    client
        .ask_surely("unlock", || {
            move |engine| async move { engine.manager().unlock_all(id, token).await }
        })
        .await
        .map(|_| ())
}

/// Takes a partition offline or makes it read-only for a while.
async fn pause(client: &Client, table: &Table, partition: &Partition) -> Found {
    let state = *client.random.pick(&[PartitionState::Offline, PartitionState::ReadOnly]);
    let known = Known::from(partition);
    client
        .ask("pause", move |engine| async move { engine.manager().set_state(known, state).await })
        .await?;
    let millis = client.random.between(0, 100);
    client.cluster.world.sleep(Duration::from_millis(millis)).await;
    bring_online(client, table).await
}

pub(crate) async fn shards(client: &Client) -> Result<Vec<ShardId>, String> {
    client
        .ask_surely("shards", || {
            |engine| async move {
                let shards = engine.manager().catalog().shards().await?;
                Ok(shards.into_iter().map(|shard| shard.id).collect())
            }
        })
        .await
}

/// Begins to move a partition to another shard.
async fn send(client: &Client, partition: &Partition) -> Found {
    let target = *client.random.pick(&shards(client).await?);
    let options = MoveOptions {
        pause_limit: Duration::from_millis(*client.random.pick(&[1, 50, 500, 500])),
        bytes_per_second: client.random.chance(300).then_some(10_000),
    };
    let id = partition.id;
    client
        .ask("move", move |engine| async move { engine.move_partition(id, target, options).await })
        .await
        .map(|_| ())
}

pub(crate) async fn moves(client: &Client) -> Result<Vec<Move>, String> {
    client
        .ask_surely("moves", || |engine| async move { engine.manager().catalog().moves().await })
        .await
}

/// Cancels, pauses or resumes a move, or lets another engine become its leader, all without asking the leader.
async fn meddle(client: &Client) -> Found {
    let moves = moves(client).await?;
    if moves.is_empty() {
        return Ok(());
    }
    let number = client.random.pick(&moves).number;
    let kind = client.random.index(4);
    let meddled = client.ask("meddle with a move", move |engine| async move {
        match kind {
            0 => engine.cancel_move(number).await.map(|_| ()),
            1 => engine.pause_move(number).await.map(|_| ()),
            2 => engine.resume_move(number).await.map(|_| ()),
            _ => engine.run_moves().await,
        }
    });
    // A move that cannot meet its pause limit is led only while a client waits for it.
    let patience = client.cluster.world.sleep(MEDDLE_TIME_MAX);
    tokio::select! {
        biased;
        meddled = meddled => meddled.map(|_| ()),
        () = patience => Ok(()),
    }
}

/// Lets every move end. One that cannot meet its pause limit is cancelled.
pub(crate) async fn end_moves(client: &Client) -> Found {
    for look in 0u64.. {
        let moves = moves(client).await?;
        if moves.is_empty() {
            break;
        }
        for number in moves.iter().filter(|it| it.is_open()).map(|it| it.number) {
            if look > PATIENCE {
                client
                    .ask("call off", move |engine| async move { engine.cancel_move(number).await })
                    .await?;
            }
        }
        for number in moves.iter().filter(|moving| moving.is_paused).map(|it| it.number) {
            client
                .ask("resume", move |engine| async move { engine.resume_move(number).await })
                .await?;
        }
        client.cluster.world.sleep(LOOK).await;
    }
    Ok(())
}

/// Brings every partition of a table online.
async fn bring_online(client: &Client, table: &Table) -> Found {
    let id = table.id;
    loop {
        // An unfinished operation may still take something offline.
        client
            .ask_surely("settle", || move |engine| async move { engine.manager().settle(id).await })
            .await?;
        let entries = entries(client, table).await?;
        tiles::check(table, &entries)?;
        let moves = moves(client).await?;
        let is_moves = |entry: &&Entry| moves.iter().any(|it| entry.lock == Some(it.token));
        let is_off = |entry: &&Entry| entry.partition.state != PartitionState::Online;
        let Some(entry) = entries.iter().filter(|it| !is_moves(it)).find(is_off) else {
            return Ok(());
        };
        let known = Known { lock: entry.lock, ..Known::from(&entry.partition) };
        client
            .ask("bring online", move |engine| async move {
                engine.manager().set_state(known, PartitionState::Online).await
            })
            .await?;
        client.cluster.world.sleep(LOOK).await;
    }
}

impl Workload for MapChanges {
    async fn live(&self, client: &Client) -> Found {
        for _ in 0..client.rounds() {
            self.change(client).await?;
            client.think().await;
        }
        // What a cancelled request of its own left behind.
        self.check(client).await
    }

    async fn check(&self, client: &Client) -> Found {
        end_moves(client).await?;
        for table in self.cluster.tables() {
            bring_online(client, &table).await?;
        }
        Ok(())
    }
}
