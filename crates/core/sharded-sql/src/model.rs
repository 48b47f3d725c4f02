//! What is known of a sharded database: tables, maps with their mappings, shards, logins.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::key::ColumnType;

/// A sharded database at one version of its catalog entry. Whoever holds one may be behind, and is told so by the shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The name that clients connect to.
    pub name: String,
    /// Grows with every change of tables, maps, mappings, shards or logins.
    pub version: u64,
    pub tables: BTreeMap<TableName, Table>,
    pub maps: Vec<Arc<ShardMap>>,
    /// Never empty. Mappings and tables name shards by their index here.
    pub shards: Vec<Arc<Shard>>,
    /// The shard that answers what names no table, queries of the system catalogs, and whose types are the canonical ones.
    /// The ledger of two-phase commits is in its database.
    pub catalog_shard: usize,
    /// Who may connect, by name.
    pub logins: BTreeMap<String, Login>,
}

/// A table with its schema, as PostgreSQL folds names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableName {
    pub schema: String,
    pub name: String,
}

impl TableName {
    pub fn new(schema: &str, name: &str) -> Self {
        Self { schema: schema.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub kind: TableKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Every row lives where the map says for its key.
    Sharded {
        /// An index into [`Snapshot::maps`]. Tables of one map are co-located: equal keys live on one shard.
        map: usize,
        /// The columns of the key with their types, in the order of the map's [`ShardMap::key`].
        key: Vec<(String, ColumnType)>,
    },
    /// The same rows on every shard.
    Reference,
    /// All rows on one shard.
    Single { shard: usize },
}

/// From keys to shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    /// A number that is never used again.
    pub id: u32,
    pub name: String,
    pub kind: MapKind,
    /// The types of the key's columns. A table's may differ in width: all integers are one type of key, and so are texts.
    pub key: Vec<ColumnType>,
    /// Sorted by `low`, without overlaps. Gaps are keys that have no shard.
    pub mappings: Vec<Mapping>,
    /// Whether rows of a mapping may lie on two shards at the moment: a statement over several shards must ask each for the
    /// rows that it owns, by [`Snapshot::owned_sql`].
    pub is_in_transit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Mappings of single keys: `low` is the encoded key, `high` the same with a zero byte behind it.
    List,
    /// Mappings of ranges of encoded keys.
    Range,
    /// Mappings of ranges of slots: two bytes, big-endian.
    Hash,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// A number that is never used again.
    pub id: u64,
    /// The first route that belongs to it.
    pub low: Bytes,
    /// The first route behind it; none means that it has no end.
    pub high: Option<Bytes>,
    /// An index into [`Snapshot::shards`].
    pub shard: usize,
    /// Grows whenever the mapping changes its shard, its bounds or its state.
    pub epoch: u64,
    pub state: MappingState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingState {
    Online,
    /// Reads are answered; writes are refused.
    ReadOnly,
    /// Nothing is answered.
    Offline,
    /// At the end of a move: writes wait for the new owner, for a bounded time.
    Fenced,
}

/// One PostgreSQL database that holds rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// A number that is never used again.
    pub id: u32,
    pub name: String,
    pub server: ShardServer,
}

/// How a shard's database is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct ShardServer {
    /// A host name or an IP address.
    pub host: String,
    pub port: u16,
    pub database: String,
    pub user: String,
    pub password: Option<String>,
    pub tls: TlsMode,
}

/// Without the password, so that no log shows it.
impl fmt::Debug for ShardServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    Off,
    /// Encrypted, whoever the server is.
    Require,
    /// Encrypted, and the certificate is signed by one of these authorities (PEM) for this host.
    Verify {
        roots: String,
    },
}

/// Who may connect to the endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// What is kept of the password, in PostgreSQL's form `SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER`.
    pub secret: String,
    /// The role that statements run as on the shards; none: the role that we connect as.
    pub role: Option<String>,
}

/// Without the secret, so that no log shows it.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "login as {}", self.role.as_deref().unwrap_or("the shards' user"))
    }
}

impl Snapshot {
    pub fn table(&self, schema: &str, name: &str) -> Option<&Table> {
        self.tables.get(&TableName::new(schema, name))
    }

    pub fn shard_named(&self, name: &str) -> Option<usize> {
        self.shards.iter().position(|shard| shard.name == name)
    }
}
