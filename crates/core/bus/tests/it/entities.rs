//! Entities themselves: created, changed, listed, deleted, and deleting themselves.

use lazuli_bus_shape::{Address, Bus, BusReason, BusSettings, Description, EntityKind, NewMessage};

use crate::world::{NS, Plain, SECOND, World};

#[tokio::test]
async fn an_entity_is_created_changed_and_deleted() {
    let world = World::new().await;
    let queue = world.queue("Orders/New", |it| it.user_metadata = Some("mine".into())).await;
    let again = world.bus.create_entity(NS, EntityKind::Topic, "orders/new", Description::topic());
    assert!(again.await.unwrap_err().is(BusReason::EntityExists));
    let entity = world.bus.entity(NS, "ORDERS/new").await.unwrap();
    assert_eq!(entity.name, "Orders/New");
    assert_eq!(entity.description.user_metadata.as_deref(), Some("mine"));
    let mut changed = entity.description.clone();
    changed.lock_duration_ms = 5 * SECOND;
    let kind = EntityKind::Queue;
    let version = Some(entity.version);
    world.bus.update_entity(NS, kind, "orders/new", changed.clone(), version).await.unwrap();
    let stale = world.bus.update_entity(NS, kind, "orders/new", changed.clone(), version).await;
    assert!(stale.unwrap_err().is(BusReason::EntityChanged));
    changed.requires_session = true;
    let fixed = world.bus.update_entity(NS, kind, "orders/new", changed, None).await;
    assert!(fixed.unwrap_err().is(BusReason::BadProperty));
    world.send(&queue, "x").await;
    let got = world.receive(&queue, 1).await;
    assert_eq!(
        got[0].lock.unwrap().until_ms,
        got[0].message.enqueued_ms.max(world.now()) + 5 * SECOND
    );
    world.bus.delete_entity(NS, Some(kind), "orders/new").await.unwrap();
    let gone = world.bus.send(&queue, vec![NewMessage::new("x")]).await.unwrap_err();
    assert!(gone.is(BusReason::EntityNotFound));
    let gone = world.bus.delete_entity(NS, None, "orders/new").await.unwrap_err();
    assert!(gone.is(BusReason::EntityNotFound));
    let new = world.queue("orders/NEW", |_| {}).await;
    assert!(world.receive(&new, 1).await.is_empty());
}

#[tokio::test]
async fn lists_are_by_name_and_kind_in_pages() {
    let world = World::new().await;
    let none = world.bus.entities("nowhere", EntityKind::Queue, 0, 10).await.unwrap();
    assert!(none.items.is_empty() && !none.has_more);
    world.topic("t").await;
    for number in 0..7 {
        world.queue(&format!("q{number}"), |_| {}).await;
        let description = Description::subscription();
        let name = format!("s{number}");
        world.bus.create_subscription(NS, "t", &name, description, None).await.unwrap();
    }
    let page = world.bus.entities(NS, EntityKind::Queue, 2, 3).await.unwrap();
    let names: Vec<&str> = page.items.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, page.has_more), (vec!["q2", "q3", "q4"], true));
    let page = world.bus.entities(NS, EntityKind::Topic, 0, 3).await.unwrap();
    assert_eq!((page.items.len(), page.has_more), (1, false));
    let page = world.bus.subscriptions(NS, "T", 5, 5).await.unwrap();
    assert_eq!((page.items.len(), page.has_more), (2, false));
    let wrong = world.bus.subscriptions(NS, "q1", 0, 5).await.unwrap_err();
    assert!(wrong.is(BusReason::EntityNotFound));
    let kind = Some(EntityKind::Topic);
    assert!(world.bus.delete_entity(NS, kind, "q1").await.is_err());
    world.bus.delete_entity(NS, kind, "t").await.unwrap();
    let gone = world.bus.open(NS, &Address::subscription("t", "s1")).await.unwrap_err();
    assert!(gone.is(BusReason::EntityNotFound));
}

#[tokio::test]
async fn properties_out_of_range_and_too_many_entities_are_refused() {
    let world = World::new().await;
    let bad: [fn(&mut Description); 6] = [
        |it| it.lock_duration_ms = 0,
        |it| it.lock_duration_ms = 301 * SECOND,
        |it| it.max_delivery_count = 0,
        |it| it.fragments = 65,
        |it| it.duplicate_window_ms = SECOND,
        |it| it.auto_delete_ms = Some(SECOND),
    ];
    for change in bad {
        let mut description = Description::queue();
        change(&mut description);
        let refused = world.bus.create_entity(NS, EntityKind::Queue, "q", description).await;
        assert!(refused.unwrap_err().is(BusReason::BadProperty));
    }
    let settings = BusSettings { entities_max: 2, partitioned_max: 1, ..BusSettings::default() };
    let small = Bus::new(world.engine.clone(), std::sync::Arc::new(Plain), settings);
    let create = |name: &'static str, fragments| {
        let description = Description { fragments, ..Description::queue() };
        small.create_entity(NS, EntityKind::Queue, name, description)
    };
    create("a", 2).await.unwrap();
    assert!(create("b", 2).await.unwrap_err().is(BusReason::TooManyEntities));
    create("b", 1).await.unwrap();
    assert!(create("c", 1).await.unwrap_err().is(BusReason::TooManyEntities));
    small.delete_entity(NS, None, "a").await.unwrap();
    create("c", 2).await.unwrap();
}

#[tokio::test]
async fn an_entity_that_is_not_used_deletes_itself() {
    let world = World::new().await;
    let idle = Some(300 * SECOND);
    let used = world.queue("used", |it| it.auto_delete_ms = idle).await;
    world.queue("unused", |it| it.auto_delete_ms = idle).await;
    world.queue("kept", |_| {}).await;
    world.topic("t").await;
    let description = Description { auto_delete_ms: idle, ..Description::subscription() };
    world.bus.create_subscription(NS, "t", "s", description, None).await.unwrap();
    world.pass(200 * SECOND);
    world.send(&used, "x").await;
    world.bus.finish_idle().await.unwrap();
    world.pass(150 * SECOND);
    let deleted = world.bus.delete_idle().await.unwrap();
    assert_eq!(deleted, [Address::subscription("t", "s"), Address::entity("unused")]);
    let left = world.bus.entities(NS, EntityKind::Queue, 0, 10).await.unwrap();
    let names: Vec<&str> = left.items.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["kept", "used"]);
}
