//! Records: items with a partition key and a row key, sorted by both (T1, T3). The model behind Tables.
//!
//! Each container is a table of its own on a range map of the partition key, or on a hash map where its keys only ever
//! grow at one end (T6). A record is one item: its row key is the key's last part, its payload the front's.

mod query;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Engine, Error, ItemKey, KeyPart, KeySchema, KeyType, Lsn, MapKind,
    NewContainer, PREFIX_BYTES, Policies, Result, Space,
};

pub use lazuli_engine::Condition;
pub use query::{Filter, Query, RecordPage, RecordRange};
pub use write::{Change, Operation};

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
                MapKind::Range | MapKind::List => Cuts::At(Vec::new()),
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
        let view = self.engine.read(table.container.id, key.route(), 1).await?;
        let item = view.get(&key).await?;
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
