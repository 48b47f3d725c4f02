//! Topics: rules, actions, copies, and subscriptions that come and go.

use lazuli_bus_shape::filter::{Action, Filter, Value};
use lazuli_bus_shape::{
    Address, BusReason, DEFAULT_RULE, Description, NewMessage, PropertyName, Rule, SystemProperty,
};

use crate::world::{NS, SECOND, World, texts};

fn rule(name: &str, filter: Filter, action: Option<&str>) -> Rule {
    let action = action.map(|text| Action::parse(text).unwrap());
    Rule { name: name.to_owned(), filter, action, created_ms: 0 }
}

impl World {
    async fn subscribe(&self, topic: &str, name: &str, filter: Filter) {
        let description = Description::subscription();
        let rule = Some(rule("r", filter, None));
        self.bus.create_subscription(NS, topic, name, description, rule).await.unwrap();
    }
}

#[tokio::test]
async fn a_message_comes_to_the_subscriptions_whose_rules_it_passes() {
    let world = World::new().await;
    let topic = world.topic("t").await;
    world.subscribe("t", "all", Filter::True).await;
    world.subscribe("t", "none", Filter::False).await;
    world.subscribe("t", "blue", Filter::sql("color = 'blue' AND sys.Label = 'l'").unwrap()).await;
    for body in ["l|color=blue|1", "l|color=red|2", "m|color=blue|3", "4"] {
        world.send(&topic, body).await;
    }
    for (name, wanted) in [("all", 4), ("none", 0), ("blue", 1)] {
        let subscription = world.open(&format!("t/subscriptions/{name}")).await;
        assert_eq!(world.drain(&subscription).await.len(), wanted, "{name}");
    }
    let sends = world.bus.send(&world.open("t/Subscriptions/all").await, vec![]).await;
    assert!(sends.unwrap_err().is(BusReason::WrongKind));
}

#[tokio::test]
async fn rules_with_actions_make_copies_of_their_own() {
    let world = World::new().await;
    let topic = world.topic("t").await;
    world.subscribe("t", "s", Filter::True).await;
    let sub = "s";
    let second =
        rule("two", Filter::sql("n > 1").unwrap(), Some("SET n = n * 2; SET sys.To = 'x'"));
    world.bus.create_rule(NS, "t", sub, second).await.unwrap();
    world.bus.create_rule(NS, "t", sub, rule("three", Filter::True, None)).await.unwrap();
    let twice = rule("three", Filter::True, None);
    assert!(
        world.bus.create_rule(NS, "t", sub, twice).await.unwrap_err().is(BusReason::RuleExists)
    );
    world.send(&topic, "l|n=5|x").await;
    world.send(&topic, "l|n=1|y").await;
    let subscription = world.open("t/Subscriptions/s").await;
    let got = world.receive(&subscription, 9).await;
    assert_eq!(texts(&got), ["l|n=5|x", "l|n=5|x", "l|n=1|y"]);
    let changed = &got[1].message.overrides;
    let value = |name: PropertyName| {
        changed.iter().find(|it| it.name == name).and_then(|it| it.value.clone())
    };
    assert_eq!(value(PropertyName::User("n".into())), Some(Value::Integer(10)));
    assert_eq!(value(PropertyName::System(SystemProperty::To)), Some(Value::text("x")));
    world.bus.delete_rule(NS, "t", sub, "R").await.unwrap();
    let names: Vec<String> = world
        .bus
        .rules(NS, "t", sub, 0, 10)
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["three", "two"]);
    let missing = world.bus.delete_rule(NS, "t", sub, "r").await.unwrap_err();
    assert!(missing.is(BusReason::RuleNotFound));
}

