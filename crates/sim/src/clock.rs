//! Virtual time: a queue of sleepers, and the wall clocks of processes, which are wrong on purpose.
//!
//! A step of a task takes one microsecond. When no task is ready, time jumps to the next sleeper. An hour of back-off
//! costs nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lazuli_env::{BoxFuture, Clock};

use crate::lock;
use crate::random::Seeded;

/// The duration of one step. Not zero, so that a task that polls the clock in a loop ends.
const STEP: Duration = Duration::from_micros(1);
/// The wall clock at the start of every simulation: 2026-01-01.
pub const WALL_START_MS: u64 = 1_767_225_600_000;

/// How wrong the wall clocks of processes may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockFaults {
    /// The largest offset of a clock, and the largest jump, in either direction.
    pub skew_ms_max: u64,
    /// The mean time between two jumps of one clock; none means that it never jumps.
    pub jump_every: Option<Duration>,
}

#[derive(Default)]
struct Queue {
    now: Duration,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next: u64,
}

/// The time line of a simulation. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Timeline {
    queue: Arc<Mutex<Queue>>,
}

impl Timeline {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    pub(crate) fn now(&self) -> Duration {
        self.lock().now
    }

    /// Advances time by one step and wakes the sleepers that are due.
    pub(crate) fn step(&self) {
        self.advance(|queue| queue.now + STEP);
    }

    /// Jumps to the next sleeper; false if there is none.
    pub(crate) fn jump(&self) -> bool {
        let sleeps = !self.lock().sleepers.is_empty();
        if sleeps {
            self.advance(|queue| {
                let first =
                    queue.sleepers.keys().next().map_or(queue.now, |(deadline, _)| *deadline);
                first.max(queue.now)
            });
        }
        sleeps
    }

    fn advance(&self, to: impl FnOnce(&Queue) -> Duration) {
        let mut queue = self.lock();
        let now = to(&queue);
        queue.now = now;
        let later = queue.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut queue.sleepers, later);
        // Waking runs code of tasks, which may take this lock.
        drop(queue);
        due.into_values().for_each(Waker::wake);
    }

    pub(crate) fn wake_after(&self, duration: Duration, waker: Waker) {
        let mut queue = self.lock();
        let key = (queue.now + duration, queue.next);
        queue.next += 1;
        queue.sleepers.insert(key, waker);
    }

    pub(crate) fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut queue = self.lock();
        let deadline = queue.now + duration;
        let key = (deadline, queue.next);
        queue.next += 1;
        Box::pin(Sleep { timeline: self.clone(), key })
    }
}

struct Sleep {
    timeline: Timeline,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.timeline.lock();
        if queue.now >= self.key.0 {
            return Poll::Ready(());
        }
        queue.sleepers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let forgotten = self.timeline.lock().sleepers.remove(&self.key);
        drop(forgotten);
    }
}

struct Wall {
    offset_ms: i64,
    next_jump: Option<Duration>,
}

/// The clock of one process: true time for sleeping, its own wall time.
pub(crate) struct ProcessClock {
    timeline: Timeline,
    faults: ClockFaults,
    random: Seeded,
    wall: Mutex<Wall>,
}

impl ProcessClock {
    pub(crate) fn new(timeline: Timeline, faults: ClockFaults, random: Seeded) -> Self {
        let next_jump = next_jump(&timeline, faults, &random);
        let wall = Mutex::new(Wall { offset_ms: offset(faults, &random), next_jump });
        Self { timeline, faults, random, wall }
    }
}

fn offset(faults: ClockFaults, random: &Seeded) -> i64 {
    let most = i64::try_from(faults.skew_ms_max).unwrap_or(0);
    i64::try_from(random.between(0, 2 * faults.skew_ms_max)).unwrap_or(0) - most
}

fn next_jump(timeline: &Timeline, faults: ClockFaults, random: &Seeded) -> Option<Duration> {
    let mean = u64::try_from(faults.jump_every?.as_micros()).unwrap_or(u64::MAX / 2);
    Some(timeline.now() + Duration::from_micros(random.between(1, 2 * mean)))
}

impl Clock for ProcessClock {
    fn now_ms(&self) -> u64 {
        let now = self.timeline.now();
        let mut wall = lock(&self.wall);
        if wall.next_jump.is_some_and(|at| now >= at) {
            wall.offset_ms = offset(self.faults, &self.random);
            wall.next_jump = next_jump(&self.timeline, self.faults, &self.random);
        }
        let truth = WALL_START_MS + u64::try_from(now.as_millis()).unwrap_or(0);
        truth.saturating_add_signed(wall.offset_ms)
    }

    fn uptime(&self) -> Duration {
        self.timeline.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.timeline.sleep(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clocks_are_off_within_their_bounds_and_step_back() {
        let timeline = Timeline::default();
        let faults = ClockFaults { skew_ms_max: 500, jump_every: Some(Duration::from_millis(100)) };
        let clock = ProcessClock::new(timeline.clone(), faults, Seeded::new(1));
        let mut back = 0;
        let mut last = 0;
        for _ in 0..1000 {
            timeline.advance(|queue| queue.now + Duration::from_millis(10));
            let truth = WALL_START_MS + u64::try_from(timeline.now().as_millis()).unwrap();
            let now = clock.now_ms();
            assert!(now.abs_diff(truth) <= 500);
            back += usize::from(now < last);
            last = now;
        }
        assert!(back > 10, "the clock stepped back {back} times");
    }
}
