//! Forwarding: to queues and topics, of dead letters, once, and what cannot be delivered.

use lazuli_bus_shape::filter::Filter;
use lazuli_bus_shape::{BusReason, Description, EntityKind, NewMessage, Outcome, Status};

use crate::world::{NS, SECOND, World};

#[tokio::test]
async fn messages_are_forwarded_in_order_through_a_chain() {
    let world = World::on(2).await;
    let last = world.queue("last", |_| {}).await;
    world.topic("middle").await;
    let forward = |to: &str| Some(to.to_owned());
    let subscription = Description { forward_to: forward("last"), ..Description::subscription() };
    world.bus.create_subscription(NS, "middle", "s", subscription, None).await.unwrap();
    let first = world.queue("first", |it| it.forward_to = forward("Middle")).await;
    for number in 0..250 {
        let body = if number % 50 == 0 {
            format!("{number:03}{}", "z".repeat(9_000))
        } else {
            format!("{number:03}")
        };
        world.send(&first, &body).await;
    }
    assert_eq!(world.bus.counts(&first).await.unwrap().transfer, 250);
    for _ in 0..3 {
        world.bus.forward_wanted().await.unwrap();
    }
    assert_eq!(world.bus.counts(&first).await.unwrap(), Default::default());
    let got = world.drain(&last).await;
    assert_eq!(got.len(), 250);
    assert!(got.is_sorted());
    world.pass(3 * SECOND);
    world.sweep().await;
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn loops_and_missing_targets_are_refused() {
    let world = World::new().await;
    let create = |name: &str, to: &str| {
        let description = Description { forward_to: Some(to.to_owned()), ..Description::queue() };
        let (bus, name) = (world.bus.clone(), name.to_owned());
        async move { bus.create_entity(NS, EntityKind::Queue, &name, description).await }
    };
    assert!(create("a", "a").await.unwrap_err().is(BusReason::ForwardLoop));
    assert!(create("a", "b").await.unwrap_err().is(BusReason::BadProperty));
    world.queue("c", |_| {}).await;
    create("b", "c").await.unwrap();
    create("a", "B").await.unwrap();
    let back = Description { forward_to: Some("a".to_owned()), ..Description::queue() };
    let error = world.bus.update_entity(NS, EntityKind::Queue, "c", back, None).await;
    assert!(error.unwrap_err().is(BusReason::ForwardLoop));
}

#[tokio::test]
async fn dead_letters_are_forwarded_and_what_has_no_target_dies_on_its_way() {
    let world = World::new().await;
    let graves = world.queue("graves", |_| {}).await;
    let queue = world.queue("q", |it| it.forward_dead_letters_to = Some("graves".to_owned())).await;
    world.send(&queue, "x").await;
    let got = world.receive(&queue, 1).await;
    let outcome = Outcome::DeadLetter { reason: None, description: None, changes: Vec::new() };
    world.settle(&queue, &got[0], outcome.clone()).await.unwrap();
    world.bus.forward_wanted().await.unwrap();
    let got = world.receive(&graves, 1).await;
    assert_eq!(got[0].message.dead_letter_source.as_deref(), Some("q"));
    // The target goes: what is on its way then is a transfer dead letter.
    world.bus.delete_entity(NS, None, "graves").await.unwrap();
    world.send(&queue, "y").await;
    let got = world.receive(&queue, 1).await;
    world.settle(&queue, &got[0], outcome).await.unwrap();
    world.bus.forward_wanted().await.unwrap();
    let counts = world.bus.counts(&queue).await.unwrap();
    assert_eq!((counts.transfer, counts.transfer_dead_letter), (0, 1));
    let dead = world.open("q/$Transfer/$DeadLetterQueue").await;
    assert_eq!(world.drain(&dead).await, ["y"]);
}

#[tokio::test]
async fn what_cannot_be_forwarded_now_is_forwarded_later() {
    let world = World::new().await;
    world.queue("target", |it| it.status = Status::SendDisabled).await;
    let queue = world.queue("q", |it| it.forward_to = Some("target".to_owned())).await;
    world.send(&queue, "x").await;
    world.bus.forward_wanted().await.unwrap();
    assert_eq!(world.bus.counts(&queue).await.unwrap().transfer, 1);
    let kind = EntityKind::Queue;
    world.bus.update_entity(NS, kind, "target", Description::queue(), None).await.unwrap();
    world.bus.forward_wanted().await.unwrap();
    assert_eq!(world.bus.counts(&queue).await.unwrap().transfer, 1, "nobody asked for it yet");
    world.pass(3 * SECOND);
    world.sweep().await;
    world.bus.forward_wanted().await.unwrap();
    assert_eq!(world.bus.counts(&queue).await.unwrap().transfer, 0);
    let target = world.open("target").await;
    assert_eq!(world.drain(&target).await, ["x"]);
}

#[tokio::test]
async fn subscriptions_forward_only_what_passes_their_rules() {
    let world = World::new().await;
    let topic = world.topic("t").await;
    let target = world.queue("target", |_| {}).await;
    let description =
        Description { forward_to: Some("target".into()), ..Description::subscription() };
    let rule = lazuli_bus_shape::Rule {
        name: "r".to_owned(),
        filter: Filter::sql("n = 1").unwrap(),
        action: None,
        created_ms: 0,
    };
    world.bus.create_subscription(NS, "t", "s", description, Some(rule)).await.unwrap();
    world
        .bus
        .send(&topic, vec![NewMessage::new("l|n=1|x"), NewMessage::new("l|n=2|y")])
        .await
        .unwrap();
    world.bus.forward_wanted().await.unwrap();
    assert_eq!(world.drain(&target).await, ["l|n=1|x"]);
}
