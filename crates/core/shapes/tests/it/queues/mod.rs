//! Queues through the shape: order, holds, time to live, and what is left behind (Q1, Q2).

mod directory;
mod ends;
mod model;
mod world;

use bytes::Bytes;
use lazuli_engine::Kind;
use lazuli_shapes::queue::{Delivery, Update};

use world::{ACCOUNT, SECOND, World, text, texts};

#[tokio::test]
async fn messages_come_in_the_order_they_were_put() {
    let world = World::new().await;
    for content in ["a", "b", "c", "d"] {
        world.put(content).await;
    }
    assert_eq!(world.count().await, 4);
    assert_eq!(world.peek(3).await, ["a", "b", "c"]);
    assert_eq!(texts(&world.receive(1, SECOND).await), ["a"]);
    assert_eq!(texts(&world.receive(2, SECOND).await), ["b", "c"]);
    assert_eq!(world.peek(32).await, ["d"]);
    assert_eq!(texts(&world.receive(32, SECOND).await), ["d"]);
    assert!(world.receive(32, SECOND).await.is_empty());
    assert_eq!(world.count().await, 4, "those that are hidden count too");
}

#[tokio::test]
async fn a_message_says_what_is_known_about_it() {
    let world = World::new().await;
    let put = world.put_for("x", 0, Some(60 * SECOND)).await;
    assert_eq!((put.message.dequeues, put.hold.visible_ms), (0, put.message.inserted_ms));
    assert_eq!(put.message.expires_ms, Some(put.message.inserted_ms + 60 * SECOND));
    world.pass(5 * SECOND);
    let got = world.receive(1, 30 * SECOND).await.pop().unwrap();
    assert_eq!(got.message.id, put.message.id);
    assert_eq!((got.message.dequeues, got.message.inserted_ms), (1, put.message.inserted_ms));
    assert_eq!(got.message.expires_ms, put.message.expires_ms);
    assert_eq!(got.hold.visible_ms, put.message.inserted_ms + 35 * SECOND);
    world.pass(30 * SECOND);
    assert_eq!(world.receive(1, SECOND).await[0].message.dequeues, 2);
}

#[tokio::test]
async fn what_is_hidden_comes_when_its_time_has_come_and_in_that_order() {
    let world = World::new().await;
    world.put_for("late", 20 * SECOND, None).await;
    world.put_for("soon", 10 * SECOND, None).await;
    world.put("now").await;
    assert_eq!(texts(&world.receive(32, 15 * SECOND).await), ["now"]);
    world.pass(10 * SECOND - 1);
    assert!(world.receive(32, SECOND).await.is_empty());
    world.pass(1);
    assert_eq!(world.peek(32).await, ["soon"]);
    world.pass(10 * SECOND);
    assert_eq!(texts(&world.receive(32, SECOND).await), ["soon", "now", "late"]);
}

#[tokio::test]
async fn a_receipt_is_good_until_somebody_else_gets_the_message() {
    let world = World::new().await;
    world.put("a").await;
    let first = world.receive(1, 10 * SECOND).await.pop().unwrap();
    world.pass(10 * SECOND);
    let second = world.receive(1, 10 * SECOND).await.pop().unwrap();
    let late = delete(&world, &first).await.unwrap_err();
    assert_eq!((late.kind(), late.code()), (Kind::Precondition, "receipt-mismatch"));
    let update = Update { hidden_ms: 0, content: None };
    let id = first.message.id;
    let late = world.queues.update(ACCOUNT, "q", id, first.hold.receipt, update).await;
    assert_eq!(late.unwrap_err().code(), "receipt-mismatch");
    // Its time is over, and nobody has got it since.
    world.pass(10 * SECOND);
    delete(&world, &second).await.unwrap();
    assert_eq!(delete(&world, &second).await.unwrap_err().code(), "message-not-found");
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn a_receipt_is_good_for_its_own_message_only() {
    let world = World::new().await;
    for content in ["a", "b"] {
        world.put(content).await;
    }
    let both = world.receive(2, SECOND).await;
    let (id, receipt) = (both[0].message.id, both[1].hold.receipt);
    let wrong = world.queues.delete_message(ACCOUNT, "q", id, receipt).await.unwrap_err();
    assert_eq!(wrong.code(), "receipt-mismatch");
    world.queues.create(ACCOUNT, "other", Vec::new()).await.unwrap();
    let receipt = both[0].hold.receipt;
    let wrong = world.queues.delete_message(ACCOUNT, "other", id, receipt).await.unwrap_err();
    assert_eq!(wrong.code(), "message-not-found");
}

#[tokio::test]
async fn the_receipt_of_a_put_is_one_too() {
    let world = World::new().await;
    let put = world.put("a").await;
    delete(&world, &put).await.unwrap();
    assert!(world.receive(1, SECOND).await.is_empty());
}

#[tokio::test]
async fn an_update_changes_what_a_message_says_and_when_it_comes() {
    let world = World::new().await;
    world.put("a").await;
    let long = "long".repeat(10_000);
    let mut got = world.receive(1, 10 * SECOND).await.pop().unwrap();
    // From a short one to a long one, which is kept apart, to another long one, and back.
    for content in [Some(long.as_str()), None, Some("b"), None] {
        let update = Update {
            hidden_ms: 20 * SECOND,
            content: content.map(|content| Bytes::copy_from_slice(content.as_bytes())),
        };
        let (id, old) = (got.message.id, got.hold.receipt);
        let hold = world.queues.update(ACCOUNT, "q", id, old, update).await.unwrap();
        assert_ne!(hold.receipt, old);
        world.pass(20 * SECOND - 1);
        assert!(world.receive(1, SECOND).await.is_empty());
        world.pass(1);
        let wanted = content.map_or_else(|| text(&got.message.content), str::to_owned);
        assert_eq!(world.peek(1).await[0], wanted);
        got = world.receive(1, 10 * SECOND).await.pop().unwrap();
        assert_eq!(text(&got.message.content), wanted);
    }
    assert_eq!(got.message.dequeues, 5);
    delete(&world, &got).await.unwrap();
}

#[tokio::test]
async fn a_message_given_back_at_once_is_there_at_once() {
    let world = World::new().await;
    for content in ["a", "b", "c"] {
        world.put(content).await;
    }
    // All in one millisecond: the head of the queue must come back to where the message now stands.
    let all = world.receive(3, 10 * SECOND).await;
    let update = Update { hidden_ms: 0, content: None };
    let hold = all[0].hold.receipt;
    world.queues.update(ACCOUNT, "q", all[0].message.id, hold, update).await.unwrap();
    assert_eq!(world.peek(3).await, ["a"]);
    assert_eq!(texts(&world.receive(3, 0).await), ["a"]);
    assert_eq!(texts(&world.receive(3, 0).await), ["a"]);
}

#[tokio::test]
async fn long_messages_are_whole_however_often_they_are_received() {
    let world = World::new().await;
    let contents: Vec<String> = (0..40).map(|n| format!("{n}").repeat(2_000)).collect();
    for content in &contents {
        world.put(content).await;
    }
    for _ in 0..3 {
        assert_eq!(texts(&world.receive(32, SECOND).await), contents[..32]);
        assert_eq!(texts(&world.receive(32, SECOND).await), contents[32..]);
        world.pass(SECOND);
    }
}

pub(crate) async fn delete(world: &World, delivery: &Delivery) -> lazuli_engine::Result<()> {
    let (id, receipt) = (delivery.message.id, delivery.hold.receipt);
    world.queues.delete_message(ACCOUNT, "q", id, receipt).await
}
