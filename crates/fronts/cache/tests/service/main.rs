//! The service as clients meet it: clusters, memory limits, TLS, stores that refuse, functions, users, tracking, latency.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod cluster;
mod eviction;
mod functions;
#[path = "../harness/mod.rs"]
mod harness;
mod latency;
mod misconf;
mod motion;
mod replica;
mod restart;
mod tls;
mod tracking;
mod users;
