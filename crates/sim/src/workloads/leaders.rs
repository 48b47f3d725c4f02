//! Moves that take longer than a process leaves a move alone that another one has taken. While all processes live, each move is
//! led by one of them: the one that holds the lease. Without leases the processes take moves from each other again and again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{ItemKey, MoveOptions, Transaction, Tx};
use lazuli_store::Result as StoreResult;

use super::map_changes::{entries, shards};
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::scenario::Found;

/// Each move copies so many bytes at this rate, which takes about 20 s.
const ITEMS: usize = 20;
const ITEM_BYTES: usize = 1_000;
const BYTES_PER_SECOND: u64 = 1_000;
/// The longest that a move may take.
const MOVE_MAX: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(100);

pub struct Leaders {
    table: Table,
}

struct PutAll(Vec<ItemKey>);

impl Transaction for PutAll {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        for key in &self.0 {
            tx.put(key, Bytes::from(vec![7; ITEM_BYTES])).await?;
        }
        Ok(())
    }
}

impl Leaders {
    pub async fn setup(cluster: &Cluster) -> Built {
        let table = cluster.create_table("leaders", 0..4).await?;
        Ok(Arc::new(Self { table }))
    }

    async fn fill(&self, client: &Client, at: i64) -> Found {
        let rows = (0..ITEMS).map(|row| self.table.key(at, &row.to_be_bytes()));
        let put = PutAll(rows.collect());
        let filled = client.write(&self.table, at, put).await?;
        ensure!(matches!(filled, Answer::Done(())), "a write failed without any fault");
        Ok(())
    }

    /// Begins a slow move at any process, and waits for its end.
    async fn move_once(&self, client: &Client) -> Found {
        let shards = shards(client).await?;
        let partition = client.random.pick(&entries(client, &self.table).await?).partition.clone();
        let others: Vec<_> = shards.into_iter().filter(|id| *id != partition.shard).collect();
        let target = *client.random.pick(&others);
        let options =
            MoveOptions { bytes_per_second: Some(BYTES_PER_SECOND), ..MoveOptions::default() };
        let id = partition.id;
        let Answer::Done(begun) = client
            .ask("begin a move", move |engine| async move {
                engine.move_partition(id, target, options).await
            })
            .await?
        else {
            return Ok(());
        };
        let deadline = client.cluster.world.now() + MOVE_MAX;
        loop {
            let number = begun.number;
            if let Answer::Done(finished) = client
                .ask("look", move |engine| async move { engine.move_finished(number).await })
                .await?
            {
                let taken = finished.moving.epoch - begun.epoch;
                ensure!(taken <= 1, "move {number} was taken {taken} times while all lived");
                return Ok(());
            }
            let late = client.cluster.world.now() > deadline;
            ensure!(!late, "move {number} did not end within {MOVE_MAX:?}");
            client.cluster.world.sleep(LOOK).await;
        }
    }
}

impl Workload for Leaders {
    fn client(client: Client) -> Client {
        client.patient()
    }

    async fn live(&self, client: &Client) -> Found {
        if client.number > 0 {
            return Ok(());
        }
        for at in 0..4 {
            self.fill(client, at).await?;
        }
        for _ in 0..2 {
            self.move_once(client).await?;
        }
        Ok(())
    }
}
