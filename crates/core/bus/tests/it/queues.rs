//! Messages of one queue: locks, settlements, dead letters, schedules, duplicates, time to live.

use lazuli_bus_shape::filter::Value;
use lazuli_bus_shape::{
    BusReason, DEAD_LETTER_REASON, LockToken, MessageState, NewMessage, Outcome, Override,
    PropertyName, ReceiveMode, Settlement, Status,
};
use lazuli_env::SplitMix64;

use crate::world::{NS, SECOND, World, texts};

fn reason(delivery: &lazuli_bus_shape::Delivery) -> Option<Value> {
    let name = PropertyName::User(DEAD_LETTER_REASON.to_owned());
    delivery.message.overrides.iter().find(|it| it.name == name)?.value.clone()
}

#[tokio::test]
async fn messages_come_in_order_and_are_gone_once_completed() {
    let world = World::new().await;
    let queue = world.queue("q", |_| {}).await;
    for body in ["a", "b", "c"] {
        world.send(&queue, body).await;
    }
    let got = world.receive(&queue, 2).await;
    assert_eq!(texts(&got), ["a", "b"]);
    assert_eq!(got[0].message.delivery_count, 0);
    assert_eq!(texts(&world.receive(&queue, 9).await), ["c"]);
    assert!(world.receive(&queue, 9).await.is_empty());
    for delivery in &got {
        world.complete(&queue, delivery).await;
    }
    let again = world.settle(&queue, &got[0], Outcome::Complete).await.unwrap_err();
    assert!(again.is(BusReason::MessageLockLost));
    assert_eq!(world.bus.counts(&queue).await.unwrap().active, 1);
}

#[tokio::test]
async fn nothing_is_left_of_messages_that_are_gone() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.requires_duplicate_detection = true).await;
    for number in 0..20 {
        let body = if number % 2 == 0 { "x".to_owned() } else { "y".repeat(5_000) };
        let mut new = NewMessage::new(body);
        new.message_id = Some(number.to_string());
        new.lives_ms = (number % 3 == 0).then_some(100 * SECOND);
        world.bus.send(&queue, vec![new]).await.unwrap();
    }
    for (nth, delivery) in world.receive(&queue, 20).await.iter().enumerate() {
        match nth % 4 {
            0 => world.complete(&queue, delivery).await,
            1 => world.abandon(&queue, delivery).await,
            2 => {
                let defer = Outcome::Defer { changes: Vec::new() };
                world.settle(&queue, delivery, defer).await.unwrap();
                let number = delivery.message.sequence_number;
                let mode = ReceiveMode::ReceiveAndDelete;
                world.bus.receive_deferred(&queue, None, &[number], mode).await.unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(world.drain(&queue).await.len(), 5);
    world.pass(61 * SECOND);
    assert_eq!(world.drain(&queue).await.len(), 5);
    // The window of duplicates and the timers of the locks are over.
    world.pass(700 * SECOND);
    world.sweep().await;
    assert_eq!(world.rows().await, 0);
    assert_eq!(world.bus.counts(&queue).await.unwrap(), Default::default());
}

#[tokio::test]
async fn a_lock_that_ends_gives_the_message_back_in_its_place() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.lock_duration_ms = 10 * SECOND).await;
    for body in ["a", "b", "c"] {
        world.send(&queue, body).await;
    }
    let first = world.receive(&queue, 2).await;
    world.pass(5 * SECOND);
    let tokens = [first[1].lock.unwrap().token];
    let until = world.bus.renew(&queue, None, &tokens).await.unwrap().remove(0).unwrap();
    assert!(until > world.now() + 9 * SECOND);
    world.pass(6 * SECOND);
    let lost = world.settle(&queue, &first[0], Outcome::Complete).await.unwrap_err();
    assert!(lost.is(BusReason::MessageLockLost));
    let second = world.receive(&queue, 9).await;
    assert_eq!(texts(&second), ["a", "c"]);
    assert_eq!(second[0].message.delivery_count, 1);
    world.complete(&queue, &first[1]).await;
    let stale = world.bus.renew(&queue, None, &[first[0].lock.unwrap().token]).await.unwrap();
    assert!(stale[0].as_ref().unwrap_err().is(BusReason::MessageLockLost));
}

