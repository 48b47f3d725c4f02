//! Documents that are written, deleted, indexed anew and followed by readers of the change feed.
//!
//! Each reader sees every item's changes once and in order, and in the end has seen every item as it is. Indexes are what
//! their items say (`checkers::fsck` looks), and queries by index find what is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Component, Engine, KeyRange, Kind, MoveOptions, PageLimit};
use lazuli_shapes::document::{
    Body, Collection, DefinitionChange, Documents, FeedMode, FeedPosition, FeedStart,
    IndexingPolicy, ItemFeed, KeyKind, NewCollection, NewDefinition, Operation, PartitionKey, Path,
    QueryFailure, QueryRequest, ResourceKind, Rid, Scope,
};
use lazuli_shapes::query_language::evaluate::Context;
use lazuli_shapes::query_language::execute::PageOptions;
use lazuli_shapes::query_language::{Parameters, Query};
use lazuli_shapes::value::{Object, Value, View};
use lazuli_store::{Error, Result as StoreResult};

use super::{Built, Client, Workload, map_changes};
use crate::answer::Answer;
use crate::client::Asked;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::scenario::Found;

const ACCOUNT: &str = "sim";
const IDS: u64 = 24;
const VALUES: u64 = 5;
const RANGES: u16 = 3;
const REQUESTS_PER_ROUND: u64 = 3;
/// Changes that a reader takes at once.
const FEED_MOST: usize = 5;
const READERS: usize = 4;
/// How often indexes are tended before one that is not complete counts as forgotten, and the rest in between: processes
/// that were killed hold the lease of this work for some heartbeats more.
const TENDS_MAX: usize = 200;
const TEND_REST: Duration = Duration::from_millis(500);
/// How often a change of the policy is asked for where partitions are on their way most of the time, and the rest in between.
const CHANGE_TRIES: usize = 30;
const CHANGE_REST: Duration = Duration::from_millis(3);

/// How far a reader has come, and the last change of each item that it has seen.
#[derive(Default)]
struct Reader {
    position: Option<Bytes>,
    seen: BTreeMap<String, u64>,
}

pub struct DocumentItems {
    rid: Rid,
    table: Table,
    changes: Changes,
    readers: Vec<Mutex<Reader>>,
}

/// What clients change about the container besides its items, now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changes {
    Nothing,
    /// The first client changes the indexing policy.
    Policy,
    /// And the second one sends all partitions to other shards at once.
    PolicyAndPlaces,
}

/// The same, with changes of the indexing policy.
pub struct DocumentPolicies;

impl DocumentPolicies {
    pub async fn setup(cluster: &Cluster) -> Built {
        DocumentItems::set_up(cluster, Changes::Policy).await
    }
}

/// The same, with all partitions on their way at once.
pub struct DocumentCrossings;

impl DocumentCrossings {
    pub async fn setup(cluster: &Cluster) -> Built {
        DocumentItems::set_up(cluster, Changes::PolicyAndPlaces).await
    }
}

/// Sends a request to the documents of the container.
async fn ask<T, F>(
    client: &Client,
    rid: &Rid,
    name: &'static str,
    what: impl FnOnce(Documents, Collection) -> F + Send + 'static,
) -> Asked<T>
where
    T: Send + 'static,
    F: Future<Output = StoreResult<T>> + Send + 'static,
{
    let rid = rid.clone();
    let request = move |engine| async move {
        let documents = Documents::new(engine);
        let collection = documents.open_rid(ACCOUNT, &rid).await?;
        what(documents, collection).await
    };
    client.ask(name, request).await
}

fn key(id: u64) -> PartitionKey {
    PartitionKey(vec![Component::Text(format!("k{id}"))])
}

