//! Stops at named points: each seed picks one point of the durable work on maps and moves, and a fault.
//!
//! The process ends right after that commit, or the task is held up until others have gone on without it, or a store fails
//! at that moment. So every step is followed by every kind of stop, however rarely chance would put one there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lazuli_env::{BoxFuture, Points};
use tokio::sync::Notify;

use crate::executor::World;
use crate::open::Disks;
use crate::process::Killer;
use crate::random::Seeded;

/// All points, as `work: step`.
pub const POINTS: &[&str] = &[
    "split: decided",
    "split: taken by a shard",
    "split: concluded",
    "merge: decided",
    "merge: taken by a shard",
    "merge: concluded",
    "set state: decided",
    "set state: taken by a shard",
    "set state: concluded",
    "begin move: decided",
    "begin move: taken by a shard",
    "begin move: concluded",
    "take move: decided",
    "take move: taken by a shard",
    "take move: concluded",
    "fence: decided",
    "fence: taken by a shard",
    "fence: concluded",
    "reopen: decided",
    "reopen: taken by a shard",
    "reopen: concluded",
    "commit move: decided",
    "commit move: taken by a shard",
    "commit move: concluded",
    "cancel move: decided",
    "cancel move: taken by a shard",
    "cancel move: concluded",
    "clear move: decided",
    "clear move: taken by a shard",
    "clear move: concluded",
    "move: handed over",
    "move: copied a part",
    "move: caught up a part",
    "move: verified",
    "move: brought the rest",
    "move: forgot what was written down",
    "move: retired a part",
    "move: cleaned a part",
    "move: remembered",
    "move: ended",
];

/// The points of a change of what a container says about its items.
pub const RULE_POINTS: &[&str] =
    &["change rules: decided", "change rules: taken by a shard", "change rules: concluded"];

/// The longest that a task is held up: beyond the time after which others take a move over.
const HOLD_UP_MAX: Duration = Duration::from_secs(12);
/// The longest outage of a store.
const OUTAGE_MAX: Duration = Duration::from_secs(2);

/// The fault at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The process is killed, with all its running work.
    Crash,
    /// The task that came to the point goes on much later.
    HoldUp,
    /// The catalog or a shard does not answer for a while.
    Outage,
}

impl Stop {
    pub const ALL: [Self; 3] = [Self::Crash, Self::HoldUp, Self::Outage];
}

/// One point, its fault, and how often it happens.
#[derive(Clone, Copy, Debug)]
pub struct Sabotage {
    pub point: &'static str,
    pub stop: Stop,
    pub times: u64,
}

impl Sabotage {
    pub fn draw(random: &Seeded) -> Self {
        Self::draw_of(random, POINTS)
    }

    /// One of these points.
    pub fn draw_of(random: &Seeded, points: &[&'static str]) -> Self {
        let times = *random.pick(&[1, 1, 3, 10]);
        Self { point: *random.pick(points), stop: *random.pick(&Stop::ALL), times }
    }
}

/// The remaining faults, over all processes of a run.
pub(crate) struct Left {
    pub(crate) sabotage: Sabotage,
    times: AtomicU64,
}

impl Left {
    pub(crate) fn new(sabotage: Sabotage) -> Self {
        Self { sabotage, times: AtomicU64::new(sabotage.times) }
    }
}

/// Observes the points of one process.
pub(crate) struct Saboteur {
    pub(crate) left: Arc<Left>,
    /// Tells that the process has ended.
    pub(crate) ended: Arc<Notify>,
    pub(crate) world: World,
    pub(crate) random: Seeded,
    pub(crate) disks: Disks,
    pub(crate) killer: Killer,
}

impl Saboteur {
    fn up_to(&self, longest: Duration) -> Duration {
        Duration::from_micros(self.random.between(0, longest.as_micros() as u64))
    }

    /// Whether this is the point, and there are faults left.
    fn is_due(&self, point: &str) -> bool {
        let left = &self.left;
        let take = |times: u64| times.checked_sub(1);
        left.sabotage.point == point
            && left.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

impl Points for Saboteur {
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let point = format!("{work}: {step}");
            self.world.note(|| format!("point {point}"));
            if !self.is_due(&point) {
                return;
            }
            let stop = self.left.sabotage.stop;
            self.world.note(|| format!("stopped at {point} by {stop:?}"));
            match stop {
                Stop::Crash => {
                    self.killer.kill();
                    self.ended.notify_one();
                    std::future::pending().await
                }
                Stop::HoldUp => self.world.sleep(self.up_to(HOLD_UP_MAX)).await,
                Stop::Outage => {
                    let at = self.random.index(self.disks.shards.len() + 1);
                    let disk = self.disks.shards.get(at).unwrap_or(&self.disks.catalog);
                    disk.go_out(self.up_to(OUTAGE_MAX));
                }
            }
        })
    }
}
