//! The simulator: the real core in a world where time, randomness, schedules, crashes and disks follow from one seed.
//!
//! Read in this order: `executor` (a world and its tasks), `clock`, `process` (what can be killed and paused), `disk`,
//! `locks` and `store` (what survives), `points` (where work is stopped on purpose), `cluster` (a catalog, shards and a server that dies and
//! comes back), `client` and `answer` (what is known of a request), `workloads` and `model` (what must hold), `scenario`
//! (what can be run) and `runner` (many seeds, and the command that replays a failure).

pub mod answer;
pub mod checkers;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod disk;
mod drive;
pub mod executor;
pub mod faults;
mod locks;
pub mod model;
mod open;
pub mod points;
pub mod process;
pub mod random;
pub mod runner;
pub mod scenario;
pub mod settings;
pub mod store;
mod table;
mod trace;
pub mod workloads;

pub use clock::ClockFaults;
pub use disk::Disk;
pub use executor::{Stuck, World};
pub use faults::StoreFaults;
pub use process::Process;
pub use random::Seeded;
pub use store::SimStore;

/// Locks a mutex. A panic while it was held fails the run by itself.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
