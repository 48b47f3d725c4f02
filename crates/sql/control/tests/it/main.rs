//! The control side on private PostgreSQL servers: one server, a database for each shard.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod changes;
mod check;
mod ddl;
mod fence;
mod fixture;
mod keys;
mod kills;
mod moves;
mod recovery;
