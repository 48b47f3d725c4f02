//! Catalog, local maps and router on stores in memory, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod concurrency;
mod crashes;
mod duplicates;
mod following;
mod formats;
mod local_map;
mod locks;
mod lost_catalog;
mod paused_coordinator;
mod placement;
mod recovery;
mod scale;
mod states;
mod told;
mod world;
