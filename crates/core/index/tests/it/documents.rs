//! Documents: actions and their outcomes, lookups, counts.

use bytes::Bytes;
use lazuli_index::{Action, ActionKind, IndexReason, Outcome, Scale};

use crate::{ACCOUNT, World, delete, document, upload};

fn action(kind: ActionKind, key: &str, text: &str) -> Action {
    Action { key: key.to_owned(), kind, document: document(key, text) }
}

#[tokio::test]
async fn every_action_answers_for_itself_and_is_read_at_once() {
    let world = World::new().await;
    let index = world.index("hotels").await;
    let rate = Bytes::from_static(br#"{"id":"1","rate":4}"#);
    let outcomes = world
        .write(
            &index,
            vec![
                upload("1", "one"),
                action(ActionKind::Merge, "2", "nothing to merge into"),
                action(ActionKind::MergeOrUpload, "3", "three"),
                Action { key: "1".into(), kind: ActionKind::Merge, document: rate },
                upload("3", "three again"),
                delete("4"),
            ],
        )
        .await;
    use Outcome::{Created, Deleted, Missing, Updated};
    assert_eq!(outcomes, [Created, Missing, Created, Updated, Updated, Deleted]);
    let read = |key: &'static str| world.indexes.document(&index, key);
    let text = |found: Option<lazuli_index::Document>| {
        found.map(|it| String::from_utf8(it.text.to_vec()).unwrap())
    };
    let one = r#"{"id":"1","text":"one","rate":4}"#;
    assert_eq!(text(read("1").await.unwrap()).as_deref(), Some(one));
    assert_eq!(text(read("2").await.unwrap()), None);
    assert_eq!(world.indexes.count(&index).await.unwrap(), 2);
    world.write(&index, vec![delete("1"), delete("1")]).await;
    assert_eq!(world.indexes.count(&index).await.unwrap(), 1);
    assert_eq!(text(read("1").await.unwrap()), None);
}

#[tokio::test]
async fn documents_are_in_twelve_partitions_and_counted_exactly_in_each() {
    let world = World::new().await;
    let index = world.index("many").await;
    world.upload(&index, 0..600, "x").await;
    world.upload(&index, 300..700, "y").await;
    let figures = world.indexes.figures(&index).await.unwrap();
    assert_eq!(figures.len(), 12);
    assert!(figures.iter().all(|one| one.documents > 20), "{figures:?}");
    assert_eq!(figures.iter().map(|one| one.documents).sum::<u64>(), 700);
}

#[tokio::test]
async fn a_batch_that_meets_a_split_is_written_whole() {
    let world = World::new().await;
    let index = world.index("split").await;
    world.upload(&index, 0..200, "x").await;
    let routes = lazuli_engine::KeyRange::all();
    let catalog = world.engine().manager().catalog().clone();
    let partitions = catalog.partitions_in(index.id(), &routes, 100).await.unwrap();
    let partition = partitions[3].partition.clone();
    let at = world.engine().middle(&partition, lazuli_engine::Middle::Size).await.unwrap();
    world.engine().split((&partition).into(), at).await.unwrap();
    world.upload(&index, 0..400, "y").await;
    assert_eq!(world.indexes.count(&index).await.unwrap(), 400);
    assert_eq!(world.indexes.figures(&index).await.unwrap().len(), 13);
}

#[tokio::test]
async fn an_index_is_one_of_its_name_and_versions_guard_it() {
    let world = World::new().await;
    let indexes = &world.indexes;
    let index = world.index("one").await;
    let again = indexes.create_index(ACCOUNT, "one", "{}", Scale::default()).await.unwrap_err();
    assert!(again.is(IndexReason::IndexExists));
    let changed =
        indexes.redefine_index(ACCOUNT, "one", r#"{"a":1}"#, Some(index.version)).await.unwrap();
    assert_eq!((&*changed.definition, changed.version), (r#"{"a":1}"#, index.version + 1));
    let stale = indexes.redefine_index(ACCOUNT, "one", "{}", Some(index.version)).await;
    assert!(stale.unwrap_err().is(IndexReason::VersionDiffers));
    let stale = indexes.delete_index(ACCOUNT, "one", Some(index.version)).await;
    assert!(stale.unwrap_err().is(IndexReason::VersionDiffers));
    world.index("two").await;
    let names = |all: Vec<lazuli_index::Index>| -> Vec<String> {
        all.into_iter().map(|index| index.name).collect()
    };
    assert_eq!(names(indexes.indexes(ACCOUNT).await.unwrap()), ["one", "two"]);
    assert!(indexes.indexes("other").await.unwrap().is_empty());
    indexes.delete_index(ACCOUNT, "one", Some(changed.version)).await.unwrap();
    assert!(indexes.index(ACCOUNT, "one").await.unwrap_err().is(IndexReason::IndexNotFound));
    let anew = world.index("one").await;
    assert_eq!(indexes.count(&anew).await.unwrap(), 0);
}
