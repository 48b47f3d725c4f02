//! What SDKs hide: frames in, frames out, over a socket, by a plain client.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod access;
mod crowds;
mod deliveries;
mod hubs;
mod world;
