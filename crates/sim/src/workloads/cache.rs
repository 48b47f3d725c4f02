//! A durable cache whose slots are in motion: writers of lists that all share and of keys of their own, while they also send
//! several partitions of the cache at once to other shards.
//!
//! The process keeps all keys in memory and answers when their rows are in the store. A new one reads them from there. So
//! what was answered, and what a read has shown, is there for ever (`checkers::lists`), and what a command did to
//! several keys of one slot is there as a whole or not at all (`model`).

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{Engine, KeySchema, KeyType, MapKind, MoveOptions};
use lazuli_env::Random;
use lazuli_keyspace::types::list::End;
use lazuli_keyspace::types::{Hash, List as ListValue, SortedSet};
use lazuli_keyspace::{
    CONTAINER, Expiry, Journal, Keyspace, Persistence, Shelf, Space, WrongType, slot_of,
};
use lazuli_store::Result as StoreResult;

use super::map_changes::{end_moves, entries, moves, shards};
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::checkers::lists::{List, Lists};
use crate::client::Asked;
use crate::cluster::{Cluster, Table};
use crate::faults::Planted;
use crate::lock;
use crate::model::{Contents, Model};
use crate::scenario::Found;

const LISTS: i64 = 4;
/// Slots of each client's own keys.
const OWN_SLOTS: u64 = 4;
const FIELDS: u64 = 3;
const REQUESTS_PER_ROUND: u64 = 3;
/// How many partitions are sent away together, at most.
const SENT_MAX: u64 = 6;

/// The keyspace of the process that is up: read from the store by the first request that comes to it.
#[derive(Default)]
struct Served(tokio::sync::Mutex<Option<(Arc<Engine>, Arc<Keyspace>)>>);

impl Served {
    async fn keyspace(&self, engine: Arc<Engine>) -> StoreResult<Arc<Keyspace>> {
        let mut served = self.0.lock().await;
        if let Some((of, keyspace)) = &*served
            && Arc::ptr_eq(of, &engine)
        {
            return Ok(keyspace.clone());
        }
        let shelf = Arc::new(Shelf::open(engine.clone()).await?);
        let journal = Arc::new(Journal::new(shelf, Persistence::Always));
        let keyspace = Arc::new(Keyspace::new(engine.env().clone(), 1, Some(journal)));
        keyspace.load().await?;
        engine.env().spawn.spawn("keep the cache", Box::pin(keyspace.clone().keep()));
        *served = Some((engine, keyspace.clone()));
        Ok(keyspace)
    }
}

pub struct CacheSlots {
    table: Table,
    served: Arc<Served>,
    lists: Lists,
    /// By client.
    models: Mutex<Vec<Option<Model>>>,
}

/// What a command changes in the keys of one slot.
#[derive(Clone)]
enum Change {
    /// A string.
    Set(Bytes),
    /// A field of the hash.
    Field(u64, Bytes),
    /// A member of the sorted set.
    Member(u64, u32),
    /// The whole hash goes.
    NoHash,
    /// A string in the place of the hash goes, whatever there is.
    NoSet,
}

/// The key of this kind in a slot of a client.
fn own_key(kind: char, client: u64, slot: u64) -> Vec<u8> {
    format!("{kind}{{{client}:{slot}}}").into_bytes()
}

fn list_key(at: i64) -> Vec<u8> {
    format!("list:{at}").into_bytes()
}

fn field(number: u64) -> [u8; 2] {
    [b'f', b'a' + number as u8]
}

/// The name of a part of a key for the model.
fn part(key: &[u8], name: &[u8]) -> Bytes {
    [key, b"/", name].concat().into()
}

impl Change {
    fn draw(client: &Client, round: u64) -> Self {
        let value = Bytes::from(format!("{round}-{}", client.random.below(1_000)));
        match client.random.index(8) {
            0 | 1 => Self::Set(value),
            2 | 3 => Self::Field(client.random.below(FIELDS), value),
            4 | 5 => Self::Member(client.random.below(FIELDS), client.random.below(1_000) as u32),
            6 => Self::NoHash,
            _ => Self::NoSet,
        }
    }

    fn make(&self, space: &mut Space<'_>, client: u64, slot: u64) -> Result<(), WrongType> {
        let key = |kind| own_key(kind, client, slot);
        match self {
            Self::Set(value) => space.set(&key('s'), value, Expiry::Never),
            Self::Field(number, value) => {
                space.with::<Hash, _>(&key('h'), true, |hash, log| {
                    hash.set(&field(*number), value, log);
                })?;
            }
            Self::Member(number, score) => {
                space.with::<SortedSet, _>(&key('z'), true, |set, log| {
                    set.set(&field(*number), f64::from(*score), log);
                })?;
            }
            Self::NoHash => drop(space.delete(&key('h'))),
            Self::NoSet => drop(space.delete(&key('s'))),
        }
        Ok(())
    }

