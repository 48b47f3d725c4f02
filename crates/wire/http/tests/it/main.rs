//! The listener with raw bytes and with TLS, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod doors;
mod serve;
