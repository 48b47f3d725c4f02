//! The change feed: positions that survive splits and moves, both modes.

use lazuli_shapes::document::{
    Collection, FeedMode, FeedOperation, FeedPosition, FeedStart, Operation, Scope,
};
use lazuli_store::KeyRange;

use super::world::{World, key};

async fn from(world: &World, c: &Collection, start: FeedStart) -> FeedPosition {
    let all = Scope::Routes(KeyRange::all());
    world.documents.feed_position(c, &all, start).await.unwrap()
}

/// Reads to the end in small pages.
async fn drain(
    world: &World,
    c: &Collection,
    position: &mut FeedPosition,
    mode: FeedMode,
) -> Vec<(String, FeedOperation)> {
    let mut seen = Vec::new();
    loop {
        let page = world.documents.changes(c, position, mode, 3).await.unwrap();
        seen.extend(page.changes.iter().map(|it| (it.id.clone(), it.operation)));
        *position = FeedPosition::decode(&page.position.encode()).unwrap();
        if !page.more {
            return seen;
        }
    }
}

#[tokio::test]
async fn each_item_is_shown_once_as_it_is_now_whatever_moves() {
    let world = World::new(2).await;
    let c = world.collection(2).await;
    for n in 0..20 {
        world.create(&c, &format!(r#"{{"id":"{n}","pk":"k{n}"}}"#)).await.unwrap();
    }
    let mut position = from(&world, &c, FeedStart::Beginning).await;
    let mut now = from(&world, &c, FeedStart::Now).await;
    for n in 0..5 {
        world.upsert(&c, &format!(r#"{{"id":"{n}","pk":"k{n}","m":1}}"#)).await;
    }
    world.documents.run_one(&c, &key("k7"), Operation::delete("7")).await.unwrap();
    let seen = drain(&world, &c, &mut position, FeedMode::Latest).await;
    assert_eq!(seen.len(), 19);
    assert_eq!(seen.iter().filter(|(_, it)| *it == FeedOperation::Replace).count(), 5);
    assert_eq!(drain(&world, &c, &mut now, FeedMode::Latest).await.len(), 5);
    assert!(drain(&world, &c, &mut position, FeedMode::Latest).await.is_empty());

    let range = world.documents.ranges(&c).await.unwrap().remove(0);
    world.documents.split(&c, range.id, None).await.unwrap();
    world.create(&c, r#"{"id":"split","pk":"k1"}"#).await.unwrap();
    world.move_all(&c).await;
    world.create(&c, r#"{"id":"moved","pk":"k2"}"#).await.unwrap();
    let mut seen = drain(&world, &c, &mut position, FeedMode::Latest).await;
    seen.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let names: Vec<&str> = seen.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(names, ["moved", "split"]);
    // From the beginning again, one record for each item is left.
    let mut again = from(&world, &c, FeedStart::Beginning).await;
    assert_eq!(drain(&world, &c, &mut again, FeedMode::Latest).await.len(), 21);
}

#[tokio::test]
async fn every_version_and_deletion_is_shown_while_it_is_kept() {
    let world = World::new(1).await;
    let c = world.collection_with("c", 1, |new| new.versions_kept_s = 60).await;
    let position = from(&world, &c, FeedStart::Now).await;
    world.create(&c, r#"{"id":"1","pk":"a","n":1}"#).await.unwrap();
    world.upsert(&c, r#"{"id":"1","pk":"a","n":2}"#).await;
    world.documents.run_one(&c, &key("a"), Operation::delete("1")).await.unwrap();
    let page = world.documents.changes(&c, &position, FeedMode::All, 100).await.unwrap();
    let operations: Vec<FeedOperation> = page.changes.iter().map(|it| it.operation).collect();
    use FeedOperation::{Create, Delete, Replace};
    assert_eq!(operations, [Create, Replace, Delete]);
    let number = |at: usize, before: bool| {
        let change = &page.changes[at];
        let document = if before { &change.previous } else { &change.document };
        document.as_ref().map(|one| one.body().unwrap().get("n").unwrap().to_json())
    };
    assert_eq!((number(0, true), number(0, false)), (None, Some("1".into())));
    assert_eq!((number(1, true), number(1, false)), (Some("1".into()), Some("2".into())));
    assert_eq!((number(2, true), number(2, false)), (Some("2".into()), None));
    world.check().await;
    world.pass(61_000);
    while world.engine.sweep_all().await.unwrap() > 0 {}
    let later = world.documents.changes(&c, &position, FeedMode::All, 100).await.unwrap();
    assert!(later.changes.is_empty());
    world.check().await;
}

#[tokio::test]
async fn a_reader_begins_at_a_time_and_with_a_part_of_the_ranges() {
    let world = World::new(1).await;
    let c = world.collection(4).await;
    for n in 0..8 {
        world.create(&c, &format!(r#"{{"id":"{n}","pk":"k{n}"}}"#)).await.unwrap();
        world.pass(1_000);
    }
    let start = FeedStart::Time(1_800_000_000_000 + 4_500);
    let mut position = from(&world, &c, start).await;
    let mut seen = drain(&world, &c, &mut position, FeedMode::Latest).await;
    seen.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(seen.len(), 3);
    let whole = from(&world, &c, FeedStart::Beginning).await;
    let mut all = 0;
    for range in world.documents.ranges(&c).await.unwrap() {
        let mut part = whole.within(&range.routes());
        all += drain(&world, &c, &mut part, FeedMode::Latest).await.len();
    }
    assert_eq!(all, 8);
}
