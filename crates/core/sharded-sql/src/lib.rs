//! The model of a sharded SQL database: which tables there are, which columns they are sharded by, and on which PostgreSQL
//! database the rows of a key live.
//!
//! A [`Snapshot`] is plain, immutable data. The control side (`lazuli sql`) makes one of the catalog; the PostgreSQL
//! endpoint and the client library route by it. Nothing here reads a clock, a file or a socket.

mod databases;
mod key;
mod ledger;
mod model;
mod owned;
mod place;
mod refusal;

pub use databases::{Databases, Refreshed};
pub use key::{ColumnType, KeyError, canonical_text, hash_slot};
pub use ledger::{GID_PREFIX, LEDGER_SCHEMA, SHARD_NUMBERS, next_id_sql};
pub use model::{
    Login, MapKind, Mapping, MappingState, Shard, ShardMap, ShardServer, Snapshot, Table,
    TableKind, TableName, TlsMode,
};
pub use owned::{quote_ident, quote_literal};
pub use place::{Place, PlaceError};
pub use refusal::{SETTING_REFERENCE, ShardRefusal};

/// How many virtual shards a hash map has. The slot of a key is the first two bytes of a SHA-256, as in [`hash_slot`].
pub const HASH_SLOTS: u32 = 65_536;
