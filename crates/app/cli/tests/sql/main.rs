//! Sharded SQL as operators and programs use it: the real `lazuli` over databases of a private PostgreSQL server. Without
//! PostgreSQL all of this is skipped, unless `CI` is set.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod chaos;
mod client;
#[path = "../it/program/mod.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod program;
mod shop;
mod walk;
mod writer;
