//! A move lets others have its core in the middle of its work, however much it has to go through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::world::World;
use lazuli_engine::MoveOptions;
use lazuli_env::{BoxFuture, Env, Spawn};
use lazuli_shardmap::manager::Cuts;
use lazuli_shardmap::{MapKind, Policies};

const ITEMS: usize = 200;

/// Counts how often somebody gave way.
struct Counting {
    inner: Arc<dyn Spawn>,
    count: AtomicUsize,
}

impl Spawn for Counting {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.inner.spawn(name, task);
    }

    fn give_way(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_move_gives_way_at_every_row_that_it_sends_reads_back_and_deletes() {
    // Of what is left on the source the store drops one half, and the other is deleted.
    let copied = give_way(World::new(2).await).await;
    assert!(copied >= ITEMS * 5 / 2, "{copied} times for {ITEMS} items");
    let handed_over = give_way(World::with(2, true).await).await;
    assert!(handed_over >= ITEMS * 3 / 2, "{handed_over} times for {ITEMS} items");
    assert!(handed_over < copied, "nobody went through what was handed over but the target");
}

/// How often a move did.
async fn give_way(mut world: World) -> usize {
    let counting = Arc::new(Counting { inner: world.env.spawn.clone(), count: 0.into() });
    world.env = Env { spawn: counting.clone(), ..world.env.clone() };
    world.restart().await;
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), Policies::default()).await;
    for n in 0..ITEMS {
        world.put(&container, &format!("k{n:03}"), "row", "value").await.unwrap();
    }
    let partition = world.partitions(&container).await[0].clone();
    let target = *world.shard_stores.keys().find(|id| **id != partition.shard).unwrap();
    let options = MoveOptions::default();
    world.engine.move_partition(partition.id, target, options).await.unwrap();
    assert_eq!(counting.count.load(Ordering::Relaxed), 0, "requests do not give way");
    while !world.engine.manager().catalog().moves().await.unwrap().is_empty() {
        world.engine.run_moves().await.unwrap();
    }
    counting.count.load(Ordering::Relaxed)
}
