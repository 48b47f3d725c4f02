//! A search index and what is derived from it, while its partitions are split, merged and moved.
//!
//! Each client writes documents of its own keys in batches, and all of them take turns to feed two copies of a derived index
//! (`index_copies`), as two nodes of a fleet would. Now and then the index is spread over another number of shards, which
//! sends several partitions on their way at once. In the end both copies have exactly what the documents are, counts are
//! exact, and every answered write is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{KeySchema, KeyType, MapKind};
use lazuli_index::{Action, ActionKind, IndexReason, Indexes, Outcome, Scale};

use super::index_copies::Copies;
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::scenario::Found;
use crate::{ensure, lock};

pub(super) const ACCOUNT: &str = "sim";
pub(super) const INDEX: &str = "documents";
const CONTAINER: &str = "search/sim/documents";
const KEYS: u64 = 12;
const BATCH_MAX: u64 = 4;
/// Requests of each client for every round of other workloads.
const REQUESTS_PER_ROUND: u64 = 2;
/// Steps within which a copy has caught up when nobody writes.
const STEPS_MAX: usize = 10_000;
/// How many actions in a thousand delete a document.
const DELETED_PER_MILLE: u64 = 300;
/// How many requests in a thousand spread the index over another number of shards.
const SPREAD_PER_MILLE: u64 = 60;

/// What a document may be: one thing if the last write was answered, several if not. None is absent.
type Possible = Vec<Option<u64>>;

pub struct SearchIndexes {
    written: Mutex<BTreeMap<String, Possible>>,
    copies: Copies,
}

fn document(key: &str, number: u64) -> Bytes {
    Bytes::from(format!(r#"{{"id":"{key}","number":{number}}}"#))
}

impl SearchIndexes {
    pub async fn setup(cluster: &Cluster) -> Built {
        let client = Client::outside(cluster);
        let id = client
            .ask_surely("create an index", || {
                |engine| async move {
                    let indexes = Indexes::new(engine, true);
                    let made = indexes.create_index(ACCOUNT, INDEX, "{}", Scale::default()).await;
                    match made {
                        Err(error) if error.is(IndexReason::IndexExists) => {
                            Ok(indexes.index(ACCOUNT, INDEX).await?.id())
                        }
                        made => Ok(made?.id()),
                    }
                }
            })
            .await?;
        cluster.adopt(Table {
            name: CONTAINER,
            id,
            kind: MapKind::Hash,
            schema: KeySchema::one(KeyType::Text),
            shardlets: 0..0,
        });
        let copies = Copies::new(cluster.settings.planted);
        Ok(Arc::new(Self { written: Mutex::default(), copies }))
    }

    /// Writes a batch of documents, once.
    async fn write(&self, client: &Client, number: u64) -> Found {
        let mut batch = BTreeMap::new();
        for _ in 0..client.random.between(1, BATCH_MAX) {
            let key = format!("c{}-{}", client.number, client.random.between(0, KEYS));
            let is_there = !client.random.chance(DELETED_PER_MILLE);
            batch.insert(key, is_there.then_some(number));
        }
        let actions: Vec<Action> = batch
            .iter()
            .map(|(key, state)| match state {
                Some(number) => Action {
                    key: key.clone(),
                    kind: ActionKind::Upload,
                    document: document(key, *number),
                },
                None => {
                    Action { key: key.clone(), kind: ActionKind::Delete, document: Bytes::new() }
                }
            })
            .collect();
        let write = move |engine| async move {
            let indexes = Indexes::new(engine, true);
            let index = indexes.index(ACCOUNT, INDEX).await?;
            indexes.write(&index, actions).await
        };
        let outcomes = match client.ask("write documents", write).await? {
            Answer::Done(written) => {
                let is_done = |outcome: Outcome| {
                    ensure!(
                        !matches!(outcome, Outcome::Missing | Outcome::TooLarge),
                        "a document was refused: {outcome:?}"
                    );
                    Ok::<_, String>(true)
                };
                let mut done = Vec::new();
                for one in written {
                    done.push(match one.outcome {
                        Ok(outcome) => is_done(outcome)?,
                        Err(_) => false,
                    });
                }
                done
            }
            Answer::Unknown | Answer::Refused(_) => vec![false; batch.len()],
        };
        let mut all = lock(&self.written);
        for ((key, state), is_done) in batch.into_iter().zip(outcomes) {
            let possible = all.entry(key).or_insert_with(|| vec![None]);
            if is_done {
                possible.clear();
            }
            if !possible.contains(&state) {
                possible.push(state);
            }
        }
        Ok(())
    }

    /// Gives the index another number of partitions, or goes on with spreading it: several partitions move at once.
    async fn spread(&self, client: &Client) -> Found {
        let partitions = *client.random.pick(&[1, 2, 3, 4]);
        let is_new = client.random.chance(500);
        let spread = move |engine| async move {
            let indexes = Indexes::new(engine, true);
            if is_new {
                let scale = Scale { partitions, replicas: 1 };
                indexes.scale_index(ACCOUNT, INDEX, scale).await?;
            }
            let index = indexes.index(ACCOUNT, INDEX).await?;
            indexes.spread(ACCOUNT, &index).await
        };
        client.ask("spread the index", spread).await.map(|_| ())
    }
}

impl Workload for SearchIndexes {
    /// A client that hangs up and writes again does not know which of the two comes first.
    fn client(client: Client) -> Client {
        client.patient()
    }

    async fn live(&self, client: &Client) -> Found {
        for number in 0..client.rounds() * REQUESTS_PER_ROUND {
            match client.random.index(3) {
                _ if client.random.chance(SPREAD_PER_MILLE) => self.spread(client).await?,
                0 | 1 => self.write(client, number).await?,
                _ => self.copies.follow_one(client).await?,
            }
            client.think().await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        let derived = self.copies.caught_up(client, STEPS_MAX).await?;
        let written = lock(&self.written).clone();
        let keys: Vec<String> = written.keys().cloned().collect();
        let (found, count) = client
            .ask_surely("look up all documents", || {
                let keys = keys.clone();
                move |engine| async move {
                    let indexes = Indexes::new(engine, true);
                    let index = indexes.index(ACCOUNT, INDEX).await?;
                    let mut found = BTreeMap::new();
                    for key in keys {
                        if let Some(document) = indexes.document(&index, &key).await? {
                            found.insert(key, document.text);
                        }
                    }
                    Ok((found, indexes.count(&index).await?))
                }
            })
            .await?;
        ensure!(count == found.len() as u64, "{count} are counted, {} are there", found.len());
        for (key, possible) in &written {
            let now = found.get(key);
            let is =
                |state: &Option<u64>| state.map(|number| document(key, number)).as_ref() == now;
            ensure!(possible.iter().any(is), "{key} is {now:?}, may be {possible:?}");
        }
        for (name, derived) in derived {
            ensure!(derived == found, "{name} has {derived:?}, there is {found:?}");
        }
        Ok(())
    }
}
