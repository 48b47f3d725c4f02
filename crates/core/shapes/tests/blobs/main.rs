//! Blobs through the shape, on stores and block files in memory.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges are what is meant")]
#![allow(dead_code, reason = "each group of tests uses its part of the world")]

mod append;
mod backups;
mod blocks;
mod copies;
mod figures;
mod files;
mod lists;
mod pages;
mod states;
mod times;
mod whole;
mod world;
