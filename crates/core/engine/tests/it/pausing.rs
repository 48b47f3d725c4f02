//! A move that would keep writers waiting for longer than it may.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::world::World;
use lazuli_engine::{MoveOptions, Phase};
use lazuli_env::{BoxFuture, Points};
use lazuli_shardmap::manager::Cuts;
use lazuli_shardmap::{MapKind, Policies};

/// What a fence takes while it is slow, and what the move allows: far less, and far more than the rest of it takes.
const SLOW: Duration = Duration::from_millis(600);
const LIMIT: Duration = Duration::from_millis(200);
/// Longer than the first rest and another fence, shorter than the rests that follow where it is remembered.
const A_WHILE: Duration = Duration::from_millis(1_000);

/// Makes every fence slow, until it is told to stop.
#[derive(Default)]
struct SlowFence {
    is_quick: AtomicBool,
}

impl Points for SlowFence {
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        let is_slow = (work, step) == ("fence", "decided") && !self.is_quick.load(Ordering::SeqCst);
        Box::pin(async move {
            if is_slow {
                tokio::time::sleep(SLOW).await;
            }
        })
    }
}

#[tokio::test]
async fn a_fence_that_stood_in_vain_is_remembered_for_a_while() {
    let mut world = World::new(2).await;
    let fence = Arc::new(SlowFence::default());
    world.env = world.env.clone().watched(fence.clone());
    world.restart().await;
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), Policies::default()).await;
    world.put(&container, "key", "row", "value").await.unwrap();
    let partition = world.partitions(&container).await[0].clone();
    let target = *world.shard_stores.keys().find(|id| **id != partition.shard).unwrap();
    let options = MoveOptions { pause_limit: LIMIT, ..MoveOptions::default() };
    let number = world.engine.move_partition(partition.id, target, options).await.unwrap().number;

    let engine = world.engine.clone();
    let leading = tokio::spawn(async move { engine.run_moves().await });
    while world.engine.move_stats().reopened == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(world.engine.move_stats().reopened, 1);
    let status = world.engine.move_status(number).await.unwrap();
    assert_eq!(status.phase, Phase::CatchingUp);
    assert!(status.pause_predicted.unwrap() > LIMIT, "{:?}", status.pause_predicted);
    // Nobody waits meanwhile.
    world.put(&container, "key", "row", "another value").await.unwrap();

    // It is not remembered for ever.
    fence.is_quick.store(true, Ordering::SeqCst);
    leading.await.unwrap().unwrap();
    assert_eq!(world.partitions(&container).await[0].shard, target);
    assert_eq!(world.get(&container, "key", "row").await.unwrap().unwrap(), "another value");
}
