//! The embedded store on a real disk, all tests in one binary but for those that need a process of their own.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod damaged_files;
mod drops;
#[cfg(target_os = "linux")]
mod failed_writes;
mod fixture;
mod growth;
mod kill;
mod loads;
mod parcels;
mod suite;
mod torn_journals;
mod two_keyspaces;
