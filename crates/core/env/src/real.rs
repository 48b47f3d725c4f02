//! The real surroundings: the machine's clock, the system's random source, tokio's tasks.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the one file that touches the ambient clock and runtime"
)]

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;

use crate::{BoxFuture, Clock, Env, Random, Spawn};

/// The surroundings of a command. Tasks need a running tokio runtime.
pub fn env() -> Env {
    with(Arc::new(Tokio))
}

/// The surroundings of a server: work that nobody waits for goes to a runtime of its own. To be called inside the one that
/// is for all the rest.
pub fn env_with_two(behind: Handle) -> Env {
    with(Arc::new(TwoRuntimes { front: Handle::current(), behind }))
}

fn with(spawn: Arc<dyn Spawn>) -> Env {
    Env::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()), spawn)
}

struct SystemClock {
    start: Instant,
}

impl SystemClock {
    fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// SplitMix64 from a seed that the standard library draws from the system. For ids, back-off and sampling; never for keys.
struct SystemRandom {
    state: AtomicU64,
}

impl SystemRandom {
    fn new() -> Self {
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        Self { state: AtomicU64::new(hasher.finish()) }
    }
}

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        split_mix(self.state.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed))
    }
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN_GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct Tokio;

impl Spawn for Tokio {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}

/// What a task behind starts is as urgent as what anybody else starts: only the task itself is not.
struct TwoRuntimes {
    front: Handle,
    behind: Handle,
}

impl Spawn for TwoRuntimes {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.front.spawn(task);
    }

    fn spawn_behind(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.behind.spawn(task);
    }
}
