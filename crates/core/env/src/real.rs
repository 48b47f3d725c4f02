//! The real surroundings: the machine's clock, the system's random source, tokio's tasks.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the one file that touches the ambient clock and runtime"
)]

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
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
        self.behind.spawn(Resting(task));
    }

    fn give_way(&self) {
        RESTS.with_borrow_mut(|rests| rests.as_mut().map(Rests::look));
    }
}

thread_local! {
    /// Those of a thread behind. Any other thread has none.
    static RESTS: RefCell<Option<Rests>> = const { RefCell::new(None) };
}

/// A task behind, which rests when it has worked for long enough.
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

/// How long work that nobody waits for keeps a core: less than a commit takes.
const STRETCH: Duration = Duration::from_micros(100);
/// For how long it then sleeps. It is enough that it does: what is ready then goes on until it has to wait itself.
const REST: Duration = Duration::from_micros(20);
/// How often there is a look before the time is read, which takes a thirtieth of what reading a row does.
const LOOKS_PER_READING: u32 = 4;

/// The rests of a thread whose work nobody waits for.
///
/// However little urgent a thread is, the system lets it go on for milliseconds while others are ready, and for tens of
/// them while threads of the system itself are. One that sleeps is out of the way at once. So such a thread works for a
/// moment, sleeps for a shorter one, and works again.
#[derive(Debug)]
pub struct Rests {
    since: Instant,
    /// Since the last rest, up to `since`.
    worked: Duration,
    looks: u32,
}

impl Default for Rests {
    fn default() -> Self {
        Self { since: Instant::now(), worked: Duration::ZERO, looks: 0 }
    }
}

impl Rests {
    /// Work begins, or goes on after something was waited for.
    pub fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Rests if there was work enough. To be called often, and cheap enough for that.
    pub fn look(&mut self) {
        self.looks += 1;
        if self.looks >= LOOKS_PER_READING {
            self.end();
        }
    }

    /// The same at the end of a piece of work.
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

    /// However busy the machine is.
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
        // A thread that is held up just here has worked, as far as anybody can tell. That does not happen every time.
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