#[tokio::test]
async fn a_message_that_is_delivered_too_often_is_a_dead_letter() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.max_delivery_count = 3).await;
    world.send(&queue, "x").await;
    for count in 0..3 {
        let got = world.receive(&queue, 1).await;
        assert_eq!(got[0].message.delivery_count, count);
        // To release a message is not to have had it.
        if count == 0 {
            world.settle(&queue, &got[0], Outcome::Release).await.unwrap();
            let got = world.receive(&queue, 1).await;
            assert_eq!(got[0].message.delivery_count, 0);
            world.abandon(&queue, &got[0]).await;
        } else {
            world.abandon(&queue, &got[0]).await;
        }
    }
    assert!(world.receive(&queue, 1).await.is_empty());
    let dead = world.open("q/$DeadLetterQueue").await;
    let got = world.receive(&dead, 1).await;
    assert_eq!(reason(&got[0]), Some(Value::text("MaxDeliveryCountExceeded")));
    assert_eq!(got[0].message.dead_letter_source.as_deref(), Some("q"));
    let counts = world.bus.counts(&queue).await.unwrap();
    assert_eq!((counts.active, counts.dead_letter), (0, 1));
    world.complete(&dead, &got[0]).await;
    assert_eq!(world.bus.counts(&queue).await.unwrap().dead_letter, 0);
}

#[tokio::test]
async fn locks_end_and_letters_die_also_when_nobody_receives() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.max_delivery_count = 1).await;
    world.send(&queue, "x").await;
    world.receive(&queue, 1).await;
    world.pass(70 * SECOND);
    world.sweep().await;
    assert_eq!(world.bus.counts(&queue).await.unwrap().dead_letter, 1);
}

#[tokio::test]
async fn a_receiver_makes_a_dead_letter_with_its_reasons_and_changes() {
    let world = World::new().await;
    let queue = world.queue("q", |_| {}).await;
    world.send(&queue, "x").await;
    let got = world.receive(&queue, 1).await;
    let change =
        Override { name: PropertyName::User("why".to_owned()), value: Some(Value::Integer(5)) };
    let outcome = Outcome::DeadLetter {
        reason: Some("bad".to_owned()),
        description: Some("very".to_owned()),
        changes: vec![change.clone()],
    };
    world.settle(&queue, &got[0], outcome).await.unwrap();
    let dead = world.open("q/$deadletterqueue").await;
    let got = world.receive(&dead, 1).await;
    assert_eq!(reason(&got[0]), Some(Value::text("bad")));
    assert!(got[0].message.overrides.contains(&change));
}

#[tokio::test]
async fn a_deferred_message_is_received_by_its_number_only() {
    let world = World::new().await;
    let queue = world.queue("q", |_| {}).await;
    let number = world.send(&queue, "x").await;
    let got = world.receive(&queue, 1).await;
    world.settle(&queue, &got[0], Outcome::Defer { changes: Vec::new() }).await.unwrap();
    world.pass(100 * SECOND);
    assert!(world.receive(&queue, 1).await.is_empty());
    let peeked = world.bus.peek(&queue, None, 0, 10).await.unwrap();
    assert_eq!(peeked[0].state, MessageState::Deferred);
    let mode = ReceiveMode::PeekLock;
    let got = world.bus.receive_deferred(&queue, None, &[number], mode).await.unwrap();
    let taken = world.bus.receive_deferred(&queue, None, &[number], mode).await.unwrap_err();
    assert!(taken.is(BusReason::MessageNotFound));
    world.abandon(&queue, &got[0]).await;
    assert!(world.receive(&queue, 1).await.is_empty(), "it is deferred still");
    let got = world.bus.receive_deferred(&queue, None, &[number], mode).await.unwrap();
    world.complete(&queue, &got[0]).await;
    assert_eq!(world.bus.counts(&queue).await.unwrap().active, 0);
}