    /// The same for the model.
    fn told(&self, client: u64, slot: u64) -> Vec<(Bytes, Option<Bytes>)> {
        let name = |kind, name: &[u8]| part(&own_key(kind, client, slot), name);
        match self {
            Self::Set(value) => vec![(name('s', b""), Some(value.clone()))],
            Self::Field(number, value) => vec![(name('h', &field(*number)), Some(value.clone()))],
            Self::Member(number, score) => {
                vec![(name('z', &field(*number)), Some(score.to_string().into()))]
            }
            Self::NoHash => (0..FIELDS).map(|it| (name('h', &field(it)), None)).collect(),
            Self::NoSet => vec![(name('s', b""), None)],
        }
    }
}

/// All keys of a client as they are.
fn own_contents(space: &mut Space<'_>, client: u64) -> Result<Contents, WrongType> {
    let mut found = Contents::new();
    for slot in 0..OWN_SLOTS {
        let key = own_key('s', client, slot);
        if let Some(value) = space.string(&key)? {
            found.insert(part(&key, b""), Bytes::copy_from_slice(value));
        }
        let key = own_key('h', client, slot);
        if let Some(hash) = space.read::<Hash>(&key)? {
            hash.each(&mut |name, value| {
                found.insert(part(&key, name), Bytes::copy_from_slice(value));
            });
        }
        let key = own_key('z', client, slot);
        if let Some(set) = space.read::<SortedSet>(&key)? {
            for (name, score) in set.slice(0, set.len(), false) {
                found.insert(part(&key, &name), score.to_string().into());
            }
        }
    }
    Ok(found)
}

fn list_of(space: &mut Space<'_>, key: &[u8]) -> Result<List, WrongType> {
    let list = space.read::<ListValue>(key)?;
    let items = list.into_iter().flat_map(|it| it.iter_from(0));
    Ok(items.filter_map(|it| Some(u64::from_be_bytes(it.try_into().ok()?))).collect())
}

impl CacheSlots {
    pub async fn setup(cluster: &Cluster) -> Built {
        let client = Client::outside(cluster);
        let id = client
            .ask_surely("make the cache", || {
                |engine: Arc<Engine>| async move {
                    Shelf::open(engine.clone()).await?;
                    Ok(engine.manager().catalog().container_named(CONTAINER).await?.id)
                }
            })
            .await?;
        let (kind, schema) = (MapKind::Range, KeySchema::one(KeyType::Int32));
        let table = Table { name: CONTAINER, id, kind, schema, shardlets: 0..0 };
        cluster.adopt(table.clone());
        let models = Mutex::new(vec![Some(Model::default()); cluster.settings.clients as usize]);
        Ok(Arc::new(Self { table, served: Arc::default(), lists: Lists::default(), models }))
    }

    /// Runs a command on some keys, and waits until what it did and saw is in the store.
    async fn ask<T: Send + 'static>(
        &self,
        client: &Client,
        name: &'static str,
        keys: Vec<Vec<u8>>,
        command: impl FnOnce(&mut Space<'_>) -> Result<T, WrongType> + Send + 'static,
    ) -> Asked<T> {
        let served = self.served.clone();
        let is_early = client.cluster.settings.planted == Planted::EarlyReplies;
        let asked = client.ask(name, move |engine| async move {
            let keyspace = served.keyspace(engine).await?;
            let result = {
                let slots = keys.iter().map(|key| slot_of(key));
                let mut space = keyspace.space_of_slots(0, keyspace.now_ms(), slots);
                let result = command(&mut space);
                space.finish();
                result
            };
            if !is_early {
                keyspace.settled().await;
            }
            Ok(result)
        });
        Ok(match asked.await? {
            Answer::Done(result) => {
                Answer::Done(result.map_err(|_| format!("{name}: a key has another type"))?)
            }
            Answer::Refused(error) => Answer::Refused(error),
            Answer::Unknown => Answer::Unknown,
        })
    }

    /// Repeats a command that only reads until it is answered.
    async fn read_surely<T: Send + 'static>(
        &self,
        client: &Client,
        keys: &[Vec<u8>],
        command: impl Fn(&mut Space<'_>) -> Result<T, WrongType> + Clone + Send + 'static,
    ) -> Result<T, String> {
        for _ in 0..READS_MAX {
            let answer = self.ask(client, "read the cache", keys.to_vec(), command.clone()).await?;
            if let Answer::Done(value) = answer {
                return Ok(value);
            }
            client.think().await;
            client.cluster.world.sleep(PAUSE).await;
        }
        Err("the cache does not answer a read".to_owned())
    }

