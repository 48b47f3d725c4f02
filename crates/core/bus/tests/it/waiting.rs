//! Receivers that wait are woken by what is sent, comes due or is given back, without polling.

use std::time::Duration;

use lazuli_bus_shape::{Bus, BusSettings, NewMessage, ReceiveMode};

use crate::world::{Plain, World};

/// Longer than any of these tests should wait for anything.
const LONG: Duration = Duration::from_secs(20);

/// The outcome of what should not take long.
async fn within<T>(what: impl Future<Output = T>) -> T {
    let clock = lazuli_env::real::env().clock;
    tokio::select! {
        biased;
        outcome = what => outcome,
        () = clock.sleep(LONG) => panic!("nothing happened for {LONG:?}"),
    }
}

#[tokio::test]
async fn a_receiver_that_waits_is_woken_by_the_commit() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.fragments = 3).await;
    let mut receiver = world.bus.receiver(&queue, ReceiveMode::PeekLock, None);
    assert!(receiver.take(1).await.unwrap().is_empty());
    let waiting = async {
        loop {
            receiver.ready().await;
            let got = receiver.take(1).await.unwrap();
            if !got.is_empty() {
                return got;
            }
        }
    };
    // The receiver waits by the time when the message is sent: `join!` asks it first.
    let (got, _) = within(async { tokio::join!(biased; waiting, world.send(&queue, "x")) }).await;
    assert_eq!(got.len(), 1);
}

#[tokio::test]
async fn a_receiver_in_another_process_is_woken_by_its_poll() {
    let world = World::new().await;
    let queue = world.queue("q", |_| {}).await;
    // Another bus on the same engine shares no watches, as another process would not.
    let settings = BusSettings { poll: Duration::ZERO, ..BusSettings::default() };
    let other = Bus::new(world.engine.clone(), std::sync::Arc::new(Plain), settings);
    let mut receiver = other.receiver(&queue, ReceiveMode::PeekLock, None);
    assert!(receiver.take(1).await.unwrap().is_empty());
    world.send(&queue, "x").await;
    within(receiver.ready()).await;
    assert_eq!(receiver.take(1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_watcher_hears_of_sessions_that_get_messages() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.requires_session = true).await;
    let mut watcher = world.bus.watcher(&queue);
    assert!(watcher.changed(Duration::ZERO).await, "the first look is free");
    assert!(!watcher.changed(Duration::ZERO).await);
    let new = NewMessage { session_id: Some("s".into()), ..NewMessage::new("x") };
    world.bus.send(&queue, vec![new]).await.unwrap();
    assert!(watcher.changed(LONG).await);
    assert!(world.bus.accept_session(&queue, None).await.unwrap().is_some());
}
