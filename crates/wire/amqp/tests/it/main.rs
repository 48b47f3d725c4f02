//! Connections from the outside: a plain client on one side, a small container on the other.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod broker;
mod hostile;
mod links;
