//! Partitioned entities: assignment, order by key, numbers, fragments that are down or move.

use std::collections::BTreeSet;

use lazuli_bus_shape::{
    BusOperation, BusReason, NewMessage, Outcome, ReceiveMode, Settlement, fragment_of,
};
use lazuli_engine::{KeyRange, Known, PartitionState};

use crate::world::{NS, World};

fn keyed(key: &str, body: &str) -> NewMessage {
    NewMessage { partition_key: Some(key.into()), ..NewMessage::new(body.to_owned()) }
}

#[tokio::test]
async fn messages_of_one_key_are_in_one_fragment_and_others_take_turns() {
    let world = World::on(2).await;
    let queue = world.queue("q", |it| it.fragments = 4).await;
    let mut seen = BTreeSet::new();
    for _ in 0..8 {
        seen.insert(fragment_of(world.send(&queue, "x").await));
    }
    assert_eq!(seen.len(), 4);
    for key in ["a", "b", "c"] {
        let messages: Vec<_> = (0..5).map(|n| keyed(key, &format!("{key}{n}"))).collect();
        let numbers = world.bus.send(&queue, messages).await.unwrap();
        let fragments: BTreeSet<u16> = numbers.iter().map(|it| fragment_of(*it)).collect();
        assert_eq!(fragments.len(), 1);
        assert!(numbers.is_sorted());
    }
    let mut both = keyed("a", "x");
    both.session_id = Some("b".to_owned());
    let refused = world.bus.send(&queue, vec![both]).await.unwrap_err();
    assert!(refused.is(BusReason::PartitionKeyMismatch));
    let peeked = world.bus.peek(&queue, None, 0, 100).await.unwrap();
    assert_eq!(peeked.len(), 23);
    assert!(peeked.is_sorted_by_key(|message| message.sequence_number));
    let got = world.drain(&queue).await;
    for key in ["a", "b", "c"] {
        let of_key: Vec<&String> = got.iter().filter(|it| it.starts_with(key)).collect();
        assert_eq!(of_key.len(), 5);
        assert!(of_key.is_sorted());
    }
    assert_eq!(got.len(), 23);
}

#[tokio::test]
async fn duplicates_find_the_fragment_of_their_id() {
    let world = World::new().await;
    let queue =
        world.queue("q", |it| (it.fragments, it.requires_duplicate_detection) = (8, true)).await;
    for _ in 0..10 {
        let new = NewMessage { message_id: Some("same".into()), ..NewMessage::new("x") };
        world.bus.send(&queue, vec![new]).await.unwrap();
    }
    assert_eq!(world.drain(&queue).await.len(), 1);
}

#[tokio::test]
async fn messages_without_a_key_pass_over_a_fragment_that_is_down() {
    let world = World::new().await;
    let queue = world.queue("q", |it| it.fragments = 3).await;
    let catalog = world.engine.manager().catalog();
    let id = catalog.container_named(&format!("bus/{NS}")).await.unwrap().id;
    let entries = catalog.partitions_in(id, &KeyRange::all(), 10).await.unwrap();
    assert_eq!(entries.len(), 3, "each fragment has a partition of its own");
    let known = Known::from(&entries[1].partition);
    let off = world.engine.manager().set_state(known, PartitionState::Offline).await.unwrap();
    for _ in 0..9 {
        assert_ne!(fragment_of(world.send(&queue, "x").await), 1);
    }
    let mut failures = 0;
    for number in 0..30 {
        let sent = world.bus.send(&queue, vec![keyed(&number.to_string(), "y")]).await;
        failures += usize::from(sent.is_err());
    }
    assert!((1..30).contains(&failures), "{failures} of 30 keys are of the fragment");
    assert_eq!(world.drain(&queue).await.len(), 39 - failures);
    let known = Known::from(&off);
    world.engine.manager().set_state(known, PartitionState::Online).await.unwrap();
    assert!(world.drain(&queue).await.is_empty());
}

#[tokio::test]
async fn a_transaction_on_fragments_needs_one_key() {
    let world = World::on(3).await;
    let queue = world.queue("q", |it| it.fragments = 8).await;
    let send = |key: Option<&str>| {
        let message = match key {
            Some(key) => keyed(key, "x"),
            None => NewMessage::new("x"),
        };
        BusOperation::Send { to: queue.clone(), message }
    };
    for refused in [vec![send(None)], vec![send(Some("a")), send(Some("b"))]] {
        let error = world.bus.transact(refused).await.unwrap_err();
        assert!(error.is(BusReason::TransactionKey));
    }
    world.bus.transact(vec![send(Some("a")), send(Some("a"))]).await.unwrap();
    assert_eq!(world.bus.counts(&queue).await.unwrap().active, 2);
    // Entities that are on different shards cannot be in one transaction.
    let mut spans = 0;
    for number in 0..6 {
        let other = world.queue(&format!("other-{number}"), |_| {}).await;
        let message = NewMessage::new("y");
        let both = vec![send(Some("a")), BusOperation::Send { to: other, message }];
        match world.bus.transact(both).await {
            Ok(()) => {}
            Err(error) => {
                assert!(error.is(BusReason::TransactionSpans), "{error}");
                spans += 1;
            }
        }
    }
    assert!((1..6).contains(&spans), "{spans} of 6");
}

#[tokio::test]
async fn a_fragment_goes_on_where_it_is_moved_to() {
    let world = World::on(2).await;
    let queue = world.queue("q", |_| {}).await;
    for number in 0..50 {
        world.send(&queue, &number.to_string()).await;
    }
    let held = world.receive(&queue, 10).await;
    let catalog = world.engine.manager().catalog();
    let id = catalog.container_named(&format!("bus/{NS}")).await.unwrap().id;
    let entries = catalog.partitions_in(id, &KeyRange::all(), 10).await.unwrap();
    let partition = &entries[0].partition;
    let shards = catalog.shards().await.unwrap();
    let target = shards.iter().find(|it| it.id != partition.shard).unwrap().id;
    world.engine.move_partition(partition.id, target, Default::default()).await.unwrap();
    while !catalog.moves().await.unwrap().is_empty() {
        world.engine.run_moves().await.unwrap();
    }
    for delivery in &held {
        let token = delivery.lock.unwrap().token;
        let settlement = Settlement { token, outcome: Outcome::Complete };
        world.bus.settle(&queue, None, vec![settlement]).await.unwrap().remove(0).unwrap();
    }
    let number = world.send(&queue, "last").await;
    assert!(number > held[9].message.sequence_number);
    let rest = world.receive_by(&queue, 100, ReceiveMode::ReceiveAndDelete, None).await;
    assert_eq!(rest.len(), 41);
}
