//! Reference data: written once, copied to every shard in the background.
//!
//! Numbers of writes are unique. In the end every shard has the same value, that of the last answered write or of one
//! whose answer was lost, and reports that it is up to date.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::client::Request;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

const SET: &str = "rates";
const KEYS: u64 = 2;
/// Shardlets through which the copies are read: enough to meet every shard.
const SHARDLETS: i64 = 16;
/// Without faults every shard is up to date after this time.
const SPREAD_MAX: Duration = Duration::from_secs(90);

#[derive(Default)]
struct Written {
    /// By the number that the write was answered with; `None` is a deletion.
    done: BTreeMap<u64, Option<Bytes>>,
    unknown: Vec<Option<Bytes>>,
}

pub struct Reference {
    table: Table,
    written: Mutex<BTreeMap<u64, Written>>,
}

impl Reference {
    pub async fn setup(cluster: &Cluster) -> Built {
        let table = cluster.create_table("reference", 0..SHARDLETS).await?;
        Ok(Arc::new(Self { table, written: Mutex::default() }))
    }

    fn with<T>(&self, key: u64, use_it: impl FnOnce(&mut Written) -> T) -> T {
        let mut written = lock(&self.written);
        use_it(written.entry(key).or_default())
    }

    async fn write(&self, client: &Client, round: u64) -> Found {
        let key = client.random.between(0, KEYS - 1);
        let put = client.random.chance(800);
        let value = put.then(|| Bytes::from(format!("{}-{round}", client.number)));
        let request: Request<u64> = {
            let value = value.clone();
            Box::new(move |engine| {
                Box::pin(async move {
                    match value {
                        Some(value) => engine.put_reference(SET, &[key as u8], value).await,
                        None => engine.delete_reference(SET, &[key as u8]).await,
                    }
                })
            })
        };
        match client.ask("write reference", request).await? {
            Answer::Done(number) => self.with(key, |written| {
                let twice = written.done.insert(number, value).is_some();
                ensure!(!twice, "number {number} was given twice");
                Ok(())
            }),
            Answer::Refused(error) => Err(format!("reference data was refused: {error}")),
            Answer::Unknown => {
                self.with(key, |written| written.unknown.push(value));
                Ok(())
            }
        }
    }

    async fn spread_by_hand(&self, client: &Client) -> Found {
        client
            .ask("spread", |engine| async move { engine.spread_references().await })
            .await
            .map(|_| ())
    }

    /// Waits until every shard reports that it is up to date.
    async fn wait_for_spread(&self, client: &Client) -> Found {
        let deadline = client.cluster.world.now() + SPREAD_MAX;
        loop {
            let shards = client
                .ask_surely("spread", || |engine| async move { engine.reference_spread().await })
                .await?;
            let Some(behind) = shards.iter().find(|shard| shard.copied != shard.written) else {
                return Ok(());
            };
            let now = client.cluster.world.now();
            ensure!(now < deadline, "a shard is behind after {SPREAD_MAX:?}: {behind:?}");
            client.cluster.world.sleep(client.cluster.settings.engine.job_interval).await;
        }
    }
}

impl Workload for Reference {
    async fn live(&self, client: &Client) -> Found {
        for round in 0..client.rounds() {
            match client.random.chance(200) {
                true => self.spread_by_hand(client).await?,
                false => self.write(client, round).await?,
            }
            client.think().await;
            client.cluster.world.sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        self.wait_for_spread(client).await?;
        for key in 0..KEYS {
            for at in 0..SHARDLETS {
                let (id, route) = (self.table.id, self.table.route(at));
                let read = || -> Request<Option<Bytes>> {
                    let route = route.clone();
                    Box::new(move |engine| {
                        Box::pin(async move {
                            engine.read(id, &route, 1).await?.reference(SET, &[key as u8]).await
                        })
                    })
                };
                let found = client.ask_surely("read reference", read).await?;
                self.with(key, |written| {
                    let last = written.done.last_key_value().map_or(&None, |(_, value)| value);
                    let fits = found == *last || written.unknown.contains(&found);
                    ensure!(fits, "key {key} is {found:?} by shardlet {at}, last written {last:?}");
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}
