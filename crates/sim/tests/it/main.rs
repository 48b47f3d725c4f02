//! The simulator itself, and the seeds that once failed, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod executor;
mod found;
mod points;
mod seeds;
