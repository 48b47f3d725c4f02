//! A shard, or the catalog, on a PostgreSQL database that several processes share.
//!
//! Reading order: `settings` and `address` (where the database is), `session`, `database` and `pool` (connections, and which
//! server is the primary), `schema` and `key` (tables and rows), `sql` (all statements), `rows` and `reader` (snapshots), `standby` (reads that
//! allow an old state), `txn` and `commit` (transactions), `load`, `size`, `store` (what the engine calls), `blocks` (big values).

mod address;
mod blocks;
mod commit;
mod database;
mod error;
mod fault;
pub mod fuzzing;
mod key;
mod limits;
mod load;
pub mod plain;
mod pool;
mod reader;
mod rows;
mod schema;
mod session;
mod settings;
mod size;
mod sql;
mod standby;
mod store;
mod tls;
mod txn;

pub use blocks::{Generation, PostgresBlocks};
pub use error::DatabaseReason;
pub use schema::FORMAT;
pub use settings::{Host, Password, Settings, Tls, TlsMode};
pub use store::PostgresStore;
