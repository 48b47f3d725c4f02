//! Transactions, locks that are lost, and credit that is drained: what only some clients do.

use bytes::Bytes;
use lazuli_amqp::performative::{Attach, Performative, SENDER};
use lazuli_amqp::transaction::Request;
use lazuli_amqp::{DeliveryState, Map, Terminus};
use lazuli_bus_shape::Address;

use crate::world::{NAMESPACE, Talk, World, text};

const COORDINATOR: u32 = 9;

async fn declare(talk: &mut Talk, id: u32) -> Bytes {
    match talk.coordinate(COORDINATOR, id, &Request::Declare).await {
        DeliveryState::Declared(transaction) => transaction,
        other => panic!("{other:?}"),
    }
}

fn within(transaction: &Bytes, outcome: Option<DeliveryState>) -> DeliveryState {
    let outcome = outcome.map(Box::new);
    DeliveryState::Transactional { transaction: transaction.clone(), outcome }
}

async fn active(world: &World, queue: &str) -> u64 {
    let endpoint = world.bus.open(NAMESPACE, &Address::entity(queue)).await.unwrap();
    world.bus.counts(&endpoint).await.unwrap().active
}

#[tokio::test]
async fn what_is_done_in_a_transaction_is_done_together_or_not_at_all() {
    let world = World::start().await;
    let mut talk = world.client().await;
    talk.0.attach_sender(0, Terminus::target("one"));
    talk.0.attach_receiver(1, Terminus::source("one"));
    talk.0.attach_sender(COORDINATOR, Terminus::coordinator());
    assert_eq!(talk.send(0, 10, &text("a"), None).await, DeliveryState::Accepted);
    talk.0.credit(1, 0, 1, false);
    let (delivery, body) = talk.message().await;
    assert_eq!(body, "a");

    let transaction = declare(&mut talk, 11).await;
    let sent = talk.send(0, 12, &text("b"), Some(within(&transaction, None))).await;
    assert_eq!(sent, within(&transaction, Some(DeliveryState::Accepted)));
    assert_eq!(active(&world, "one").await, 1);
    let fail = Request::Discharge { transaction: transaction.clone(), fail: true };
    assert_eq!(talk.coordinate(COORDINATOR, 13, &fail).await, DeliveryState::Accepted);
    assert_eq!(active(&world, "one").await, 1);

    let transaction = declare(&mut talk, 14).await;
    for (id, one) in [(15, "c"), (16, "d")] {
        talk.send(0, id, &text(one), Some(within(&transaction, None))).await;
    }
    let complete = within(&transaction, Some(DeliveryState::Accepted));
    talk.dispose(delivery, complete.clone());
    assert_eq!(talk.settled(delivery).await, complete);
    assert_eq!(active(&world, "one").await, 1);
    let commit = Request::Discharge { transaction: transaction.clone(), fail: false };
    assert_eq!(talk.coordinate(COORDINATOR, 17, &commit).await, DeliveryState::Accepted);
    assert_eq!(active(&world, "one").await, 2);
    let DeliveryState::Rejected(Some(error)) = talk.coordinate(COORDINATOR, 18, &commit).await
    else {
        panic!("a transaction ends once")
    };
    assert_eq!(error.condition.0, "amqp:transaction:unknown-id");
}

#[tokio::test]
async fn a_transaction_can_send_to_several_queues() {
    let world = World::start().await;
    let mut talk = world.client().await;
    talk.0.attach_sender(0, Terminus::target("one"));
    talk.0.attach_sender(1, Terminus::target("two"));
    talk.0.attach_sender(COORDINATOR, Terminus::coordinator());
    let transaction = declare(&mut talk, 10).await;
    for handle in [0, 1] {
        talk.send(handle, 20 + handle, &text("a"), Some(within(&transaction, None))).await;
    }
    let commit = Request::Discharge { transaction, fail: false };
    assert_eq!(talk.coordinate(COORDINATOR, 11, &commit).await, DeliveryState::Accepted);
    assert_eq!((active(&world, "one").await, active(&world, "two").await), (1, 1));
}

