//! Records: items with a partition key and a row key, sorted by both (T1, T3). The model behind Tables.
//!
//! Each container is a table of its own on a range map of the partition key, or on a hash map where its keys only ever
//! grow at one end (T6). A record is one item: its row key is the key's last part, its payload the front's.

mod query;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Engine, Error, Item, ItemKey, KeyPart, KeySchema, KeyType, Lsn, MapKind,
    NewContainer, PREFIX_BYTES, Policies, Result, Space, Transaction, Tx,
};

pub use lazuli_engine::Condition;
pub use query::{Filter, Query, RecordPage, RecordRange};

/// The schema tag of every container of records (S13).
const SCHEMA: &str = "record/1";

/// The attribute that holds a container's name as people wrote it.
pub const TITLE: &str = "title";
/// The partitions that a container on a hash map begins with.
const HASHED_PARTITIONS: u16 = 16;

/// What one record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Shared by the records of a page, which mostly have the same one.
    pub partition_key: Arc<str>,
    pub row_key: String,
    /// The number of the last write.
    pub version: Lsn,
    /// When that was: the number itself, unless the clock was set back before it.
    pub time: Lsn,
    pub payload: Bytes,
}

/// A record as it lies in the store, for those who look at it and leave it there.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    pub partition_key: &'a str,
    pub row_key: &'a str,
    pub version: Lsn,
    pub time: Lsn,
    pub payload: &'a [u8],
}

/// All records of all containers.
#[derive(Clone)]
pub struct Records {
    engine: Arc<Engine>,
}

impl Records {
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// The same records, read as they were up to a minute ago if a copy of the store can answer then.
    #[must_use]
    pub fn allowing_stale(&self) -> Self {
        Self { engine: Arc::new(self.engine.allowing_stale()) }
    }

    /// How old the state may be that reads show.
    pub fn staleness(&self) -> Duration {
        self.engine.staleness()
    }

    /// Creates a container. Fails with `Exists` if there is one of this name. The title is how people wrote it.
    pub async fn create(&self, name: &str, title: &str, kind: MapKind) -> Result<()> {
        let attributes = [(TITLE.to_owned(), title.to_owned())].into();
        let new = NewContainer {
            name: name.to_owned(),
            kind,
            key: KeySchema::one(KeyType::Text),
            schema: SCHEMA.to_owned(),
            placement: Vec::new(),
            policies: Policies { attributes, ..Policies::default() },
            cuts: match kind {
                MapKind::Hash => Cuts::Even(HASHED_PARTITIONS),
                _ => Cuts::At(Vec::new()),
            },
            shards: Vec::new(),
        };
        self.engine.create_container(&new).await.map(|_| ())
    }

    /// Deletes a container with all its records. Fails with `NotFound` if there is none.
    pub async fn remove(&self, name: &str) -> Result<()> {
        self.engine.delete_container(name).await
    }

    /// Names and titles of containers whose names begin with `prefix`, by name, behind the one given.
    pub async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, String)>> {
        let found = self.engine.containers(prefix, after, most).await?;
        let titled = found.into_iter().map(|mut container| {
            let title = container.policies.attributes.remove(TITLE);
            let title = title.unwrap_or_else(|| container.name.clone());
            (container.name, title)
        });
        Ok(titled.collect())
    }

    /// How people wrote the name of a container; fails with `NotFound` if there is none.
    pub async fn title(&self, name: &str) -> Result<String> {
        let title = self.engine.attribute(name, TITLE).await?;
        Ok(title.unwrap_or_else(|| name.to_owned()))
    }

    /// What a front keeps about a container under this name; fails with `NotFound` if there is no container.
    pub async fn attribute(&self, name: &str, attribute: &str) -> Result<Option<String>> {
        self.engine.attribute(name, attribute).await
    }

    /// Keeps a text about a container, or none any more.
    pub async fn set_attribute(
        &self,
        name: &str,
        attribute: &str,
        value: Option<&str>,
    ) -> Result<()> {
        self.engine.set_attribute(name, attribute, value).await
    }

    /// What a front keeps about a whole service of an account.
    pub async fn service(&self, name: &str) -> Result<Option<Bytes>> {
        self.engine.service(name).await
    }

    pub async fn set_service(&self, name: &str, value: Bytes) -> Result<()> {
        self.engine.set_service(name, value).await
    }

    pub async fn get(
        &self,
        name: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Record>> {
        let table = self.table(name).await?;
        let key = table.key(partition_key, row_key)?;
        let item = self.engine.get(&key, 1).await?;
        Ok(item.map(|item| Record {
            partition_key: partition_key.into(),
            row_key: row_key.to_owned(),
            version: item.version,
            time: item.time(),
            payload: item.payload,
        }))
    }

    async fn table(&self, name: &str) -> Result<Table> {
        Ok(Table { container: self.engine.open(name, SCHEMA).await? })
    }
}

