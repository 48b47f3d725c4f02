//! Time, randomness, ids and tasks for core, which has none of its own.
//!
//! Everything in `crates/core` gets an [`Env`] passed in. The server passes [`real::env`], the simulator one that
//! is determined by a seed, so that any schedule, crash or delay can be replayed.
//!
//! Invariant: no other file in core touches the ambient clock, random source or runtime (`crates/core/clippy.toml`).

pub mod calendar;
pub mod ids;
pub mod points;
pub mod real;
mod split_mix;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use ids::{Id, Ids};
pub use points::Points;
pub use split_mix::{SharedSplitMix64, SplitMix64, mix};

/// A future behind a pointer, as trait objects return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Wall-clock time for timestamps, monotonic time for measuring, and sleep.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch. May step back when the machine's clock is set.
    fn now_ms(&self) -> u64;
    /// Time since some fixed moment; never steps back.
    fn uptime(&self) -> Duration;
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

pub trait Random: Send + Sync {
    fn next_u64(&self) -> u64;

    /// A number below `bound`, which must not be zero.
    fn below(&self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below zero does not exist");
        // The high half of a 128-bit product is uniform enough for back-off and sampling, and needs no loop.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Starts tasks that outlive the caller. A task ends by itself or with the process.
pub trait Spawn: Send + Sync {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);

    /// Starts a background task with much work. It yields to all other tasks where the environment supports that.
    fn spawn_behind(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.spawn(name, task);
    }

    /// Yield point of a background task: it may pause here, so that other threads get its core.
    fn give_way(&self) {}
}

/// The environment of one process, cheap to clone.
#[derive(Clone)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub spawn: Arc<dyn Spawn>,
    pub ids: Arc<Ids>,
    pub points: Arc<dyn Points>,
}

impl Env {
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>, spawn: Arc<dyn Spawn>) -> Self {
        let ids = Arc::new(Ids::new(clock.clone(), random.clone()));
        Self { clock, random, spawn, ids, points: Arc::new(points::Unwatched) }
    }

    /// The same environment with an observer of durable steps.
    #[must_use]
    pub fn watched(self, points: Arc<dyn Points>) -> Self {
        Self { points, ..self }
    }
}
