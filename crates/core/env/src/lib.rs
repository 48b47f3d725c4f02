//! What core may not have of its own: time, chance, ids and tasks.
//!
//! Everything in `crates/core` gets an [`Env`] passed in. The server hands out [`real::env`], the simulator one whose
//! every answer follows from a seed, so that any schedule, crash or delay can be replayed.
//!
//! Invariant: no other file in core touches the ambient clock, random source or runtime (`crates/core/clippy.toml`).

pub mod ids;
pub mod points;
pub mod real;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use ids::{Id, Ids};
pub use points::Points;

/// A future behind a pointer, as trait objects return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Wall time for stamps, running time for measuring, and sleep.
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

    /// Starts a task that has much to do and that nobody waits for. It gives way to all others where that is possible.
    fn spawn_behind(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.spawn(name, task);
    }

    /// To be called again and again in the middle of such work: whoever waits for its core may have it for a moment.
    fn give_way(&self) {}
}

/// The surroundings of one process, cheap to clone.
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

    /// The same, with somebody who hears where durable work has come to.
    #[must_use]
    pub fn watched(self, points: Arc<dyn Points>) -> Self {
        Self { points, ..self }
    }
}
