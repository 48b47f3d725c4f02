//! Indexes: kept in step with items, unique keys, and new policies built in the background.

use lazuli_shapes::document::{DefinitionChange, DocumentReason, IndexingPolicy, Operation, Path};
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::{Direction, KeyRange, PageLimit, Write};
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

/// Who tends the indexes finds the note of a policy that has not come yet: whenever that is, the policy's index is built.
#[tokio::test]
async fn a_policy_that_comes_while_indexes_are_tended_is_built_all_the_same() {
    for turns in 0..30 {
        let world = World::new(2).await;
        let c = world.collection(2).await;
        for n in 0..20 {
            world.create(&c, &format!(r#"{{"id":"{n}","pk":"k{n}","n":{n}}}"#)).await.unwrap();
        }
        let wide = DefinitionChange { indexing: Some(policy("{}")), ..Default::default() };
        let narrow = r#"{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#;
        let narrow = DefinitionChange { indexing: Some(policy(narrow)), ..Default::default() };
        world.documents.change_definition(&c, &narrow).await.unwrap();
        let tend = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            world.documents.tend().await
        };
        let (changed, tended) = tokio::join!(world.documents.change_definition(&c, &wide), tend);
        changed.unwrap();
        tended.unwrap();
        world.documents.tend().await.unwrap();
        let (_, last) = world.documents.open(ACCOUNT, "db", "c").await.unwrap();
        let is_built = last.definition().building().is_none() && last.definition().waste.is_empty();
        assert!(is_built, "after {turns} turns: {:?}", last.definition());
        assert_eq!(last.definition().policy(), &policy("{}"));
        assert!(world.engine.notes("document-index/", 9).await.unwrap().is_empty());
        world.check().await;
    }
}

#[tokio::test]
async fn an_index_that_is_not_what_its_items_say_is_found_and_built_anew() {
    let world = World::new(2).await;
    let c = world.collection(2).await;
    for n in 0..50 {
        world.create(&c, &format!(r#"{{"id":"{n}","pk":"k{n}","n":{n}}}"#)).await.unwrap();
    }
    let catalog = world.engine.manager().catalog();
    let findings = async || {
        let mut found = 0;
        for shard in world.engine.shards().all() {
            found += shard.check(catalog).await.unwrap().findings.len();
        }
        found
    };
    // Some entries are lost, and one is of an item that is not there.
    let index = KeyRange::prefix(layout::prefix(c.container().id, Space::INDEX));
    let shard = world.engine.shards().get(world.shards[0]).unwrap();
    let page = shard.store().scan(&index, Direction::Forward, PageLimit::items(9)).await;
    let rows = page.unwrap().items;
    let (key, value) = rows[0].clone();
    let altered = |at: usize, to: u8| {
        let mut altered = key.to_vec();
        altered[at] = to;
        Write::Put(altered.into(), value.clone())
    };
    let mut writes: Vec<_> = rows[1..].iter().map(|(key, _)| Write::Delete(key.clone())).collect();
    writes.push(altered(key.len() - 1, b'x'));
    shard.store().begin(vec![]).await.unwrap().commit(writes).await.unwrap();
    assert_eq!(findings().await, 1);
    world.documents.rebuild_index(&c).await.unwrap();
    world.documents.tend().await.unwrap();
    assert_eq!(findings().await, 0);
    // One of an index that nobody knows.
    let unknown = altered(layout::PREFIX_BYTES + 3, 99);
    shard.store().begin(vec![]).await.unwrap().commit(vec![unknown]).await.unwrap();
    assert_eq!(findings().await, 1);
}
