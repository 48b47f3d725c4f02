//! Items: written, read, conditions, batches, feeds.

use std::sync::Arc;

use lazuli_engine::PageLimit;
use lazuli_shapes::document::{
    Body, DocumentReason, Etag, ItemFeed, Operation, Scope, epk_text, etag,
};
use lazuli_store::{KeyRange, Kind};

use super::world::{ACCOUNT, World, key};

#[tokio::test]
async fn an_item_comes_back_as_it_was_written_with_the_names_of_the_service() {
    let world = World::new(1).await;
    let c = world.collection(3).await;
    let made = world.create(&c, r#"{"id":"1","pk":"a","n":1.50,"_ts":3}"#).await.unwrap();
    assert!(!made.was_there);
    let document = world.read(&c, "a", "1").await.unwrap();
    assert_eq!(Some(&document), made.document.as_ref());
    let (rid, link, tag) = (&document.rid, document.link(), etag(document.version));
    let expected = format!(
        r#"{{"id":"1","pk":"a","n":1.5,"_rid":"{rid}","_self":"{link}","_etag":{tag:?},"_attachments":"attachments/","_ts":1800000000}}"#
    );
    assert_eq!(document.json().unwrap(), expected);
    let again = world.create(&c, r#"{"id":"1","pk":"a"}"#).await.unwrap_err();
    assert!(again.is(DocumentReason::ItemExists));
    let other = world.create(&c, r#"{"id":"1","pk":"b"}"#).await.unwrap();
    assert_ne!(other.document.unwrap().rid, document.rid);
    let missing = world.read(&c, "a", "2").await.unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
    // It keeps its id through an upsert, and gets another when it is made anew.
    let updated = world.upsert(&c, r#"{"id":"1","pk":"a","n":2}"#).await;
    assert!(updated.was_there);
    let updated = updated.document.unwrap();
    assert_eq!((&updated.rid, updated.created), (&document.rid, document.created));
    world.documents.run_one(&c, &key("a"), Operation::delete("1")).await.unwrap();
    let anew = world.upsert(&c, r#"{"id":"1","pk":"a"}"#).await;
    assert_ne!(anew.document.unwrap().rid, document.rid);
}

#[tokio::test]
async fn etags_decide_what_is_written_and_read() {
    let world = World::new(1).await;
    let c = world.collection(1).await;
    let made = world.create(&c, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let version = made.document.unwrap().version;
    let body = Body::from_json(br#"{"id":"1","pk":"a","n":2}"#).unwrap();
    let replace = |etag| {
        let operation = Operation::replace("1", body.clone()).with(etag);
        let (documents, c) = (world.documents.clone(), c.clone());
        async move { documents.run_one(&c, &key("a"), operation).await }
    };
    let read = world.documents.read(&c, &key("a"), "1", Etag::IsNot(version)).await;
    assert!(read.unwrap_err().is(DocumentReason::NotModified));
    replace(Etag::Is(version)).await.unwrap();
    let stale = replace(Etag::Is(version)).await.unwrap_err();
    assert!(stale.is(DocumentReason::EtagMismatch));
    assert!(world.documents.read(&c, &key("a"), "1", Etag::IsNot(version)).await.is_ok());
    let absent = Operation::upsert(body.clone()).with(Etag::Absent);
    let refused = world.documents.run_one(&c, &key("a"), absent).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Exists);
}

#[tokio::test]
async fn a_batch_is_all_or_nothing_and_says_where_it_failed() {
    let world = World::new(1).await;
    let c = world.collection(1).await;
    world.create(&c, r#"{"id":"there","pk":"a","n":1}"#).await.unwrap();
    let body = |text: &str| Body::from_json(text.as_bytes()).unwrap();
    let operations = |last: Operation| {
        vec![
            Operation::create(body(r#"{"id":"1","pk":"a"}"#)),
            Operation::read("1"),
            Operation::update(
                "there",
                Arc::new(|_| Body::from_json(br#"{"id":"there","pk":"a","n":2}"#)),
            ),
            last,
        ]
    };
    let failed = operations(Operation::delete("nowhere"));
    let error = world.documents.run(&c, &key("a"), failed).await.unwrap_err();
    assert_eq!((error.position(), error.kind()), (Some(3), Kind::NotFound));
    assert!(world.read(&c, "a", "1").await.is_err());
    let done = world.documents.run(&c, &key("a"), operations(Operation::delete("there"))).await;
    let done = done.unwrap();
    assert!(done[1].document.is_some() && done[3].document.is_none());
    assert!(world.read(&c, "a", "there").await.is_err());
    let elsewhere = Operation::create(body(r#"{"id":"2","pk":"b"}"#));
    let error = world.documents.run_one(&c, &key("a"), elsewhere).await.unwrap_err();
    assert!(error.is(DocumentReason::KeyMismatch));
}

#[tokio::test]
async fn a_feed_of_items_goes_on_across_a_split() {
    let world = World::new(2).await;
    let c = world.collection(2).await;
    for number in 0..100 {
        let json = format!(r#"{{"id":"{number}","pk":"k{}","n":{number}}}"#, number % 10);
        world.create(&c, &json).await.unwrap();
    }
    let ranges = world.documents.ranges(&c).await.unwrap();
    assert_eq!(ranges.len(), 2);
    assert_eq!((ranges[0].min_text(), ranges[1].max_text()), (String::new(), "FF".into()));
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let feed = ItemFeed {
            scope: Scope::Routes(KeyRange::all()),
            limit: PageLimit::items(7),
            after: after.take(),
        };
        let page = world.documents.items(&c, &feed).await.unwrap();
        if seen.is_empty() {
            let half = c.epk(&key("k1")).unwrap();
            let range = ranges.iter().find(|one| one.routes().contains(&half)).unwrap();
            world.documents.split(&c, range.id, Some(half)).await.unwrap();
        }
        seen.extend(page.documents.into_iter().map(|one| (one.key, one.id)));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 100);
    let now = world.documents.ranges(&c).await.unwrap();
    assert_eq!(now.len(), 3);
    let cut = epk_text(&c.epk(&key("k1")).unwrap());
    assert!(now.iter().any(|one| one.min_text() == cut && one.parents.len() == 1));
    let feed = ItemFeed { scope: Scope::Key(key("k3")), limit: PageLimit::items(100), after: None };
    assert_eq!(world.documents.items(&c, &feed).await.unwrap().documents.len(), 10);
    while world.documents.delete_some(&c, &key("k3"), 4).await.unwrap() {}
    assert!(world.documents.items(&c, &feed).await.unwrap().documents.is_empty());
    let (_, opened) = world.documents.open(ACCOUNT, "db", "c").await.unwrap();
    assert_eq!(opened.rid(), c.rid());
}

#[tokio::test]
async fn items_expire_by_what_container_and_item_say() {
    let world = World::new(1).await;
    let c = world.collection_with("c", 1, |new| new.ttl_s = Some(10)).await;
    world.create(&c, r#"{"id":"default","pk":"a"}"#).await.unwrap();
    world.create(&c, r#"{"id":"longer","pk":"a","ttl":20}"#).await.unwrap();
    world.create(&c, r#"{"id":"ever","pk":"a","ttl":-1}"#).await.unwrap();
    world.pass(15_000);
    assert!(world.read(&c, "a", "default").await.is_err());
    assert!(world.read(&c, "a", "longer").await.is_ok());
    // What has expired may be made anew before it is swept away.
    let anew = world.create(&c, r#"{"id":"default","pk":"a","ttl":-1}"#).await.unwrap();
    assert!(!anew.was_there);
    world.pass(15_000);
    while world.engine.sweep_all().await.unwrap() > 0 {}
    assert!(world.read(&c, "a", "longer").await.is_err());
    assert!(world.read(&c, "a", "default").await.is_ok());
    assert!(world.read(&c, "a", "ever").await.is_ok());
}