#[tokio::test]
async fn a_scheduled_message_comes_when_it_is_due_or_is_cancelled() {
    let world = World::new().await;
    let queue = world.queue("q", |_| {}).await;
    let mut numbers = Vec::new();
    for (body, after) in [("late", 20), ("soon", 10), ("never", 10)] {
        let mut new = NewMessage::new(body);
        new.scheduled_ms = Some(world.now() + after * SECOND);
        numbers.extend(world.bus.send(&queue, vec![new]).await.unwrap());
    }
    world.send(&queue, "now").await;
    assert_eq!(world.bus.counts(&queue).await.unwrap().scheduled, 3);
    let states: Vec<_> = world.bus.peek(&queue, None, 0, 10).await.unwrap();
    assert_eq!(states.iter().filter(|it| it.state == MessageState::Scheduled).count(), 3);
    world.bus.cancel_scheduled(&queue, &numbers[2..]).await.unwrap();
    let gone = world.bus.cancel_scheduled(&queue, &numbers[2..]).await.unwrap_err();
    assert!(gone.is(BusReason::MessageNotFound));
    assert_eq!(world.drain(&queue).await, ["now"]);
    world.pass(10 * SECOND);
    assert_eq!(world.drain(&queue).await, ["soon"]);
    world.pass(12 * SECOND);
    // The sweep activates what nobody asks for.
    world.sweep().await;
    assert_eq!(world.bus.counts(&queue).await.unwrap().active, 1);
    assert_eq!(world.drain(&queue).await, ["late"]);
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn duplicates_are_suppressed_within_the_window() {
    let world = World::new().await;
    let queue = world
        .queue("q", |it| {
            it.requires_duplicate_detection = true;
            it.duplicate_window_ms = 30 * SECOND;
        })
        .await;
    let new = |id: &str| NewMessage { message_id: Some(id.into()), ..NewMessage::new("x") };
    let first = world.bus.send(&queue, vec![new("a"), new("b"), new("a")]).await.unwrap();
    assert_eq!(first[0], first[2]);
    world.drain(&queue).await;
    world.pass(29 * SECOND);
    world.bus.send(&queue, vec![new("a")]).await.unwrap();
    assert!(world.drain(&queue).await.is_empty());
    world.pass(SECOND);
    world.bus.send(&queue, vec![new("a")]).await.unwrap();
    assert_eq!(world.drain(&queue).await.len(), 1);
}

#[tokio::test]
async fn an_expired_message_is_gone_or_dead_but_not_while_it_is_held() {
    let world = World::new().await;
    let plain = world.queue("plain", |_| {}).await;
    let keeps = world.queue("keeps", |it| it.dead_letter_on_expiration = true).await;
    let short = || NewMessage { lives_ms: Some(10 * SECOND), ..NewMessage::new("x") };
    for queue in [&plain, &keeps] {
        world.bus.send(queue, vec![short(), short()]).await.unwrap();
        let held = world.receive(queue, 1).await;
        world.pass(11 * SECOND);
        assert!(world.receive(queue, 9).await.is_empty());
        world.sweep().await;
        world.complete(queue, &held[0]).await;
    }
    assert_eq!(world.bus.counts(&plain).await.unwrap(), Default::default());
    let counts = world.bus.counts(&keeps).await.unwrap();
    assert_eq!((counts.active, counts.dead_letter), (0, 1));
    let dead = world.open("keeps/$DeadLetterQueue").await;
    let got = world.receive(&dead, 1).await;
    assert_eq!(reason(&got[0]), Some(Value::text("TTLExpiredException")));
    // What expires while it is held, and is then given back, is dead too.
    world.bus.send(&keeps, vec![short()]).await.unwrap();
    let held = world.receive(&keeps, 1).await;
    world.pass(11 * SECOND);
    world.abandon(&keeps, &held[0]).await;
    assert_eq!(world.bus.counts(&keeps).await.unwrap().dead_letter, 2);
}

#[tokio::test]
async fn the_status_and_the_size_of_an_entity_are_kept_to() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.max_size_megabytes = 1).await;
    let big = || NewMessage::new("x".repeat(600_000));
    world.bus.send(&queue, vec![big()]).await.unwrap();
    let full = world.bus.send(&queue, vec![big()]).await.unwrap_err();
    assert!(full.is(BusReason::QuotaExceeded));
    world.drain(&queue).await;
    world.bus.send(&queue, vec![big()]).await.unwrap();
    let entity = world.bus.entity(NS, "q").await.unwrap();
    for (status, sends, receives) in [
        (Status::SendDisabled, false, true),
        (Status::ReceiveDisabled, true, false),
        (Status::Disabled, false, false),
        (Status::Active, true, true),
    ] {
        let mut description = entity.description.clone();
        description.status = status;
        let kind = entity.kind;
        world.bus.update_entity(NS, kind, "q", description, None).await.unwrap();
        let sent = world.bus.send(&queue, vec![NewMessage::new("y")]).await;
        assert_eq!(sent.is_ok(), sends, "{status:?}");
        let mut receiver = world.bus.receiver(&queue, ReceiveMode::PeekLock, None);
        let received = receiver.take(1).await;
        assert_eq!(received.is_ok(), receives, "{status:?}");
        if let Err(error) = received {
            assert!(error.is(BusReason::EntityDisabled));
        }
    }
}

#[tokio::test]
async fn messages_are_deleted_in_bulk_but_not_those_that_are_held() {
    let world = World::new().await;
    let queue = world.queue("q", |_| {}).await;
    for body in ["a", "b", "c"] {
        world.send(&queue, body).await;
    }
    let held = world.receive(&queue, 1).await;
    world.pass(SECOND);
    let middle = world.now();
    world.pass(SECOND);
    world.send(&queue, "d").await;
    assert_eq!(world.bus.delete_messages(&queue, None, middle, 100).await.unwrap(), 2);
    assert_eq!(world.bus.counts(&queue).await.unwrap().active, 2);
    assert_eq!(world.bus.purge(&queue).await.unwrap(), 1);
    world.complete(&queue, &held[0]).await;
    assert_eq!(world.bus.counts(&queue).await.unwrap(), Default::default());
}

