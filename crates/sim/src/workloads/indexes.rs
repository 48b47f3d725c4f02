//! A search index and what is derived from it, while its partitions are split, merged and moved.
//!
//! Each client writes documents of its own keys in batches, and all of them take turns to follow the changes into one derived
//! index: a plain map in place of files, behind the same follower. Now and then what was taken in since the last commit is
//! lost, as in a crash. In the end the derived index has exactly what the documents are, counts are exact, and every answered
//! write is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{KeyRange, KeySchema, KeyType, MapKind};
use lazuli_index::{
    Action, ActionKind, Deletion, DocumentChange, Follower, IndexReason, Indexes, Outcome,
    Positions, Scale,
};

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::scenario::Found;
use crate::{ensure, lock};

const ACCOUNT: &str = "sim";
const INDEX: &str = "documents";
const CONTAINER: &str = "search/sim/documents";
const KEYS: u64 = 12;
const BATCH_MAX: u64 = 4;
/// Requests of each client for every round of other workloads.
const REQUESTS_PER_ROUND: u64 = 2;
/// Steps within which a follower has caught up when nobody writes.
const STEPS_MAX: usize = 10_000;

/// What a document may be: one thing if the last write was answered, several if not. None is absent.
type Possible = Vec<Option<u64>>;

/// An index that is derived from the documents.
#[derive(Clone, Default)]
struct Derived {
    documents: BTreeMap<String, Bytes>,
    positions: Positions,
    deletions: Vec<Deletion>,
}

/// The derived index as it is in memory, and as its last commit left it.
#[derive(Default)]
struct Kept {
    now: Derived,
    committed: Derived,
}

pub struct SearchIndexes {
    written: Mutex<BTreeMap<String, Possible>>,
    /// None while a client follows.
    derived: Mutex<Option<Kept>>,
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
                    let indexes = Indexes::new(engine, false);
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
        let derived = Mutex::new(Some(Kept::default()));
        Ok(Arc::new(Self { written: Mutex::default(), derived }))
    }

    /// Writes a batch of documents, once.
    async fn write(&self, client: &Client, number: u64) -> Found {
        let mut batch = BTreeMap::new();
        for _ in 0..client.random.between(1, BATCH_MAX) {
            let key = format!("c{}-{}", client.number, client.random.between(0, KEYS));
            let is_there = !client.random.chance(4);
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
            let indexes = Indexes::new(engine, false);
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

    /// Takes one step with the derived index, unless another client has it. Says whether there is more.
    async fn follow(&self, client: &Client) -> Result<bool, String> {
        let Some(mut kept) = lock(&self.derived).take() else { return Ok(true) };
        let stepped = self.step(client, &mut kept).await;
        *lock(&self.derived) = Some(kept);
        stepped
    }

    async fn step(&self, client: &Client, kept: &mut Kept) -> Result<bool, String> {
        if client.random.chance(15) {
            kept.now = kept.committed.clone();
        }
        let positions = kept.now.positions.clone();
        let step = move |engine| async move {
            let indexes = Indexes::new(engine, false);
            let index = indexes.index(ACCOUNT, INDEX).await?;
            let mut follower = Follower::new(indexes, index, KeyRange::all(), positions);
            let step = follower.step().await?;
            Ok((step, follower.positions().clone()))
        };
        let (step, positions) = match client.ask("follow", step).await? {
            Answer::Done(done) => done,
            Answer::Unknown => return Ok(true),
            Answer::Refused(error) => return Err(format!("following was refused: {error}")),
        };
        let Derived { documents, positions: place, deletions } = &mut kept.now;
        for DocumentChange { key, document } in step.changes {
            match document {
                Some(text) => drop(documents.insert(key, text)),
                None => drop(documents.remove(&key)),
            }
        }
        deletions.extend(step.deletions);
        *place = positions;
        if client.random.chance(3) {
            kept.committed = kept.now.clone();
            self.forget(client, kept).await?;
        }
        Ok(step.more)
    }

    /// Forgets deletions that are committed.
    async fn forget(&self, client: &Client, kept: &mut Kept) -> Found {
        let deletions = std::mem::take(&mut kept.now.deletions);
        kept.committed.deletions.clear();
        let positions = kept.committed.positions.clone();
        let forget = move |engine| async move {
            let indexes = Indexes::new(engine, false);
            let index = indexes.index(ACCOUNT, INDEX).await?;
            indexes.forget_deletions(ACCOUNT, &index, &positions, deletions).await?;
            indexes.is_stale(ACCOUNT, &index, &positions).await
        };
        match client.ask("forget deletions", forget).await? {
            Answer::Done(is_stale) => {
                ensure!(!is_stale, "a committed text index is taken for an older copy");
                Ok(())
            }
            Answer::Unknown => Ok(()),
            Answer::Refused(error) => Err(format!("forgetting was refused: {error}")),
        }
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
                0 | 1 => self.write(client, number).await?,
                _ => drop(self.follow(client).await?),
            }
            client.think().await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        let mut steps = 0;
        while self.follow(client).await? {
            steps += 1;
            ensure!(steps < STEPS_MAX, "the follower does not come to an end");
        }
        let written = lock(&self.written).clone();
        let derived = lock(&self.derived).take().map(|kept| kept.now.documents).unwrap_or_default();
        let keys: Vec<String> = written.keys().cloned().collect();
        let (found, count) = client
            .ask_surely("look up all documents", || {
                let keys = keys.clone();
                move |engine| async move {
                    let indexes = Indexes::new(engine, false);
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
        ensure!(derived == found, "derived are {derived:?}, there is {found:?}");
        Ok(())
    }
}
