//! How messages end without anybody deleting them, and what then is left in the store: nothing.

use bytes::Bytes;
use lazuli_engine::{Direction, KeyRange, PageLimit, Space};
use lazuli_shapes::queue::NewMessage;
use lazuli_store::Store;

use super::world::{ACCOUNT, SECOND, World, texts};

/// The spaces of queues but for that of the queues themselves and their states.
const MESSAGE_SPACES: [Space; 4] =
    [Space::QUEUE_MESSAGES, Space::QUEUE_ORDER, Space::QUEUE_CONTENTS, Space::QUEUE_DOOMED];

/// The rows of messages in the store.
async fn rows(world: &World) -> usize {
    let all = KeyRange::all();
    let page = world.store.scan(&all, Direction::Forward, PageLimit::MAX).await.unwrap();
    assert!(!page.more);
    let is_of_message = |key: &Bytes| {
        key[..4] != [0; 4]
            && (MESSAGE_SPACES.contains(&Space(key[4])) || Space(key[4]) == Space::EXPIRY)
    };
    page.items.iter().filter(|(key, _)| is_of_message(key)).count()
}

#[tokio::test]
async fn an_expired_message_is_gone_at_once_and_swept_away_later() {
    let world = World::new().await;
    let expiring = world.put_for("a", 0, Some(10 * SECOND)).await;
    world.put_for(&"b".repeat(10_000), 5 * SECOND, Some(10 * SECOND)).await;
    world.put("c").await;
    let held = world.receive(1, 60 * SECOND).await.pop().unwrap();
    assert_eq!(held.message.id, expiring.message.id);
    world.pass(10 * SECOND);
    assert_eq!(world.peek(32).await, ["c"]);
    assert_eq!(super::delete(&world, &held).await.unwrap_err().code(), "message-not-found");
    assert_eq!(texts(&world.receive(32, 0).await), ["c"]);
    world.sweep().await;
    assert_eq!(world.count().await, 1);
    let last = world.receive(1, SECOND).await.pop().unwrap();
    super::delete(&world, &last).await.unwrap();
    assert_eq!((world.count().await, rows(&world).await), (0, 0));
}

#[tokio::test]
async fn a_receive_finds_what_stands_behind_many_expired_messages() {
    let world = World::new().await;
    for _ in 0..10_000 {
        world.put_for("gone", 0, Some(SECOND)).await;
    }
    world.put("there").await;
    // The clock stands still and the numbers of writes run ahead of it, so a little more than the second.
    world.pass(2 * SECOND);
    assert_eq!(world.peek(32).await, ["there"]);
    assert_eq!(texts(&world.receive(32, SECOND).await), ["there"]);
    world.sweep().await;
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn a_queue_that_is_created_again_is_empty_at_once() {
    let world = World::new().await;
    for number in 0..2_500 {
        let lives_ms = (number % 2 == 0).then_some(SECOND);
        world.put_for(&number.to_string(), 0, lives_ms).await;
    }
    let old = world.receive(1, SECOND).await.pop().unwrap();
    world.queues.delete(ACCOUNT, "q").await.unwrap();
    assert_eq!(world.queues.peek(ACCOUNT, "q", 1).await.unwrap_err().code(), "queue-not-found");
    world.queues.create(ACCOUNT, "q", Vec::new()).await.unwrap();
    assert_eq!((world.peek(32).await.len(), world.count().await), (0, 0));
    assert_eq!(super::delete(&world, &old).await.unwrap_err().code(), "message-not-found");
    world.put("new").await;
    // Some of the old ones are swept because they have expired, the others because their queue is gone.
    world.pass(2 * SECOND);
    world.sweep().await;
    world.pass(SECOND);
    world.sweep().await;
    assert_eq!((world.count().await, world.peek(32).await), (1, vec!["new".to_owned()]));
    assert_eq!(rows(&world).await, 2, "the new message and its place in the order");
}

#[tokio::test]
async fn a_cleared_queue_is_empty_at_once_and_goes_on() {
    let world = World::new().await;
    world.put(&"old".repeat(5_000)).await;
    world.put_for("hidden", 60 * SECOND, None).await;
    let held = world.receive(1, 10 * SECOND).await.pop().unwrap();
    world.queues.clear(ACCOUNT, "q").await.unwrap();
    assert_eq!((world.peek(32).await.len(), world.count().await), (0, 0));
    assert_eq!(super::delete(&world, &held).await.unwrap_err().code(), "message-not-found");
    let new = world.put("new").await;
    assert_ne!(new.message.id, held.message.id);
    for _ in 0..3 {
        world.pass(60 * SECOND);
        world.sweep().await;
    }
    assert_eq!(texts(&world.receive(32, SECOND).await), ["new"]);
    assert_eq!(rows(&world).await, 2);
}

#[tokio::test]
async fn a_sweep_without_the_shape_leaves_messages_alone() {
    let world = World::new().await;
    world.put_for("a", 0, Some(SECOND)).await;
    world.pass(SECOND);
    // Another engine on the same stores, on which nobody has set up queues.
    let before = rows(&world).await;
    let shard = world.engine.shards().all().pop().unwrap();
    let catalog = world.engine.manager().catalog().clone();
    let shards = std::sync::Arc::new(lazuli_engine::Shards::default());
    let env = world.engine.env().clone();
    let manager = std::sync::Arc::new(lazuli_shardmap::manager::Manager::new(
        env.clone(),
        catalog,
        shards.clone(),
    ));
    let router =
        std::sync::Arc::new(lazuli_shardmap::router::Router::new(env.clone(), manager.clone()));
    let settings = lazuli_engine::Settings::default();
    let other = lazuli_engine::Engine::new(env, settings, router, manager, shards.clone());
    shards.insert(shard);
    assert_eq!(other.sweep_all().await.unwrap(), 0);
    assert_eq!(rows(&world).await, before);
    world.sweep().await;
    assert_eq!(rows(&world).await, 0);
}

#[tokio::test]
async fn an_empty_queue_is_polled_without_writing() {
    let world = World::new().await;
    let written = || {
        let shards = world.engine.shards().all();
        shards.iter().map(|shard| shard.stats().commits).sum::<u64>()
    };
    let before = written();
    for _ in 0..10 {
        world.pass(10 * SECOND);
        assert!(world.receive(32, SECOND).await.is_empty());
    }
    assert_eq!(written(), before);
    let put = world.put_for("x", SECOND, None).await;
    super::delete(&world, &put).await.unwrap();
    for _ in 0..10 {
        world.pass(10 * SECOND);
        assert!(world.receive(32, SECOND).await.is_empty());
    }
    assert_eq!(written(), before + 3, "one put, one deletion, and the head once");
    let new = NewMessage { content: Bytes::new(), hidden_ms: 0, lives_ms: Some(SECOND) };
    world.queues.put(ACCOUNT, "q", new).await.unwrap();
    assert_eq!(world.receive(32, SECOND).await.len(), 1);
}
