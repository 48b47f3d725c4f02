//! A coordinator that is paused between any two steps, while another one finishes its operation and goes on, wakes up
//! late and does no harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::world::cases::{Run, cases, prepared};
use crate::world::{Crash, Truth, World};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::{MapKind, PartitionState};
use lazuli_store::faulty::{Fault, Plan};
use tokio::sync::Semaphore;

/// Pauses its process at the nth time it reaches for a store, until it is let go.
struct Pause {
    left: AtomicUsize,
    commits: AtomicUsize,
    reached: Semaphore,
    go: Semaphore,
}

impl Pause {
    fn at(nth: usize) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(nth),
            commits: AtomicUsize::new(0),
            reached: Semaphore::new(0),
            go: Semaphore::new(0),
        })
    }
}

impl Plan for Pause {
    fn commit(&self) -> Fault {
        self.commits.fetch_add(1, Ordering::Relaxed);
        Fault::None
    }

    fn delay(&self) -> Duration {
        let is_now = self.left.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_now { Duration::MAX } else { Duration::ZERO }
    }
}

/// A clock on which sleeping means to wait until the pause is over.
struct Paused(Arc<Pause>, Arc<dyn Clock>);

impl Clock for Paused {
    fn now_ms(&self) -> u64 {
        self.1.now_ms()
    }

    fn uptime(&self) -> Duration {
        self.1.uptime()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        let pause = self.0.clone();
        Box::pin(async move {
            pause.reached.add_permits(1);
            pause.go.acquire().await.unwrap().forget();
        })
    }
}

async fn open(world: &World, pause: &Arc<Pause>) -> World {
    let real = lazuli_env::real::env();
    let clock = Paused(pause.clone(), real.clock.clone());
    let env = Env::new(Arc::new(clock), real.random.clone(), real.spawn.clone());
    World::open_in(env, world.disks.clone(), Crash::never(), pause.clone()).await
}

/// Changes all that there is, and deletes what can be deleted, so that anything that comes back is seen.
async fn go_on(world: &World) {
    assert!(world.manager.reconcile().await.unwrap().is_clean());
    world.call_off_moves().await;
    for container in world.catalog().containers().await.unwrap() {
        for entry in world.entries(container.id).await {
            let known = Known { lock: entry.lock, ..Known::from(&entry.partition) };
            let offline = world.manager.set_state(known, PartitionState::Offline).await.unwrap();
            let known = Known { epoch: offline.epoch, ..known };
            if container.kind != MapKind::Hash {
                world.manager.delete_partition(known).await.unwrap();
            }
        }
    }
    for garbage in world.catalog().garbage().await.unwrap() {
        world.manager.garbage_done(&garbage).await.unwrap();
    }
}

/// Runs the operation with a pause at its nth step. None if it has fewer steps; else whether anything was decided before
/// the pause, and the truth when it ended.
async fn pause_at(nth: usize, run: Run, other: &World) -> Option<(bool, Truth)> {
    let pause = Pause::at(usize::MAX);
    let paused = open(other, &pause).await;
    pause.commits.store(0, Ordering::Relaxed);
    pause.left.store(nth, Ordering::Relaxed);
    let late = async {
        let _ = run(&paused).await;
        pause.reached.close();
    };
    let meanwhile = async {
        pause.reached.acquire().await.ok()?.forget();
        let decided = pause.commits.load(Ordering::Relaxed) > 0;
        go_on(other).await;
        let truth = other.truth().await;
        pause.go.add_permits(1);
        Some((decided, truth))
    };
    tokio::join!(late, meanwhile).1
}

#[tokio::test]
async fn a_coordinator_that_wakes_up_late_does_no_harm() {
    let disks = prepared().await;
    let mut pauses = 0;
    for (name, run) in cases() {
        for nth in 1.. {
            let other = World::open(disks.copy().await, Crash::never()).await;
            let Some((decided, truth)) = pause_at(nth, run, &other).await else { break };
            let later = other.restart(Crash::never()).await;
            let report = later.manager.reconcile().await.unwrap();
            assert!(report.is_clean(), "{name}, paused at step {nth}: {report:?}");
            later.check().await;
            if decided {
                assert_eq!(later.truth().await, truth, "{name}, paused at step {nth}");
            }
            pauses += 1;
        }
    }
    assert!(pauses > 150, "{pauses} pauses are fewer than there were");
}
