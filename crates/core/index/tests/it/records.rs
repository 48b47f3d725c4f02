//! What is kept beside the indexes.

use bytes::Bytes;
use lazuli_engine::Kind;
use lazuli_index::{Expect, IndexReason, RecordKind};

use crate::{ACCOUNT, World};

#[tokio::test]
async fn records_are_kept_by_kind_and_guarded_by_their_versions() {
    let world = World::new().await;
    let indexes = &world.indexes;
    let put = |name: &'static str, body: &'static str, expect| {
        let body = Bytes::from_static(body.as_bytes());
        indexes.put_record(ACCOUNT, RecordKind::SynonymMap, name, body, expect)
    };
    let (is_new, first) = put("a", "1", Expect::Nothing).await.unwrap();
    assert!(is_new);
    let again = put("a", "2", Expect::Nothing).await.unwrap_err();
    assert!(again.is(IndexReason::RecordExists));
    let (is_new, second) = put("a", "2", Expect::Version(first)).await.unwrap();
    assert!(!is_new && second > first);
    let stale = put("a", "3", Expect::Version(first)).await.unwrap_err();
    assert!(stale.is(IndexReason::VersionDiffers));
    assert_eq!(put("z", "1", Expect::Any).await.unwrap_err().kind(), Kind::Precondition);
    put("b", "1", Expect::Anything).await.unwrap();
    let kind = RecordKind::SynonymMap;
    let found = indexes.records(ACCOUNT, kind).await.unwrap();
    let found: Vec<_> = found.iter().map(|one| (&one.name[..], &one.body[..])).collect();
    assert_eq!(found, [("a", &b"2"[..]), ("b", &b"1"[..])]);
    assert!(indexes.records(ACCOUNT, RecordKind::Alias).await.unwrap().is_empty());
    assert!(indexes.records("other", kind).await.unwrap().is_empty());
    assert!(indexes.delete_record(ACCOUNT, kind, "a", Expect::Anything).await.unwrap());
    assert!(!indexes.delete_record(ACCOUNT, kind, "a", Expect::Anything).await.unwrap());
    let gone = indexes.record(ACCOUNT, kind, "a").await.unwrap_err();
    assert!(gone.is(IndexReason::RecordNotFound));
}
