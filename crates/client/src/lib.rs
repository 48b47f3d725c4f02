//! A client library for programs that route by themselves.
//!
//! [`ShardedDatabase::open`] reads the maps of a sharded database over the admin API of Lazuli and keeps them. A [`Map`] says
//! which mapping and which shard a key belongs to, without asking anybody, and [`Map::connect_for_key`] opens a connection to
//! that shard. The connection carries the mapping and its epoch, so the shard itself refuses writes of a connection that has
//! become stale; the next call for the key then finds the new shard by itself. [`MultiShardQuery`] asks many shards at once.
//!
//! ```no_run
//! # async fn example() -> Result<(), lazuli_client::Error> {
//! use lazuli_client::{Access, Key, Login, ShardedDatabase, Validation};
//! let access = Access::new("http://127.0.0.1:10010", "the admin token")?;
//! let shop = ShardedDatabase::open(access, "shop", Login::default()).await?;
//! let connection = shop.map("tenants")?.connect_for_key(&Key::from(7), Validation::Checked).await?;
//! connection.execute("UPDATE invoice SET cents = 0 WHERE tenant = 7", &[]).await?;
//! # Ok(()) }
//! ```

mod access;
mod changes;
mod connection;
mod database;
mod error;
mod key;
mod query;
mod state;

pub use access::Access;
pub use changes::{Recovery, State};
pub use connection::{ShardConnection, Validation};
pub use database::{Login, Map, Mapping, ShardedDatabase};
pub use error::{Error, Result};
pub use key::Key;
pub use lazuli_http::client::blocking::Trust;
pub use lazuli_sharded_sql::ShardRefusal;
pub use lazuli_shardmap::KeyPart;
pub use query::{MultiShardQuery, MultiShardRows, Policy, ShardFailure, ShardRow};
pub use tokio_postgres;
