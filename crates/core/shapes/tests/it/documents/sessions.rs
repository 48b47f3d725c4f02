//! Sessions of scripts: they see their own writes, and commit all or nothing.

use lazuli_shapes::document::{Body, DocumentReason, Operation, SessionItem};

use super::world::{World, key};

fn body(text: &str) -> Body {
    Body::from_json(text.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_session_sees_its_own_writes_and_commits_them_together() {
    let world = World::new(1).await;
    let c = world.collection(2).await;
    world.create(&c, r#"{"id":"1","pk":"a","n":1}"#).await.unwrap();
    let mut session = world.documents.session(&c, &key("a")).unwrap();
    assert!(matches!(session.read("1").await.unwrap(), Some(SessionItem::Stored(_))));
    session.apply(Operation::create(body(r#"{"id":"2","pk":"a"}"#))).await.unwrap();
    session.apply(Operation::delete("1")).await.unwrap();
    assert!(session.read("1").await.unwrap().is_none());
    let again = session.apply(Operation::create(body(r#"{"id":"2","pk":"a"}"#))).await;
    assert!(again.unwrap_err().is(DocumentReason::ItemExists));
    let items = session.items().await.unwrap();
    assert!(matches!(&items[..], [SessionItem::Written(one)] if one.id() == "2"));
    assert!(world.read(&c, "a", "2").await.is_err());
    assert_eq!(session.commit().await.unwrap().len(), 2);
    assert!(world.read(&c, "a", "2").await.is_ok() && world.read(&c, "a", "1").await.is_err());
    world.check().await;
}

#[tokio::test]
async fn a_session_whose_items_changed_meanwhile_writes_nothing() {
    let world = World::new(1).await;
    let c = world.collection(1).await;
    world.create(&c, r#"{"id":"1","pk":"a","n":1}"#).await.unwrap();
    let mut by_id = world.documents.session(&c, &key("a")).unwrap();
    by_id.read("1").await.unwrap();
    by_id.apply(Operation::upsert(body(r#"{"id":"2","pk":"a"}"#))).await.unwrap();
    let mut by_all = world.documents.session(&c, &key("a")).unwrap();
    by_all.items().await.unwrap();
    by_all.apply(Operation::upsert(body(r#"{"id":"3","pk":"a"}"#))).await.unwrap();
    world.upsert(&c, r#"{"id":"1","pk":"a","n":2}"#).await;
    for session in [by_id, by_all] {
        let refused = session.commit().await.unwrap_err();
        assert!(refused.is(DocumentReason::SessionConflict));
    }
    assert!(world.read(&c, "a", "2").await.is_err() && world.read(&c, "a", "3").await.is_err());
}
