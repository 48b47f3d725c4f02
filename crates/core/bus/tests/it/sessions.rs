//! Sessions: one holder at a time, order, state, and the next one that waits.

use lazuli_bus_shape::{BusReason, NewMessage, Outcome, ReceiveMode, Settlement};

use crate::world::{SECOND, World, texts};

fn of(session: &str, body: &str) -> NewMessage {
    NewMessage { session_id: Some(session.into()), ..NewMessage::new(body.to_owned()) }
}

#[tokio::test]
async fn a_session_has_one_holder_who_gets_its_messages_in_order() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.requires_session = true).await;
    let none = world.bus.send(&queue, vec![NewMessage::new("x")]).await.unwrap_err();
    assert!(none.is(BusReason::SessionRequired));
    let messages = vec![of("s", "1"), of("t", "a"), of("s", "2"), of("s", "3")];
    world.bus.send(&queue, messages).await.unwrap();
    let lock = world.bus.accept_session(&queue, Some("s")).await.unwrap().unwrap();
    let taken = world.bus.accept_session(&queue, Some("s")).await.unwrap_err();
    assert!(taken.is(BusReason::SessionCannotBeLocked));
    let mode = ReceiveMode::PeekLock;
    let got = world.receive_by(&queue, 2, mode, Some(&lock)).await;
    assert_eq!(texts(&got), ["1", "2"]);
    // What is abandoned comes again at once, before what is behind it.
    let abandon = Outcome::Abandon { changes: Vec::new() };
    let settlement = Settlement { token: got[0].lock.unwrap().token, outcome: abandon };
    world.bus.settle(&queue, Some(&lock), vec![settlement]).await.unwrap().remove(0).unwrap();
    let again = world.receive_by(&queue, 9, mode, Some(&lock)).await;
    assert_eq!(texts(&again), ["1", "3"]);
    assert_eq!(again[0].message.delivery_count, 1);
    let without = world.bus.receiver(&queue, mode, None).take(1).await.unwrap_err();
    assert!(without.is(BusReason::SessionEntity));
    let next = world.bus.accept_session(&queue, None).await.unwrap().unwrap();
    assert_eq!(next.session_id, "t");
    assert_eq!(world.bus.accept_session(&queue, None).await.unwrap(), None);
}

#[tokio::test]
async fn what_a_holder_has_not_settled_comes_to_the_next_one() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.requires_session = true).await;
    world.bus.send(&queue, vec![of("s", "1"), of("s", "2"), of("s", "3")]).await.unwrap();
    let mode = ReceiveMode::PeekLock;
    let first = world.bus.accept_session(&queue, None).await.unwrap().unwrap();
    let got = world.receive_by(&queue, 9, mode, Some(&first)).await;
    world.complete(&queue, &got[1]).await;
    world.bus.release_session(&queue, &first).await.unwrap();
    let lost = world.settle(&queue, &got[0], Outcome::Complete).await.unwrap_err();
    assert!(lost.is(BusReason::SessionLockLost));
    let second = world.bus.accept_session(&queue, None).await.unwrap().unwrap();
    world.pass(30 * SECOND);
    let second = world.bus.renew_session(&queue, &second).await.unwrap();
    world.pass(40 * SECOND);
    assert_eq!(texts(&world.receive_by(&queue, 9, mode, Some(&second)).await), ["1", "3"]);
    // A lock that ends is the end of the hold, also when nobody asks.
    world.pass(70 * SECOND);
    let late = world.bus.renew_session(&queue, &second).await.unwrap_err();
    assert!(late.is(BusReason::SessionLockLost));
    world.sweep().await;
    let third = world.bus.accept_session(&queue, None).await.unwrap().unwrap();
    let got = world.receive_by(&queue, 9, mode, Some(&third)).await;
    assert_eq!(texts(&got), ["1", "3"]);
    assert_eq!(got[0].message.delivery_count, 2);
    for delivery in &got {
        world.complete(&queue, delivery).await;
    }
    world.bus.release_session(&queue, &third).await.unwrap();
    assert_eq!(world.bus.accept_session(&queue, None).await.unwrap(), None);
    world.pass(100 * SECOND);
    world.sweep().await;
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn the_state_of_a_session_outlives_its_messages() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.requires_session = true).await;
    let lock = world.bus.accept_session(&queue, Some("s")).await.unwrap().unwrap();
    assert_eq!(world.bus.session_state(&queue, &lock).await.unwrap(), None);
    world.bus.set_session_state(&queue, &lock, Some("state".into())).await.unwrap();
    world.bus.release_session(&queue, &lock).await.unwrap();
    let lost = world.bus.session_state(&queue, &lock).await.unwrap_err();
    assert!(lost.is(BusReason::SessionLockLost));
    let lock = world.bus.accept_session(&queue, Some("s")).await.unwrap().unwrap();
    let state = world.bus.session_state(&queue, &lock).await.unwrap();
    assert_eq!(state.as_deref(), Some(&b"state"[..]));
    world.bus.send(&queue, vec![of("a", "x"), of("b", "y"), of("b", "z")]).await.unwrap();
    assert_eq!(world.bus.sessions(&queue, None, 0, 10).await.unwrap(), ["a", "b"]);
    assert_eq!(world.bus.sessions(&queue, None, 1, 10).await.unwrap(), ["b"]);
    assert_eq!(world.bus.sessions(&queue, Some(0), 0, 10).await.unwrap(), ["s"]);
    let peeked = world.bus.peek(&queue, Some("b"), 0, 10).await.unwrap();
    assert_eq!(peeked.len(), 2);
    world.bus.set_session_state(&queue, &lock, None).await.unwrap();
    world.bus.release_session(&queue, &lock).await.unwrap();
    assert_eq!(world.bus.purge(&queue).await.unwrap(), 3);
    assert_eq!(world.bus.accept_session(&queue, None).await.unwrap(), None);
}

#[tokio::test]
async fn a_deferred_message_of_a_session_is_its_holders() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.requires_session = true).await;
    let number = world.bus.send(&queue, vec![of("s", "1")]).await.unwrap()[0];
    let mode = ReceiveMode::PeekLock;
    let lock = world.bus.accept_session(&queue, Some("s")).await.unwrap().unwrap();
    let got = world.receive_by(&queue, 9, mode, Some(&lock)).await;
    world.settle(&queue, &got[0], Outcome::Defer { changes: Vec::new() }).await.unwrap();
    let nobody = world.bus.receive_deferred(&queue, None, &[number], mode).await.unwrap_err();
    assert!(nobody.is(BusReason::SessionEntity));
    let other = world.bus.accept_session(&queue, Some("t")).await.unwrap().unwrap();
    let wrong = world.bus.receive_deferred(&queue, Some(&other), &[number], mode).await;
    assert!(wrong.unwrap_err().is(BusReason::MessageNotFound));
    let got = world.bus.receive_deferred(&queue, Some(&lock), &[number], mode).await.unwrap();
    world.complete(&queue, &got[0]).await;
    assert_eq!(world.bus.counts(&queue).await.unwrap().active, 0);
}
