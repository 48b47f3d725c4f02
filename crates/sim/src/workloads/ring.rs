//! A ring of keys over partitions: each names the next one. Transactions swap two neighbours; it must stay one ring.
//! (The idea is from FoundationDB's Cycle.)

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{ItemKey, Transaction, Tx};
use lazuli_store::{Error, Result as StoreResult};

use super::{Built, Client, Workload};
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::scenario::Found;

const NODES: i64 = 10;

pub struct Ring {
    table: Table,
}

struct Link(ItemKey, i64);

impl Transaction for Link {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        tx.put(&self.0, encode(self.1)).await
    }
}

/// Turns a → b → c → d into a → c → b → d, if that is their order.
struct Swap {
    nodes: [i64; 4],
    keys: [ItemKey; 3],
}

impl Transaction for Swap {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        let [_, b, c, d] = self.nodes;
        for (key, next) in self.keys.iter().zip([b, c, d]) {
            if tx.get(key).await?.map(|item| decode(&item.payload)) != Some(next) {
                return Err(Error::precondition("ring-turned", "the ring has changed"));
            }
        }
        for (key, next) in self.keys.iter().zip([c, d, b]) {
            tx.put(key, encode(next)).await?;
        }
        Ok(())
    }
}

fn encode(node: i64) -> Bytes {
    Bytes::copy_from_slice(&node.to_be_bytes())
}

fn decode(payload: &[u8]) -> i64 {
    payload.try_into().map_or(-1, i64::from_be_bytes)
}

impl Ring {
    pub async fn setup(cluster: &Cluster) -> Built {
        let table = cluster.create_table("ring", 0..NODES).await?;
        let client = Client::outside(cluster);
        for node in 0..NODES {
            let link = || Link(table.key(node, b""), (node + 1) % NODES);
            client.write_surely(&table, node, link).await?;
        }
        Ok(Arc::new(Self { table }))
    }

    async fn next(&self, client: &Client, node: i64) -> Result<Option<i64>, String> {
        let found = client.get(&self.table, node, b"").await?.done();
        match found {
            Some(None) => Err(format!("node {node} is gone")),
            found => Ok(found.flatten().map(|item| decode(&item.payload))),
        }
    }

    async fn swap(&self, client: &Client) -> Found {
        let mut nodes = [client.random.between(0, NODES as u64 - 1) as i64; 4];
        for at in 1..4 {
            let Some(next) = self.next(client, nodes[at - 1]).await? else { return Ok(()) };
            nodes[at] = next;
        }
        let [a, b, c, _] = nodes;
        let keys = [a, b, c].map(|node| self.table.key(node, b""));
        client.write_many(&self.table, &[a, b, c], Swap { nodes, keys }).await?;
        Ok(())
    }
}

impl Workload for Ring {
    async fn round(&self, client: &Client, _: u64) -> Found {
        self.swap(client).await
    }

    async fn check(&self, client: &Client) -> Found {
        let mut node = 0;
        for step in 1..=NODES {
            let found = client.get_surely(&self.table, node, b"").await?;
            node = found.map_or(-1, |item| decode(&item.payload));
            ensure!(node >= 0, "the ring is broken after {step} steps");
            ensure!(
                (node == 0) == (step == NODES),
                "the ring closes after {step} of {NODES} steps"
            );
        }
        Ok(())
    }
}
