//! The real environment: the machine's clock, the system's random source, tokio's tasks.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the one file that touches the ambient clock and runtime"
)]

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;

use crate::{BoxFuture, Clock, Env, SharedSplitMix64, Spawn};

/// The environment of a command. Tasks need a running tokio runtime.
pub fn env() -> Env {
    with(Arc::new(Tokio))
}

/// The environment of a server: background tasks run on a separate runtime. Must be called inside the main runtime.
pub fn env_with_two(behind: Handle) -> Env {
    with(Arc::new(TwoRuntimes { front: Handle::current(), behind }))
}

fn with(spawn: Arc<dyn Spawn>) -> Env {
    Env::new(Arc::new(SystemClock::new()), Arc::new(system_random()), spawn)
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

/// A generator that is seeded from the system by the standard library. For ids, back-off and sampling; never for keys.
fn system_random() -> SharedSplitMix64 {
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    SharedSplitMix64::new(hasher.finish())
}

struct Tokio;

impl Spawn for Tokio {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}

/// Tasks that a background task spawns normally run on the main runtime.
struct TwoRuntimes {
    front: Handle,
    behind: Handle,
}

impl Spawn for TwoRuntimes {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.front.spawn(task);
    }

    fn spawn_behind(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.behind.spawn(Resting(task));
    }

    fn give_way(&self) {
        RESTS.with_borrow_mut(|rests| rests.as_mut().map(Rests::look));
    }
}

thread_local! {
    /// Rate limiting of a background thread. Other threads have none.
    static RESTS: RefCell<Option<Rests>> = const { RefCell::new(None) };
}

/// A background task. It sleeps after it has worked for `STRETCH`.
struct Resting(BoxFuture<'static, ()>);

impl Future for Resting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        RESTS.with_borrow_mut(|rests| rests.get_or_insert_default().begin());
        let polled = self.0.as_mut().poll(context);
        RESTS.with_borrow_mut(|rests| rests.get_or_insert_default().end());
        polled
    }
}

/// How long background work may use a core: less than a commit takes.
const STRETCH: Duration = Duration::from_micros(100);
/// How long it then sleeps. Any sleep is enough: a ready thread gets the core and keeps it until it waits itself.
const REST: Duration = Duration::from_micros(20);
/// The clock is read on every fourth call. Reading it takes a thirtieth of the time of reading a row.
const LOOKS_PER_READING: u32 = 4;

/// Rate limiting of a background thread.
///
/// A thread of low priority still keeps its core for milliseconds while other threads are ready, and for tens of
/// them while kernel threads are. A sleeping thread frees its core at once. So a background thread works for a
/// moment, sleeps for a shorter one, and works again.
#[derive(Debug)]
pub struct Rests {
    since: Instant,
    /// Time worked since the last sleep, up to `since`.
    worked: Duration,
    looks: u32,
}

impl Default for Rests {
    fn default() -> Self {
        Self { since: Instant::now(), worked: Duration::ZERO, looks: 0 }
    }
}

impl Rests {
    /// Work begins, or continues after a wait.
    pub fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Sleeps if the thread has worked for long enough. Cheap enough to be called often.
    pub fn look(&mut self) {
        self.looks += 1;
        if self.looks >= LOOKS_PER_READING {
            self.end();
        }
    }

    /// The same at the end of a unit of work.
    pub fn end(&mut self) {
        let now = Instant::now();
        self.worked += now - self.since;
        (self.since, self.looks) = (now, 0);
        if self.worked >= STRETCH {
            std::thread::sleep(REST);
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for a busy machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn whoever_works_rests_again_and_again() {
        let (mut rests, mut rested) = (Rests::default(), 0);
        let began = Instant::now();
        while rested < 10 && began.elapsed() < PATIENCE {
            let before = rests.worked;
            rests.look();
            rested += u32::from(rests.worked < before);
        }
        assert_eq!(rested, 10);
    }

    #[test]
    fn time_spent_waiting_is_no_work() {
        // If the thread is preempted just here, that time counts as work. It does not happen every time.
        let needs_no_rest = |_| {
            let mut rests = Rests::default();
            rests.since -= STRETCH;
            rests.begin();
            rests.end();
            !rests.worked.is_zero()
        };
        assert!((0..1_000).any(needs_no_rest));
    }

    #[tokio::test]
    async fn only_threads_behind_give_way() {
        let behind = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let env = env_with_two(behind.handle().clone());
        env.spawn.give_way();
        assert!(RESTS.with_borrow(Option::is_none));
        let (tell, told) = tokio::sync::oneshot::channel();
        let spawn = env.spawn.clone();
        let task = async move {
            spawn.give_way();
            tell.send(RESTS.with_borrow(|rests| rests.as_ref().map(|it| it.looks))).unwrap();
        };
        env.spawn.spawn_behind("task", Box::pin(task));
        assert_eq!(told.await.unwrap(), Some(1));
        behind.shutdown_background();
    }
}