#[tokio::test]
async fn long_bodies_are_shared_and_go_with_the_last_copy() {
    let world = World::new().await;
    let topic = world.topic("t").await;
    for name in ["a", "b", "c"] {
        world.subscribe("t", name, Filter::True).await;
    }
    world.send(&topic, &"x".repeat(100_000)).await;
    let stored = world.rows().await;
    assert_eq!(stored, 4, "three messages and one body");
    for name in ["a", "b", "c"] {
        let subscription = world.open(&format!("t/subscriptions/{name}")).await;
        assert_eq!(world.drain(&subscription).await[0].len(), 100_000);
    }
    assert_eq!(world.rows().await, 0);
    // Nobody gets it: nothing is kept.
    for name in ["a", "b", "c"] {
        world.bus.delete_subscription(NS, "t", name).await.unwrap();
    }
    world.pass(3 * SECOND);
    world.sweep().await;
    world.send(&topic, &"x".repeat(100_000)).await;
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn filters_that_fail_make_dead_letters_where_asked_for() {
    let world = World::new().await;
    let topic = world.topic("t").await;
    let filter = || Some(rule("r", Filter::sql("n / 0 = 1").unwrap(), None));
    let keeps = Description::subscription();
    let drops = Description { dead_letter_on_filter_error: false, ..keeps.clone() };
    world.bus.create_subscription(NS, "t", "keeps", keeps, filter()).await.unwrap();
    world.bus.create_subscription(NS, "t", "drops", drops, filter()).await.unwrap();
    world.send(&topic, "l|n=1|x").await;
    for (name, wanted) in [("keeps", 1), ("drops", 0)] {
        let subscription = world.open(&format!("t/subscriptions/{name}")).await;
        let counts = world.bus.counts(&subscription).await.unwrap();
        assert_eq!((counts.active, counts.dead_letter), (0, wanted), "{name}");
    }
}

#[tokio::test]
async fn a_deleted_subscription_leaves_nothing_and_a_new_one_begins_empty() {
    let world = World::new().await;
    let topic = world.topic("t").await;
    let sessions = Description { requires_session: true, ..Description::subscription() };
    world.bus.create_subscription(NS, "t", "s", sessions, None).await.unwrap();
    let names = world.bus.rules(NS, "t", "s", 0, 10).await.unwrap();
    assert_eq!(names.items[0].name, DEFAULT_RULE);
    for number in 0..2_500 {
        let session_id = Some(format!("s{}", number % 10));
        let body = if number % 100 == 0 { "y".repeat(5_000) } else { "x".to_owned() };
        let new = NewMessage { session_id, ..NewMessage::new(body) };
        world.bus.send(&topic, vec![new]).await.unwrap();
    }
    world.send(&topic, "without").await;
    let old = world.open("t/Subscriptions/s").await;
    assert_eq!(world.bus.counts(&old).await.unwrap().dead_letter, 1);
    world.bus.delete_subscription(NS, "t", "s").await.unwrap();
    let gone = world.bus.open(NS, &Address::subscription("t", "s")).await.unwrap_err();
    assert!(gone.is(BusReason::EntityNotFound));
    let gone = world.bus.accept_session(&old, None).await.unwrap_err();
    assert!(gone.is(BusReason::EntityNotFound));
    world.subscribe("t", "s", Filter::True).await;
    let new = world.open("t/Subscriptions/s").await;
    assert!(world.receive(&new, 1).await.is_empty());
    for _ in 0..10 {
        world.pass(2 * SECOND);
        world.sweep().await;
    }
    assert_eq!(world.rows().await, 0);
    assert_eq!(world.bus.counts(&new).await.unwrap().bytes, 0);
}

#[tokio::test]
async fn scheduled_messages_of_a_topic_are_handed_out_when_due() {
    let world = World::new().await;
    let topic = world.topic("t").await;
    world.subscribe("t", "s", Filter::sql("n = 1").unwrap()).await;
    for body in ["l|n=1|x", "l|n=2|y"] {
        let scheduled_ms = Some(world.now() + 5 * SECOND);
        let new = NewMessage { scheduled_ms, ..NewMessage::new(body) };
        world.bus.send(&topic, vec![new]).await.unwrap();
    }
    let subscription = world.open("t/Subscriptions/s").await;
    assert!(world.drain(&subscription).await.is_empty());
    assert_eq!(world.bus.counts(&topic).await.unwrap().scheduled, 2);
    world.pass(6 * SECOND);
    assert_eq!(world.drain(&subscription).await, ["l|n=1|x"]);
    assert_eq!(world.bus.counts(&topic).await.unwrap().scheduled, 0);
}
