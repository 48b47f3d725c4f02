//! The program `lazuli` on PostgreSQL as operators run it: shards of both kinds in one server, and fleets of several nodes.
//! The servers are private ones, ended with the tests. Without PostgreSQL all of this is skipped, unless `CI` is set.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod both_kinds;
mod compose;
mod differential;
mod figures;
mod fleet;
mod large_blobs;
mod nodes;
#[path = "../it/program/mod.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod program;
mod standby;
mod traffic;
mod weather;