fn body(id: u64, n: u64) -> StoreResult<Body> {
    Body::from_json(format!(r#"{{"id":"i{id}","pk":"k{id}","n":{n},"t":[{n},7]}}"#).as_bytes())
}

async fn create(engine: Arc<Engine>) -> StoreResult<(Rid, String, lazuli_engine::ContainerId)> {
    let documents = Documents::new(engine);
    let none = || Value::Object(Object::new());
    let kind = ResourceKind::Database;
    let made = documents.create_resource(ACCOUNT, kind, None, Some("db"), none()).await;
    let database = match made {
        Err(error) if error.kind() == Kind::Exists => {
            documents.resource(ACCOUNT, kind, None, "db").await?
        }
        made => made?,
    };
    let definition = NewDefinition {
        key_paths: vec![Path::parse("/pk")?],
        key_kind: KeyKind::V2,
        indexing: IndexingPolicy::default(),
        unique_keys: Vec::new(),
        ttl_s: None,
        versions_kept_s: 0,
    };
    let new = NewCollection { definition, ranges: RANGES, throughput: None, body: none() };
    let collection = match documents.create_collection(ACCOUNT, &database.rid, "c", new).await {
        Err(error) if error.kind() == Kind::Exists => documents.open(ACCOUNT, "db", "c").await?.1,
        made => made?.1,
    };
    let container = collection.container();
    Ok((collection.rid().clone(), container.name.clone(), container.id))
}

impl DocumentItems {
    pub async fn setup(cluster: &Cluster) -> Built {
        Self::set_up(cluster, Changes::Nothing).await
    }

    async fn set_up(cluster: &Cluster, changes: Changes) -> Built {
        let client = Client::outside(cluster);
        let (rid, name, id) = client.ask_surely("create a container", || create).await?;
        let table = Table {
            name: Box::leak(name.into_boxed_str()),
            id,
            kind: KeyKind::V2.map(),
            schema: lazuli_engine::KeySchema::one(lazuli_engine::KeyType::Bytes),
            shardlets: 0..0,
        };
        cluster.adopt(table.clone());
        let readers = (0..READERS).map(|_| Mutex::default()).collect();
        Ok(Arc::new(Self { rid, table, changes, readers }))
    }

    fn reader(&self, at: usize) -> MutexGuard<'_, Reader> {
        self.readers[at].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    async fn write(&self, client: &Client) -> Found {
        let id = client.random.between(0, IDS - 1);
        let n = client.random.between(0, VALUES);
        let is_end = client.random.chance(200);
        let write = move |documents: Documents, c: Collection| async move {
            let operation = match is_end {
                true => Operation::delete(&format!("i{id}")),
                false => Operation::upsert(body(id, n)?),
            };
            documents.run_one(&c, &key(id), operation).await
        };
        match ask(client, &self.rid, "write a document", write).await? {
            Answer::Refused(error) if error.kind() != Kind::NotFound => {
                Err(format!("a write was refused: {error}"))
            }
            _ => Ok(()),
        }
    }

    /// Reads on in the change feed, and says whether there is more.
    async fn follow(&self, client: &Client, at: usize) -> Result<bool, String> {
        let position = self.reader(at).position.clone();
        let follow = move |documents: Documents, c: Collection| async move {
            let start = match &position {
                Some(bytes) => FeedStart::Position(FeedPosition::decode(bytes)?),
                None => FeedStart::Beginning,
            };
            let all = Scope::Routes(KeyRange::all());
            let position = documents.feed_position(&c, &all, start).await?;
            documents.changes(&c, &position, FeedMode::Latest, FEED_MOST).await
        };
        let page = match ask(client, &self.rid, "follow", follow).await? {
            Answer::Done(page) => page,
            Answer::Refused(error) => return Err(format!("a reader was refused: {error}")),
            Answer::Unknown => return Ok(true),
        };
        let mut reader = self.reader(at);
        for change in &page.changes {
            let lsn = change.lsn.0;
            let before = reader.seen.insert(change.id.clone(), lsn);
            ensure!(
                before.is_none_or(|before| before < lsn),
                "{} was seen at {before:?}, and then at {lsn}",
                change.id
            );
        }
        reader.position = Some(page.position.encode());
        Ok(page.more)
    }

    /// Indexes other paths from now on.
    async fn reindex(&self, client: &Client) -> Found {
        let is_narrow = client.random.chance(500);
        let change = move |documents: Documents, c: Collection| async move {
            let indexing = match is_narrow {
                true => narrow()?,
                false => IndexingPolicy::default(),
            };
            let change = DefinitionChange { indexing: Some(indexing), ..Default::default() };
            documents.change_definition(&c, &change).await.map(drop)
        };
        // While a partition is on its way, a change of the policy is refused.
        let tries = if self.changes == Changes::PolicyAndPlaces { CHANGE_TRIES } else { 1 };
        for _ in 0..tries {
            let changed = ask(client, &self.rid, "change the policy", change).await?;
            if tries == 1 || changed.done().is_some() {
                break;
            }
            client.cluster.world.sleep(CHANGE_REST).await;
        }
        self.tend(client).await
    }

    /// Begins to move every partition to some shard.
    async fn scatter(&self, client: &Client) -> Found {
        let shards = map_changes::shards(client).await?;
        for entry in map_changes::entries(client, &self.table).await? {
            let (id, target) = (entry.partition.id, *client.random.pick(&shards));
            let options = MoveOptions::default();
            let begin = move |engine: Arc<Engine>| async move {
                engine.move_partition(id, target, options).await
            };
            client.ask("scatter", begin).await?;
        }
        Ok(())
    }

    async fn tend(&self, client: &Client) -> Found {
        let tend = |documents: Documents, _: Collection| async move { documents.tend().await };
        ask(client, &self.rid, "build indexes", tend).await?;
        Ok(())
    }

    /// All that was begun comes to its end: the index of the last policy is complete, and former ones are gone.
    async fn finish_indexes(&self, client: &Client) -> Found {
        for _ in 0..TENDS_MAX {
            let tend = |documents: Documents, c: Collection| async move {
                documents.tend().await?;
                // What this process knows may be old.
                documents.engine().router().refresh(c.container().id, None).await?;
                let collection = documents.open_rid(ACCOUNT, c.rid()).await?;
                let definition = collection.definition();
                Ok(definition.building().is_none() && definition.waste.is_empty())
            };
            if ask(client, &self.rid, "finish indexes", tend).await?.done() == Some(true) {
                return Ok(());
            }
            client.cluster.world.sleep(TEND_REST).await;
        }
        Err("an index is not built, and nobody is about to".to_owned())
    }

    /// The ids of items with a value, as a query finds them.
    async fn find(&self, client: &Client, n: u64) -> Result<Option<Vec<String>>, String> {
        let find = move |documents: Documents, c: Collection| async move {
            query(&documents, &c, &format!("SELECT VALUE c.id FROM c WHERE c.n = {n}")).await
        };
        Ok(ask(client, &self.rid, "query", find).await?.done())
    }
}

fn narrow() -> StoreResult<IndexingPolicy> {
    let text = r#"{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    let value = Value::from_json(text.as_bytes())
        .map_err(|error| Error::internal("bad-policy", error.to_string()))?;
    IndexingPolicy::from_value(&value)
}

/// All rows of a query, which are texts.
async fn query(documents: &Documents, c: &Collection, text: &str) -> StoreResult<Vec<String>> {
    let failed = |error: QueryFailure| match error {
        QueryFailure::Core(error) => error,
        QueryFailure::Query(error) => Error::internal("query", error.message),
    };
    let bad = |_| Error::internal("query", "the query does not parse");
    let query = Query::parse(text).map_err(bad)?;
    let parameters = Parameters::default();
    let checked = Arc::new(query.check(&parameters).map_err(bad)?);
    let (mut rows, mut continuation) = (Vec::new(), None);
    loop {
        let request = QueryRequest {
            checked: checked.clone(),
            fingerprint: query.fingerprint(&parameters),
            context: Context::new(0, 1),
            options: PageOptions::of_rows(3),
            scope: Scope::Routes(KeyRange::all()),
            continuation: continuation.take(),
            deadline: None,
            is_strict: false,
        };
        let answer = documents.query(c, request).await.map_err(failed)?;
        for row in &answer.page.rows {
            let text = View::parse(row).ok().and_then(|view| view.as_str().map(str::to_owned));
            rows.extend(text);
        }
        match answer.page.continuation {
            Some(next) => continuation = Some(next),
            None => return Ok(rows),
        }
    }
}

impl Workload for DocumentItems {
    async fn live(&self, client: &Client) -> Found {
        for _ in 0..client.rounds() * REQUESTS_PER_ROUND {
            match client.random.index(12) {
                0..=6 => self.write(client).await?,
                7..=9 => {
                    let reader = usize::try_from(client.number).unwrap_or(0) % READERS;
                    // A reader has one client at a time.
                    if client.number < READERS as u64 {
                        self.follow(client, reader).await?;
                    }
                }
                10 => drop(self.find(client, client.random.between(0, VALUES)).await?),
                _ if self.changes != Changes::Nothing && client.number == 0 => {
                    self.reindex(client).await?;
                }
                _ if self.changes == Changes::PolicyAndPlaces && client.number == 1 => {
                    self.scatter(client).await?;
                }
                _ => self.tend(client).await?,
            }
            client.think().await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        self.finish_indexes(client).await?;
        let items = move |documents: Documents, c: Collection| async move {
            let limit = PageLimit::items(1_000);
            let scope = Scope::Routes(KeyRange::all());
            let page = documents.items(&c, &ItemFeed { scope, limit, after: None }).await?;
            let value = |one: &lazuli_shapes::document::Document| {
                let n = one.body().ok()?.get("n")?.as_f64()?;
                Some((one.id.clone(), (one.version.0, n as u64)))
            };
            Ok(page.documents.iter().filter_map(value).collect::<BTreeMap<_, _>>())
        };
        let items = ask(client, &self.rid, "read all", items).await?.done();
        let items = items.ok_or("all faults are over, and items cannot be read")?;
        for at in 0..READERS {
            while self.follow(client, at).await? {}
            let reader = self.reader(at);
            for (id, (version, _)) in &items {
                let seen = reader.seen.get(id);
                ensure!(seen == Some(version), "{id} is at {version}, reader {at} saw {seen:?}");
            }
        }
        for n in 0..=VALUES {
            let mut found = self.find(client, n).await?.ok_or("a query got no answer")?;
            found.sort_unstable();
            let expected: Vec<String> =
                items.iter().filter(|(_, (_, has))| *has == n).map(|(id, _)| id.clone()).collect();
            ensure!(found == expected, "a query for {n} found {found:?}, not {expected:?}");
        }
        Ok(())
    }
}