#[tokio::test]
async fn a_message_is_sent_through_one_queue_to_another_in_one_transaction() {
    let world = World::start().await;
    let mut talk = world.client().await;
    talk.0.attach_sender(0, Terminus::target("one"));
    talk.0.attach_receiver(1, Terminus::source("one"));
    talk.0.attach_sender(COORDINATOR, Terminus::coordinator());
    let via = Map::default().with("com.microsoft:transfer-destination-address", "two");
    let attach = Attach {
        name: "via".into(),
        handle: 2,
        role: SENDER,
        target: Some(Terminus::target("one")),
        source: Some(Terminus::source("plain client")),
        initial_delivery_count: Some(0),
        properties: via,
        ..Attach::default()
    };
    talk.0.say(0, Performative::Attach(Box::new(attach)));
    talk.send(0, 10, &text("a"), None).await;
    talk.0.credit(1, 0, 1, false);
    let (delivery, _) = talk.message().await;
    // Without a transaction there is nothing that it could be sent together with.
    let alone = talk.send(2, 11, &text("b"), None).await;
    assert!(matches!(alone, DeliveryState::Rejected(Some(_))), "{alone:?}");

    let transaction = declare(&mut talk, 12).await;
    let sent = talk.send(2, 13, &text("b"), Some(within(&transaction, None))).await;
    assert_eq!(sent, within(&transaction, Some(DeliveryState::Accepted)));
    let complete = within(&transaction, Some(DeliveryState::Accepted));
    talk.dispose(delivery, complete.clone());
    assert_eq!(talk.settled(delivery).await, complete);
    assert_eq!((active(&world, "one").await, active(&world, "two").await), (1, 0));
    let commit = Request::Discharge { transaction, fail: false };
    assert_eq!(talk.coordinate(COORDINATOR, 14, &commit).await, DeliveryState::Accepted);
    assert_eq!((active(&world, "one").await, active(&world, "two").await), (0, 1));
}

#[tokio::test]
async fn a_lock_that_is_lost_is_answered_with_the_reason() {
    let world = World::start().await;
    let mut talk = world.client().await;
    talk.0.attach_sender(0, Terminus::target("one"));
    talk.0.attach_receiver(1, Terminus::source("one"));
    talk.send(0, 10, &text("a"), None).await;
    talk.0.credit(1, 0, 1, false);
    let (delivery, _) = talk.message().await;
    let endpoint = world.bus.open(NAMESPACE, &Address::entity("one")).await.unwrap();
    world.bus.purge(&endpoint).await.unwrap();
    world.bus.delete_entity(NAMESPACE, None, "one").await.unwrap();
    talk.dispose(delivery, DeliveryState::Accepted);
    let DeliveryState::Rejected(Some(error)) = talk.settled(delivery).await else { panic!() };
    let condition = error.condition.0;
    assert!(condition.contains("lock-lost") || condition.contains("not-found"), "{condition}");
}

#[tokio::test]
async fn credit_is_given_back_when_it_is_more_than_there_is() {
    let world = World::start().await;
    let mut talk = world.client().await;
    talk.0.attach_sender(0, Terminus::target("one"));
    talk.0.attach_receiver(1, Terminus::source("one"));
    for id in [10, 11, 12] {
        talk.send(0, id, &text("a"), None).await;
    }
    talk.0.credit(1, 0, 7, true);
    for _ in 0..3 {
        talk.message().await;
    }
    let (count, credit) = talk
        .until(|heard| match &heard.performative {
            Performative::Flow(flow) if flow.drain == Some(true) => {
                Some((flow.delivery_count, flow.link_credit))
            }
            _ => None,
        })
        .await;
    assert_eq!((count, credit), (Some(7), Some(0)));
}
