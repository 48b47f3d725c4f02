//! Indexes: kept in step with items, unique keys, and new policies built in the background.

use lazuli_shapes::document::{DefinitionChange, DocumentReason, IndexingPolicy, Operation, Path};
use lazuli_value::Value;

use super::world::{ACCOUNT, World, key};

fn policy(text: &str) -> IndexingPolicy {
    IndexingPolicy::from_value(&Value::from_json(text.as_bytes()).unwrap()).unwrap()
}

#[tokio::test]
async fn entries_follow_items_through_all_that_happens_to_them() {
    let world = World::new(2).await;
    let c = world.collection_with("c", 2, |new| new.ttl_s = Some(-1)).await;
    for n in 0..40 {
        let json = format!(r#"{{"id":"{n}","pk":"k{}","n":{n},"t":[{n},1]}}"#, n % 8);
        world.create(&c, &json).await.unwrap();
    }
    world.check().await;
    for n in 0..20 {
        let json = format!(r#"{{"id":"{n}","pk":"k{}","m":"{n}","ttl":5}}"#, n % 8);
        world.upsert(&c, &json).await;
    }
    world.documents.run_one(&c, &key("k1"), Operation::delete("1")).await.unwrap();
    world.check().await;
    let range = world.documents.ranges(&c).await.unwrap().remove(1);
    world.documents.split(&c, range.id, None).await.unwrap();
    world.check().await;
    world.move_all(&c).await;
    world.check().await;
    world.pass(10_000);
    while world.engine.sweep_all().await.unwrap() > 0 {}
    world.check().await;
    // A write whose one entry changes writes no other.
    let changed = world.upsert(&c, r#"{"id":"30","pk":"k6","n":99,"t":[30,1]}"#).await;
    assert_eq!(changed.work.entries_written, 4, "the number, and the time of the write");
}

#[tokio::test]
async fn unique_values_are_refused_within_a_partition_key() {
    let world = World::new(1).await;
    let unique = vec![vec![Path::parse("/mail").unwrap(), Path::parse("/a/b").unwrap()]];
    let c = world.collection_with("c", 1, |new| new.unique_keys = unique).await;
    world.create(&c, r#"{"id":"1","pk":"a","mail":"x","a":{"b":1}}"#).await.unwrap();
    world.create(&c, r#"{"id":"2","pk":"a","mail":"x","a":{"b":2}}"#).await.unwrap();
    world.create(&c, r#"{"id":"1","pk":"b","mail":"x","a":{"b":1}}"#).await.unwrap();
    let refused = world.create(&c, r#"{"id":"3","pk":"a","mail":"x","a":{"b":1}}"#).await;
    assert!(refused.unwrap_err().is(DocumentReason::NotUnique));
    // An item may keep its own values, and give them up for another.
    world.upsert(&c, r#"{"id":"1","pk":"a","mail":"x","a":{"b":1},"n":1}"#).await;
    world.upsert(&c, r#"{"id":"1","pk":"a","mail":"y"}"#).await;
    world.create(&c, r#"{"id":"3","pk":"a","mail":"x","a":{"b":1}}"#).await.unwrap();
    let none = world.create(&c, r#"{"id":"4","pk":"a","mail":"y"}"#).await;
    assert!(none.unwrap_err().is(DocumentReason::NotUnique));
    world.check().await;
}

#[tokio::test]
async fn a_new_policy_is_built_in_the_background_while_items_change() {
    let world = World::new(2).await;
    let c =
        world.collection_with("c", 2, |new| new.indexing = policy(r#"{"indexingMode":"none"}"#));
    let c = c.await;
    for n in 0..300 {
        let json = format!(r#"{{"id":"{n}","pk":"k{}","n":{n}}}"#, n % 8);
        world.create(&c, &json).await.unwrap();
    }
    let change = DefinitionChange { indexing: Some(policy("{}")), ..Default::default() };
    let changed = world.documents.change_definition(&c, &change).await.unwrap();
    assert!(changed.definition().index().is_none() && changed.definition().building().is_some());
    // One who still has the old definition writes entries all the same.
    let made = world.create(&c, r#"{"id":"new","pk":"k1","n":1}"#).await.unwrap();
    assert!(made.work.entries_written > 3);
    world.upsert(&c, r#"{"id":"5","pk":"k5","n":-5}"#).await;
    world.documents.run_one(&c, &key("k6"), Operation::delete("6")).await.unwrap();
    assert!(world.documents.index_progress(&changed).await.unwrap().is_building);
    world.documents.tend().await.unwrap();
    let (_, built) = world.documents.open(ACCOUNT, "db", "c").await.unwrap();
    assert!(built.definition().index().is_some() && built.definition().waste.is_empty());
    world.check().await;

    // Another one takes its place, and the first one's entries go.
    let narrow = r#"{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    let change = DefinitionChange { indexing: Some(policy(narrow)), ..Default::default() };
    world.documents.change_definition(&built, &change).await.unwrap();
    world.documents.tend().await.unwrap();
    let (_, last) = world.documents.open(ACCOUNT, "db", "c").await.unwrap();
    assert_eq!(last.definition().indexes.len(), 1);
    assert_eq!(last.definition().policy(), &policy(narrow));
    world.check().await;
    let upserted = world.upsert(&last, r#"{"id":"5","pk":"k5","n":7,"m":8}"#).await;
    assert_eq!(upserted.work.entries_written, 2);
}