    async fn append(&self, client: &Client, at: i64, number: u64) -> Found {
        let (least, key) = (self.lists.least(at), list_key(at));
        let keys = vec![key.clone()];
        let answer = self.ask(client, "push", keys, move |space| {
            space.with::<ListValue, _>(&key, true, |list, log| {
                list.push(End::Back, &number.to_be_bytes(), log);
            })?;
            list_of(space, &key)
        });
        self.lists.appended(at, number, least, answer.await?)
    }

    async fn read(&self, client: &Client, at: i64) -> Found {
        let (least, key) = (self.lists.least(at), list_key(at));
        let keys = vec![key.clone()];
        match self.ask(client, "range", keys, move |space| list_of(space, &key)).await? {
            Answer::Done(list) => self.lists.saw(at, list, least),
            Answer::Refused(_) | Answer::Unknown => Ok(()),
        }
    }

    /// A transaction on the client's own keys of one slot.
    async fn change(&self, client: &Client, model: &mut Model, round: u64) -> Found {
        let (number, slot) = (client.number, client.random.below(OWN_SLOTS));
        let count = client.random.between(1, 4);
        let changes: Vec<Change> = (0..count).map(|_| Change::draw(client, round)).collect();
        let told: Vec<_> = changes.iter().flat_map(|it| it.told(number, slot)).collect();
        let keys = vec![own_key('s', number, slot)];
        let answer = self.ask(client, "transaction", keys, move |space| {
            changes.iter().try_for_each(|it| it.make(space, number, slot))
        });
        model.wrote(&told, &answer.await?);
        if model.is_settled() { Ok(()) } else { self.audit(client, number, model).await }
    }

    async fn audit(&self, client: &Client, number: u64, model: &mut Model) -> Found {
        let keys: Vec<_> = (0..OWN_SLOTS).map(|slot| own_key('s', number, slot)).collect();
        let found = self.read_surely(client, &keys, move |space| own_contents(space, number));
        model.audit(&found.await?)
    }

    /// Begins to move some partitions at the same time, each to any shard.
    async fn send(&self, client: &Client) -> Found {
        let shards = shards(client).await?;
        let mut entries = entries(client, &self.table).await?;
        for _ in 0..client.random.between(2, SENT_MAX).min(entries.len() as u64) {
            let leaving = entries.swap_remove(client.random.index(entries.len())).partition.id;
            let target = *client.random.pick(&shards);
            let send = client.ask("send slots", move |engine| async move {
                engine.move_partition(leaving, target, MoveOptions::default()).await
            });
            send.await?;
        }
        let moves = moves(client).await?;
        let own = moves.iter().filter(|it| it.is_open() && it.container == self.table.id).count();
        client.cluster.world.note(|| format!("{own} {IN_MOTION}"));
        Ok(())
    }

    async fn requests(&self, client: &Client, model: &mut Model) -> Found {
        for round in 0..client.rounds() * REQUESTS_PER_ROUND {
            let at = client.random.between(0, LISTS as u64 - 1) as i64;
            match client.random.index(12) {
                0 => self.send(client).await?,
                1 | 2 => self.read(client, at).await?,
                3 => self.audit(client, client.number, model).await?,
                4..8 => self.append(client, at, client.number * 1_000_000 + round).await?,
                _ => self.change(client, model, round).await?,
            }
            client.think().await;
        }
        end_moves(client).await
    }

    fn models(&self) -> std::sync::MutexGuard<'_, Vec<Option<Model>>> {
        lock(&self.models)
    }
}

/// How often a read is repeated. Faults end, so this is reached only if something hangs.
const READS_MAX: usize = 6_000;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
/// Behind a number in the log of a simulation.
pub const IN_MOTION: &str = "partitions of the cache are in motion";

impl Workload for CacheSlots {
    async fn live(&self, client: &Client) -> Found {
        let at = client.number as usize;
        let mut model = self.models()[at].take().unwrap_or_default();
        let found = self.requests(client, &mut model).await;
        self.models()[at] = Some(model);
        found
    }

    async fn check(&self, client: &Client) -> Found {
        end_moves(client).await?;
        for at in 0..LISTS {
            let key = list_key(at);
            let keys = [key.clone()];
            let list = self.read_surely(client, &keys, move |space| list_of(space, &key)).await?;
            self.lists.ended(at, list)?;
        }
        let mut models = self.models().clone();
        for (number, model) in (0..).zip(models.iter_mut().flatten()) {
            self.audit(client, number, model).await?;
        }
        Ok(())
    }
}