#[tokio::test]
async fn a_transaction_is_all_or_nothing() {
    use lazuli_bus_shape::BusOperation;
    let world = World::new().await;
    let (a, b) = (world.queue("a", |_| {}).await, world.queue("b", |_| {}).await);
    world.send(&a, "x").await;
    let got = world.receive(&a, 1).await;
    let token = got[0].lock.unwrap().token;
    let send = |to: &_, body: &str| BusOperation::Send {
        to: Clone::clone(to),
        message: NewMessage::new(body.to_owned()),
    };
    let complete = |token| BusOperation::Settle {
        from: a.clone(),
        session: None,
        settlement: Settlement { token, outcome: Outcome::Complete },
    };
    let unknown = LockToken::from_bytes([0; 16]);
    let refused = world.bus.transact(vec![send(&b, "y"), complete(unknown)]).await.unwrap_err();
    assert!(refused.is(BusReason::MessageLockLost));
    assert_eq!(refused.position(), Some(1));
    assert_eq!(world.bus.counts(&b).await.unwrap().active, 0);
    world.bus.transact(vec![send(&b, "y"), complete(token), send(&a, "z")]).await.unwrap();
    assert_eq!(world.drain(&b).await, ["y"]);
    assert_eq!(world.drain(&a).await, ["z"]);
}

/// Random operations against a plain model: whatever happens, no message is lost, doubled or out of order.
#[tokio::test]
async fn random_operations_agree_with_a_plain_model() {
    for seed in 0..20 {
        let world = World::new().await;
        let queue = world.queue("q", |it| it.max_delivery_count = 1_000).await;
        let mut random = SplitMix64::new(seed);
        let (mut waiting, mut held, mut sent) = (std::collections::BTreeSet::new(), vec![], 0);
        for _ in 0..300 {
            match random.next_u64() % 5 {
                0 | 1 => {
                    let body = if sent % 7 == 0 { "z".repeat(5_000) } else { String::new() };
                    world.send(&queue, &format!("{sent:06}{body}")).await;
                    waiting.insert(sent);
                    sent += 1;
                }
                2 => {
                    let most = 1 + (random.next_u64() % 4) as usize;
                    for delivery in world.receive(&queue, most).await {
                        let body = String::from_utf8(delivery.message.body.to_vec()).unwrap();
                        let number: usize = body[..6].parse().unwrap();
                        assert_eq!(waiting.pop_first(), Some(number), "seed {seed}");
                        held.push((number, delivery));
                    }
                }
                3 if !held.is_empty() => {
                    let at = random.next_u64() as usize % held.len();
                    let (_, delivery) = held.swap_remove(at);
                    world.complete(&queue, &delivery).await;
                }
                _ if !held.is_empty() => {
                    let at = random.next_u64() as usize % held.len();
                    let (number, delivery) = held.swap_remove(at);
                    world.abandon(&queue, &delivery).await;
                    waiting.insert(number);
                }
                _ => {}
            }
            let active = world.bus.counts(&queue).await.unwrap().active;
            assert_eq!(active as usize, waiting.len() + held.len(), "seed {seed}");
        }
    }
}

/// All of it in one transaction would be more than one takes, and would be so for ever.
#[tokio::test]
async fn locks_of_very_many_messages_that_end_together_block_nothing() {
    const MESSAGES: usize = 10_000;
    for is_swept in [false, true] {
        let world = World::new().await;
        let queue = world.queue("q", |it| it.max_delivery_count = 1).await;
        let body = "x".repeat(4_000);
        for _ in 0..MESSAGES / 1_000 {
            let messages = vec![NewMessage::new(body.clone()); 1_000];
            world.bus.send(&queue, messages).await.unwrap();
        }
        let mut held = 0;
        while held < MESSAGES {
            held += world.receive(&queue, 1_000).await.len();
        }
        world.pass(10 * 60 * SECOND);
        let buried = async || world.bus.counts(&queue).await.unwrap().dead_letter as usize;
        if is_swept {
            world.sweep().await;
        } else {
            let mut before = buried().await;
            while before < MESSAGES {
                assert!(world.receive(&queue, 1).await.is_empty());
                let now = buried().await;
                assert!(now > before);
                before = now;
            }
        }
        assert_eq!(buried().await, MESSAGES);
        assert_eq!(world.bus.counts(&queue).await.unwrap().active, 0);
    }
}
