//! Partitions and whole tables that are created, filled, deleted and created again under the same keys and names.
//!
//! A new one is empty, deleted data is nowhere on the disks in the end, and nothing of a partition is lost until it
//! is removed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{ItemKey, Transaction, Tx};
use lazuli_shardmap::catalog::Entry;
use lazuli_shardmap::manager::{Known, NewPartition};
use lazuli_shardmap::{ContainerId, MapReason, PartitionState};
use lazuli_store::{Kind, Result as StoreResult};

use super::map_changes::entries;
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::scenario::Found;

/// Each round is many requests.
const ROUNDS_MAX: u64 = 5;
const ROWS: u8 = 3;
/// Long enough that nothing expires while the workload runs.
const TTL_MS: u64 = 24 * 60 * 60 * 1000;
/// A partition can be created again after this time, whatever has to be cleaned up first.
const ADD_MAX: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);

/// Names of the tables of clients.
const NAMES: [&str; 8] =
    ["come-0", "come-1", "come-2", "come-3", "come-4", "come-5", "come-6", "come-7"];

pub struct ComeAndGo;

struct Fill(Vec<ItemKey>);

impl Transaction for Fill {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        let expires_ms = tx.now_ms() + TTL_MS;
        for (nth, key) in self.0.iter().enumerate() {
            let expires_ms = (nth % 2 == 1).then_some(expires_ms);
            tx.put_until(key, Bytes::from_static(b"here"), expires_ms).await?;
        }
        Ok(())
    }
}

impl ComeAndGo {
    pub async fn setup(cluster: &Cluster) -> Built {
        ensure!(cluster.settings.clients as usize <= NAMES.len(), "more clients than names");
        Ok(Arc::new(Self))
    }
}

fn rows() -> impl Iterator<Item = [u8; 1]> {
    (0..ROWS).map(|row| [b'a' + row])
}

/// Creates a partition for the one shardlet, which must be empty, fills it, and reads all of it.
async fn come(client: &Client, table: &Table, at: i64) -> Found {
    let (id, route) = (table.id, table.route(at));
    let deadline = client.cluster.world.now() + ADD_MAX;
    loop {
        let route = route.clone();
        match client
            .ask("add a partition", move |engine| async move {
                engine.manager().add_partition(id, NewPartition::point(route, None)).await
            })
            .await?
        {
            Answer::Done(_) => break,
            Answer::Refused(error) if error.is(MapReason::PointMapped) => break,
            Answer::Refused(error) => return Err(format!("a partition was refused: {error}")),
            Answer::Unknown => clean_by_hand(client).await?,
        }
        let now = client.cluster.world.now();
        ensure!(now < deadline, "{}: no partition came back within {ADD_MAX:?}", table.name);
    }
    for row in rows() {
        let found = client.get_surely(table, at, &row).await?;
        ensure!(found.is_none(), "{}: row {row:?} of a new partition is there", table.name);
    }
    let fill = || Fill(rows().map(|row| table.key(at, &row)).collect());
    client.write_surely(table, at, fill).await?;
    for row in rows() {
        let found = client.get_surely(table, at, &row).await?;
        ensure!(found.is_some(), "{}: row {row:?} was answered and is lost", table.name);
    }
    Ok(())
}

/// If the server never runs long enough to clean up, a client must ask for it.
async fn clean_by_hand(client: &Client) -> Found {
    client.ask("delete garbage", |engine| async move { engine.delete_garbage().await }).await?;
    client.cluster.world.sleep(PAUSE).await;
    Ok(())
}

/// Removes the partition, step by step, whichever steps are done already.
async fn go(client: &Client, table: &Table) -> Found {
    loop {
        let Some(Entry { partition, .. }) = entries(client, table).await?.into_iter().next() else {
            return Ok(());
        };
        let known = Known::from(&partition);
        match partition.state {
            PartitionState::Offline => {
                let delete = client.ask("take away", move |engine| async move {
                    engine.manager().delete_partition(known).await
                });
                delete.await?;
            }
            PartitionState::Online | PartitionState::ReadOnly => {
                let offline = client.ask("take away", move |engine| async move {
                    engine.manager().set_state(known, PartitionState::Offline).await
                });
                offline.await?;
            }
            // Its move ends first.
            PartitionState::Sending | PartitionState::Fenced => {
                client.cluster.world.sleep(PAUSE).await;
                continue;
            }
        }
        client.think().await;
    }
}

/// Deletes the table. Its name is free at once.
async fn delete(client: &Client, id: ContainerId) -> Found {
    loop {
        match client
            .ask("delete a table", move |engine| async move {
                let version = engine.manager().catalog().container(id).await?.version;
                engine.manager().delete_container(id, version).await
            })
            .await?
        {
            Answer::Done(()) => return Ok(()),
            Answer::Refused(error) if error.kind() == Kind::NotFound => return Ok(()),
            Answer::Refused(_) | Answer::Unknown => client.cluster.world.sleep(PAUSE).await,
        }
    }
}

impl Workload for ComeAndGo {
    fn client(client: Client) -> Client {
        client.patient()
    }

    async fn live(&self, client: &Client) -> Found {
        let name = NAMES[client.number as usize];
        let mut table = Table::create_list(client, name).await?;
        for _ in 0..client.rounds().min(ROUNDS_MAX) {
            let at = client.random.between(0, 1) as i64;
            come(client, &table, at).await?;
            if client.random.chance(300) {
                delete(client, table.id).await?;
                table = Table::create_list(client, name).await?;
            } else {
                go(client, &table).await?;
            }
            client.think().await;
        }
        // The check of every key shows whether anything is left on the disks.
        delete(client, table.id).await
    }
}
