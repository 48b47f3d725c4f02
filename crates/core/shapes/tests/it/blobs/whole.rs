//! Containers, and blobs that are put, read and deleted whole.

use bytes::Bytes;
use lazuli_engine::Kind;
use lazuli_shapes::blob::{
    BlobReason, Conditions, Etags, Headers, NewBlob, NewBlobContainer, PublicAccess, ReadRange,
    Which,
};

use super::world::{BIG, World, any, blob, bytes, container, none};

#[tokio::test]
async fn a_container_is_created_once_changed_deleted_and_empty_when_created_again() {
    let world = World::empty().await;
    let blobs = &world.blobs;
    let c = container("c");
    assert_eq!(
        blobs.container(&c, None).await.unwrap_err().code(),
        BlobReason::ContainerNotFound.code()
    );
    let new = NewBlobContainer { metadata: vec![("a".into(), "b".into())], ..Default::default() };
    let made = blobs.create_container(&c, new.clone()).await.unwrap();
    assert_eq!(blobs.container(&c, None).await.unwrap(), made);
    let again = blobs.create_container(&c, new.clone()).await.unwrap_err();
    assert_eq!(again.code(), BlobReason::ContainerExists.code());
    world.put("x", &bytes(10, 0)).await;
    let changed = blobs.set_container_metadata(&c, vec![], &any()).await.unwrap();
    assert!(changed.changed > made.changed);
    let access = PublicAccess::Blob;
    let changed = blobs.set_container_access(&c, access, "policies".into(), &any()).await.unwrap();
    let found = blobs.container(&c, None).await.unwrap();
    assert_eq!((found.public_access, &found.policies[..]), (access, &b"policies"[..]));
    let stale = Conditions { if_unmodified_since: Some(1), ..any() };
    let refused = blobs.delete_container(&c, &stale, none()).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::ConditionNotMet.code());
    assert_eq!(found.changed, changed.changed);
    blobs.delete_container(&c, &any(), none()).await.unwrap();
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::ContainerNotFound.code());
    blobs.create_container(&c, new).await.unwrap();
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobNotFound.code());
}

#[tokio::test]
async fn what_was_put_is_read_whole_and_in_ranges_whatever_its_size() {
    let world = World::new().await;
    for length in [0, 1, 65_536, 65_537, BIG, 1_000_000] {
        let bytes = bytes(length, 3);
        let record = world.put("x", &bytes).await;
        assert_eq!(record.length(), length as u64);
        assert_eq!(world.get("x").await.unwrap(), bytes, "{length}");
        for (first, last) in [(0, Some(0)), (5, None), (100, Some(70_000)), (0, Some(1 << 40))] {
            let range = Some(ReadRange { first, last });
            let read = world.read(&blob("x"), Which::Current, range).await;
            if first >= length as u64 {
                assert_eq!(read.unwrap_err().code(), BlobReason::InvalidRange.code());
                continue;
            }
            let end = last.map_or(length, |last| length.min(last as usize + 1));
            assert_eq!(read.unwrap(), bytes.slice(first as usize..end), "{first} {last:?}");
        }
    }
}

#[tokio::test]
async fn small_contents_have_no_files_and_large_ones_have_one() {
    let world = World::new().await;
    world.put("small", &bytes(65_536, 0)).await;
    assert_eq!(world.blocks.count(), 0);
    world.put("large", &bytes(65_537, 0)).await;
    assert_eq!(world.blocks.count(), 1);
}

#[tokio::test]
async fn a_content_tells_its_sums() {
    let world = World::new().await;
    let content = world.content(&blob("x"), &Bytes::from_static(b"123456789")).await;
    assert_eq!(content.crc64, 0xae8b_1486_0a79_9888);
    let md5 = content.md5.unwrap().map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(md5, "25f9e794323b453885f5181f1b624d0b");
}

#[tokio::test]
async fn an_upload_that_is_given_up_or_refused_leaves_no_file() {
    let world = World::new().await;
    drop(world.content(&blob("x"), &bytes(BIG, 0)).await);
    world.wait_for_files(0).await;
    let conditions = Conditions { if_match: Some(Etags::Any), ..any() };
    let refused = world.try_put("x", &bytes(BIG, 0), &conditions, none()).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::ConditionNotMet.code());
    world.wait_for_files(0).await;
}

#[tokio::test]
async fn conditions_hold_at_the_moment_of_the_write() {
    let world = World::new().await;
    let first = world.put("x", &bytes(10, 0)).await;
    let absent = Conditions { if_none_match: Some(Etags::Any), ..any() };
    let refused = world.try_put("x", &bytes(10, 1), &absent, none()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (Kind::Exists, BlobReason::BlobExists.code()));
    let same = |etag| Conditions { if_match: Some(Etags::These(vec![etag])), ..any() };
    let second = world.try_put("x", &bytes(10, 1), &same(first.changed), none()).await.unwrap();
    assert!(second.changed > first.changed);
    let refused = world.try_put("x", &bytes(10, 2), &same(first.changed), none()).await;
    assert_eq!(refused.unwrap_err().code(), BlobReason::ConditionNotMet.code());
    assert_eq!(world.get("x").await.unwrap(), bytes(10, 1));
}

#[tokio::test]
async fn a_deleted_blob_is_gone() {
    let world = World::new().await;
    world.put("x", &bytes(10, 0)).await;
    assert!(world.delete("x", none()).await.unwrap().permanent);
    assert_eq!(
        world.delete("x", none()).await.unwrap_err().code(),
        BlobReason::BlobNotFound.code()
    );
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobNotFound.code());
}

#[tokio::test]
async fn headers_metadata_and_tags_are_kept_and_replaced() {
    let world = World::new().await;
    let content = world.content(&blob("x"), &bytes(10, 0)).await;
    let pairs = |value: &str| vec![("name".to_owned(), value.to_owned())];
    let headers = |text: &str| Headers { content_type: Some(text.into()), ..Default::default() };
    let new = NewBlob {
        headers: headers("one"),
        metadata: pairs("one"),
        tags: pairs("one"),
        ..NewBlob::default()
    };
    let address = blob("x");
    let blobs = &world.blobs;
    let put = blobs.put_block_blob(&address, content, new, &any(), none()).await.unwrap();
    assert_eq!(world.properties("x", Which::Current).await.unwrap(), put);
    let one = blobs.set_headers(&address, headers("two"), &any()).await.unwrap();
    let two = blobs.set_metadata(&address, pairs("two"), &any(), none(), None).await.unwrap();
    blobs.set_tags(&address, Which::Current, pairs("two"), &any()).await.unwrap();
    assert!(put.changed < one.changed && one.changed < two.changed);
    let found = world.properties("x", Which::Current).await.unwrap();
    assert_eq!(found.changed, two.changed, "tags are no modification");
    assert_eq!((found.headers, found.metadata), (headers("two"), pairs("two")));
    assert_eq!(found.tags, pairs("two"));
}
