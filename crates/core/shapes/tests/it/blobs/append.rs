//! Append blobs.

use lazuli_engine::Result;
use lazuli_shapes::blob::{AppendConditions, BlobKind, BlobReason, BlobRecord, NewBlob, Which};

use super::world::{BIG, World, any, blob, bytes, none};

async fn append(
    world: &World,
    name: &str,
    length: usize,
    seed: u8,
    wanted: AppendConditions,
) -> Result<(u64, BlobRecord)> {
    let content = world.content(&blob(name), &bytes(length, seed)).await;
    world.blobs.append_block(&blob(name), content, wanted, &any()).await
}

#[tokio::test]
async fn blocks_are_appended_under_conditions_until_the_blob_is_sealed() {
    let world = World::new().await;
    let new = NewBlob::default();
    let made = world.blobs.put_append_blob(&blob("x"), new, &any(), none()).await.unwrap();
    assert_eq!((made.kind, made.length()), (BlobKind::Append, 0));
    let free = AppendConditions::default();
    assert_eq!(append(&world, "x", 10, 1, free).await.unwrap().0, 0);
    let at = |position| AppendConditions { position: Some(position), max_length: None };
    let up_to = |most| AppendConditions { position: None, max_length: Some(most) };
    let refused = append(&world, "x", 10, 2, at(9)).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::AppendPositionNotMet.code());
    assert_eq!(append(&world, "x", BIG, 2, at(10)).await.unwrap().0, 10);
    let length = 10 + BIG as u64;
    let refused = append(&world, "x", 10, 3, up_to(length + 9)).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::MaxBlobSizeNotMet.code());
    let (offset, record) = append(&world, "x", 10, 3, up_to(length + 10)).await.unwrap();
    assert_eq!((offset, record.append_blocks), (length, 3));
    let whole = [bytes(10, 1), bytes(BIG, 2), bytes(10, 3)].concat();
    assert_eq!(world.get("x").await.unwrap(), whole);
    assert!(world.blobs.seal(&blob("x"), Some(3), &any()).await.is_err());
    assert!(world.blobs.seal(&blob("x"), None, &any()).await.unwrap().is_sealed);
    let refused = append(&world, "x", 10, 4, free).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::BlobSealed.code());
}

#[tokio::test]
async fn a_snapshot_of_an_append_blob_does_not_grow_with_it() {
    let world = World::new().await;
    let free = AppendConditions::default();
    let new = NewBlob::default();
    world.blobs.put_append_blob(&blob("x"), new, &any(), none()).await.unwrap();
    append(&world, "x", 10, 1, free).await.unwrap();
    let (time, _) = world.blobs.snapshot(&blob("x"), None, &any(), None, none()).await.unwrap();
    append(&world, "x", BIG, 2, free).await.unwrap();
    let then = world.read(&blob("x"), Which::Snapshot(time), None).await.unwrap();
    assert_eq!(then, bytes(10, 1));
    assert_eq!(world.get("x").await.unwrap().len(), 10 + BIG);
}

#[tokio::test]
async fn nothing_is_appended_to_a_blob_of_another_type() {
    let world = World::new().await;
    let free = AppendConditions::default();
    assert_eq!(
        append(&world, "x", 1, 1, free).await.unwrap_err().code(),
        BlobReason::BlobNotFound.code()
    );
    world.put("x", &bytes(1, 0)).await;
    let refused = append(&world, "x", 1, 1, free).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::BlobTypeMismatch.code());
    let new = NewBlob::default();
    let refused = world.blobs.put_append_blob(&blob("x"), new, &any(), none()).await;
    assert_eq!(refused.unwrap_err().code(), BlobReason::BlobTypeMismatch.code());
}