/// A container of records with how its keys are made.
struct Table {
    container: Arc<Container>,
}

impl Table {
    fn route(&self, partition_key: &str) -> Result<Bytes> {
        let key = [KeyPart::Text(partition_key.into())];
        self.container.kind.route(&self.container.key, &key)
    }

    fn key(&self, partition_key: &str, row_key: &str) -> Result<ItemKey> {
        let route = self.route(partition_key)?;
        Ok(ItemKey::new(self.container.id, Space::ITEMS, &route, row_key.as_bytes()))
    }

    /// Partition key and row key again from a stored key.
    fn names(&self, key: &[u8]) -> Result<(String, String)> {
        let (route, row) = self.split(key)?;
        Ok((self.partition_key(route)?, row_key(row)?))
    }

    /// The route and the row key in a stored key.
    fn split<'k>(&self, key: &'k [u8]) -> Result<(&'k [u8], &'k [u8])> {
        let rest = key.get(PREFIX_BYTES..).ok_or_else(damaged)?;
        self.container.kind.split(&self.container.key, rest)
    }

    fn partition_key(&self, route: &[u8]) -> Result<String> {
        match self.container.kind.key(&self.container.key, route)?.pop() {
            Some(KeyPart::Text(partition_key)) => Ok(partition_key),
            _ => Err(damaged()),
        }
    }
}

fn row_key(row: &[u8]) -> Result<String> {
    std::str::from_utf8(row).map(str::to_owned).map_err(|_| damaged())
}

fn damaged() -> Error {
    Error::corrupt("bad-record-key", "the key of a record does not decode")
}

/// Makes the new payload from the one that is there, if any. Runs inside the lane, perhaps more than once.
pub type RecordUpdate = Arc<dyn Fn(Option<&Bytes>) -> Result<Bytes> + Send + Sync>;

/// What to do with one record.
#[derive(Clone)]
pub enum RecordWrite {
    /// Writes this payload, whether there is a record or not.
    Put(Bytes),
    /// Writes what the function makes of the payload that was there.
    Update(RecordUpdate),
    Delete,
}

impl fmt::Debug for RecordWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Put(_) => "Put",
            Self::Update(_) => "Update",
            Self::Delete => "Delete",
        })
    }
}

/// One operation of a transaction, resolved to a key.
struct Step {
    key: ItemKey,
    condition: Condition,
    operation: RecordWrite,
}

/// All steps or none. A failure says which step it was.
struct WriteRecords(Vec<Step>);

impl Transaction for WriteRecords {
    type Output = Lsn;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Lsn> {
        tx.foresee(self.0.iter().map(|step| &step.key)).await?;
        for (position, step) in self.0.iter().enumerate() {
            step.run(tx).await.map_err(|error| error.at(position))?;
        }
        Ok(tx.lsn())
    }

    fn cost(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

impl Step {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let made = |found: Option<&Item>| {
            Ok(match &self.operation {
                RecordWrite::Put(payload) => Some(payload.clone()),
                RecordWrite::Update(change) => Some(change(found.map(|item| &item.payload))?),
                RecordWrite::Delete => None,
            })
        };
        tx.change(&self.key, self.condition, made).await
    }
}

impl Records {
    /// Writes a record that is not there yet. Fails with `Exists` if it is.
    pub async fn insert(
        &self,
        name: &str,
        partition_key: &str,
        row_key: &str,
        payload: Bytes,
    ) -> Result<Lsn> {
        let operation = RecordWrite::Put(payload);
        self.write(name, partition_key, row_key, Condition::Absent, operation).await
    }

    /// One operation on one record, if the condition holds. Answers the version it wrote.
    pub async fn write(
        &self,
        name: &str,
        partition_key: &str,
        row_key: &str,
        condition: Condition,
        operation: RecordWrite,
    ) -> Result<Lsn> {
        let one = vec![(row_key.to_owned(), condition, operation)];
        self.write_all(name, partition_key, one).await
    }

    /// Several operations on records of one partition key, all or none (T5). All get the same version.
    pub async fn write_all(
        &self,
        name: &str,
        partition_key: &str,
        operations: Vec<(String, Condition, RecordWrite)>,
    ) -> Result<Lsn> {
        let table = self.table(name).await?;
        let mut steps = Vec::with_capacity(operations.len());
        for (position, (row_key, condition, operation)) in operations.into_iter().enumerate() {
            let key = table.key(partition_key, &row_key).map_err(|error| error.at(position))?;
            steps.push(Step { key, condition, operation });
        }
        let route = table.route(partition_key)?;
        self.engine.write(table.container.id, &route, WriteRecords(steps)).await
    }
}
