//! The bus on an engine whose stores are in memory, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(clippy::disallowed_methods, reason = "these tests run on the real runtime")]

mod entities;
mod forwarding;
mod fragments;
mod queues;
mod sessions;
mod topics;
mod waiting;
mod world;
