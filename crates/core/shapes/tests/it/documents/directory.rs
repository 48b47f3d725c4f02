//! The directory of resources.

use lazuli_shapes::document::{DocumentReason, ResourceKind, Rid};
use lazuli_store::Kind;
use lazuli_value::{Object, Value};

use super::world::{ACCOUNT, World};

fn body(text: &str) -> Value {
    Value::Object(Object::from_properties(vec![("note".into(), text.into())]))
}

#[tokio::test]
async fn resources_are_found_by_name_and_by_id_and_go_with_their_parents() {
    let world = World::new(1).await;
    let documents = &world.documents;
    let database = documents.resource(ACCOUNT, ResourceKind::Database, None, "db").await.unwrap();
    let user = documents
        .create_resource(ACCOUNT, ResourceKind::User, Some(&database.rid), Some("u"), body("one"))
        .await
        .unwrap();
    let permission = documents
        .create_resource(ACCOUNT, ResourceKind::Permission, Some(&user.rid), Some("p"), body("all"))
        .await
        .unwrap();
    let collection = world.collection(2).await;
    let found = documents.resource_by_rid(ACCOUNT, &permission.rid).await.unwrap();
    assert_eq!(found, permission);
    let again = documents
        .create_resource(ACCOUNT, ResourceKind::User, Some(&database.rid), Some("u"), body("two"))
        .await;
    assert!(again.unwrap_err().is(DocumentReason::ResourceExists));

    let replaced = documents
        .replace_resource(ACCOUNT, &user.rid, body("two"), Some(user.version))
        .await
        .unwrap();
    assert!(replaced.version > user.version && replaced.rid == user.rid);
    let stale = documents.replace_resource(ACCOUNT, &user.rid, body("x"), Some(user.version)).await;
    assert!(stale.unwrap_err().is(DocumentReason::EtagMismatch));

    let deleted = documents.delete_resource(ACCOUNT, &database.rid, None).await.unwrap();
    assert_eq!(deleted.len(), 4);
    for rid in [&database.rid, &user.rid, &permission.rid, collection.rid()] {
        let gone = documents.resource_by_rid(ACCOUNT, rid).await.unwrap_err();
        assert_eq!(gone.kind(), Kind::NotFound);
    }
    let gone = documents.open_rid(ACCOUNT, collection.rid()).await.unwrap_err();
    assert!(gone.is(DocumentReason::ResourceMissing));
}

#[tokio::test]
async fn a_list_goes_by_name_page_by_page_and_accounts_are_apart() {
    let world = World::new(1).await;
    let documents = &world.documents;
    for number in 0..7 {
        let id = format!("d{number}");
        let kind = ResourceKind::Database;
        documents.create_resource(ACCOUNT, kind, None, Some(&id), body("")).await.unwrap();
        documents.create_resource("other", kind, None, Some("x"), body("")).await.err();
    }
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let kind = ResourceKind::Database;
        let page = documents.resources(ACCOUNT, kind, None, after.as_deref(), 3).await.unwrap();
        names.extend(page.resources.into_iter().map(|one| one.id));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(names, ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "db"]);
    let offer = documents
        .create_resource(ACCOUNT, ResourceKind::Offer, None, None, body("400"))
        .await
        .unwrap();
    assert_eq!(offer.id, offer.rid.to_string());
    documents.delete_resource(ACCOUNT, &offer.rid, None).await.unwrap();
    let left = documents.resources(ACCOUNT, ResourceKind::Database, None, None, 100).await.unwrap();
    assert_eq!(left.resources.len(), 8);
    let orphan = Rid::parse("AAAD5w==").unwrap();
    let refused = documents
        .create_resource(ACCOUNT, ResourceKind::User, Some(&orphan), Some("u"), body(""))
        .await;
    assert!(refused.is_err());
}
