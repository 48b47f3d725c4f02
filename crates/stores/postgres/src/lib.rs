//! A shard, or the catalog, on a PostgreSQL database that several processes share.
//!
//! Reading order: `settings` and `address` (where the database is), `store` (what the engine calls), `blocks` (big values).

#![allow(dead_code, reason = "the parts are put together one after another")]

mod address;
mod blocks;
mod limits;
mod settings;
mod store;

pub use blocks::{Generation, PostgresBlocks};
pub use settings::{Host, Password, Settings, Tls, TlsMode};
pub use store::PostgresStore;
