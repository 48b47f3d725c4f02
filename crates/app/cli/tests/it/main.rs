//! The program `lazuli` as users run it, all tests in one binary.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod advise;
mod audit;
mod backup;
mod blob;
mod blob_faults;
mod cache;
mod closed_doors;
mod commands;
mod documents;
mod explorer;
#[cfg(target_os = "linux")]
mod failing_disk;
mod first_steps;
mod folders;
#[cfg(target_os = "linux")]
mod full_disk;
mod handing_over;
mod messaging;
mod monitoring;
mod packaging;
mod program;
mod queue;
mod rebalance;
mod remote_admin;
mod retiring;
mod serve;
mod simulate;
mod table;
mod table_resume;
mod upgrade;
mod usage;
