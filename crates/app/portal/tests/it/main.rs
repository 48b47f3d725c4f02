//! The portal against a stand-in for the admin API, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod actions;
mod explorer_pages;
mod scale;
mod services;
mod stand_in;
mod wire;
