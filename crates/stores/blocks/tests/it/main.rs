//! Block files on a real disk, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod damage;
mod life;
mod suite;
