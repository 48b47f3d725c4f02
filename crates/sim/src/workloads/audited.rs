//! Every client writes its own keys, and a model that gets all answers knows the expected state.
//!
//! Transactions put and delete several rows, in one shardlet or in several of one shard. After an unknown outcome the
//! client reads before it continues: it must find exactly the state before or the state after.

use std::sync::{Arc, Mutex};

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{ItemKey, Transaction, Tx};
use lazuli_store::Result as StoreResult;

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::lock;
use crate::model::{Contents, Model};
use crate::scenario::Found;

/// Shardlets and rows of each client.
const SHARDLETS: i64 = 4;
const ROWS: u64 = 3;

pub struct Audited {
    table: Table,
    models: Mutex<Vec<Option<Model>>>,
}

struct Writes(Vec<(ItemKey, Option<Bytes>)>);

impl Transaction for Writes {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        for (key, value) in &self.0 {
            match value {
                Some(value) => tx.put(key, value.clone()).await?,
                None => _ = tx.delete(key).await?,
            }
        }
        Ok(())
    }
}

fn name(shardlet: i64, row: &[u8]) -> Bytes {
    let mut name = BytesMut::new();
    name.put_i64(shardlet);
    name.put_slice(row);
    name.freeze()
}

impl Audited {
    pub async fn setup(cluster: &Cluster) -> Built {
        let clients = cluster.settings.clients;
        let table = cluster.create_table("audited", 0..clients as i64 * SHARDLETS).await?;
        let models = Mutex::new(vec![Some(Model::default()); clients as usize]);
        Ok(Arc::new(Self { table, models }))
    }

    async fn write(&self, client: &Client, model: &mut Model, round: u64) -> Found {
        let first = client.number as i64 * SHARDLETS;
        let shardlets = client.random.between(1, 2);
        let mut targets = Vec::new();
        let (mut writes, mut told) = (Vec::new(), Vec::new());
        for _ in 0..shardlets {
            let shardlet = first + client.random.between(0, SHARDLETS as u64 - 1) as i64;
            targets.push(shardlet);
            for _ in 0..client.random.between(1, 3) {
                let row = [b'a' + client.random.between(0, ROWS - 1) as u8];
                let put = client.random.chance(700);
                let value = put.then(|| Bytes::from(format!("{round}-{}", told.len())));
                writes.push((self.table.key(shardlet, &row), value.clone()));
                told.push((name(shardlet, &row), value));
            }
        }
        let answer = if targets.len() == 1 {
            client.write(&self.table, targets[0], Writes(writes)).await?
        } else {
            client.write_many(&self.table, &targets, Writes(writes)).await?
        };
        model.wrote(&told, &answer);
        if model.is_settled() { Ok(()) } else { self.audit(client, model).await }
    }

    /// Reads all keys of the client, by a scan over all clients' keys or one by one.
    async fn audit(&self, client: &Client, model: &mut Model) -> Found {
        let first = client.number as i64 * SHARDLETS;
        let mut found = Contents::new();
        if client.random.chance(300) {
            for (shardlet, row, item) in client.scan_surely(&self.table).await? {
                if (first..first + SHARDLETS).contains(&shardlet) {
                    found.insert(name(shardlet, &row), item.payload);
                }
            }
            return model.audit(&found);
        }
        for shardlet in first..first + SHARDLETS {
            for row in 0..ROWS {
                let row = [b'a' + row as u8];
                if let Some(item) = client.get_surely(&self.table, shardlet, &row).await? {
                    found.insert(name(shardlet, &row), item.payload);
                }
            }
        }
        model.audit(&found)
    }

    fn models(&self) -> std::sync::MutexGuard<'_, Vec<Option<Model>>> {
        lock(&self.models)
    }
}

impl Workload for Audited {
    fn client(client: Client) -> Client {
        client.patient()
    }

    async fn live(&self, client: &Client) -> Found {
        let at = client.number as usize;
        let mut model = self.models()[at].take().unwrap_or_default();
        for round in 0..client.rounds() {
            self.write(client, &mut model, round).await?;
            if client.random.chance(100) {
                self.audit(client, &mut model).await?;
            }
            client.think().await;
        }
        self.models()[at] = Some(model);
        Ok(())
    }

    /// One scan over everything must find the union of all models.
    async fn check(&self, client: &Client) -> Found {
        let mut found = Contents::new();
        for (shardlet, row, item) in client.scan_surely(&self.table).await? {
            found.insert(name(shardlet, &row), item.payload);
        }
        let mut together = Model::default();
        for model in self.models().iter().flatten() {
            let writes: Vec<_> =
                model.state().iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect();
            together.wrote(&writes, &Answer::Done(()));
        }
        together.audit(&found)
    }
}
