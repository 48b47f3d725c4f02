//! Blobs through the shape, on stores and block files in memory.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(dead_code, reason = "each group of tests uses its part of the world")]

mod files;
mod whole;
mod world;
