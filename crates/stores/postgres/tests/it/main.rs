//! Tests of the store on real servers. Without PostgreSQL they are skipped, and fail where the variable `CI` is set.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod blocks;
mod busy;
mod failover;
mod keys;
mod login;
mod lost;
mod place;
mod proxy;
mod standby;
mod suite;
