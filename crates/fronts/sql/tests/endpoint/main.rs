//! The endpoint over three real PostgreSQL databases. Skipped where PostgreSQL is not installed.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod bench;
mod commits;
mod drivers;
mod fixture;
mod random;
mod routed;
mod spread;
