//! The engine on stores in memory, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(clippy::disallowed_methods, reason = "these tests run on the real runtime")]

mod backup;
mod changes_of_many;
mod entries;
mod fan_out;
mod fsck;
mod giving_way;
mod hot_ends;
mod item_life;
mod lanes;
mod leases;
mod many_shards;
mod moving;
mod pausing;
mod positions;
mod transactions;
mod turns;
mod verifying;
mod world;
