//! The shapes on an engine whose stores are in memory, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges are what is meant")]

mod blobs;
mod documents;
mod queues;
mod records;
