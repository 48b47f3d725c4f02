//! Blocks and block lists.

use bytes::Bytes;
use lazuli_engine::Result;
use lazuli_shapes::blob::{
    BlobReason, BlobRecord, BlockChoice, Conditions, LeaseAction, NewBlob, Protection, Which,
};

use super::world::{BIG, World, any, blob, bytes, none, versions};

use BlockChoice::{Committed, Latest, Uncommitted};

pub(crate) async fn put_block(world: &World, name: &str, id: &str, bytes: &Bytes) -> Result<()> {
    let content = world.content(&blob(name), bytes).await;
    world.blobs.put_block(&blob(name), Bytes::copy_from_slice(id.as_bytes()), content, None).await
}

pub(crate) async fn commit(
    world: &World,
    name: &str,
    list: &[(BlockChoice, &str)],
    protection: Protection,
) -> Result<BlobRecord> {
    let list = list.iter().map(|(choice, id)| (*choice, Bytes::copy_from_slice(id.as_bytes())));
    let new = NewBlob::default();
    world.blobs.commit_block_list(&blob(name), list.collect(), new, &any(), protection).await
}

async fn names(world: &World, name: &str) -> (Vec<String>, Vec<String>) {
    let list = world.blobs.block_list(&blob(name), Which::Current, &any()).await.unwrap();
    let texts = |blocks: Vec<(Bytes, u64)>| {
        blocks.into_iter().map(|(id, _)| String::from_utf8(id.to_vec()).unwrap()).collect()
    };
    (texts(list.committed), texts(list.uncommitted))
}

#[tokio::test]
async fn blocks_become_a_blob_in_the_order_of_the_list() {
    let world = World::new().await;
    let (a, b, c) = (bytes(BIG, 1), bytes(100, 2), bytes(70_000, 3));
    for (id, block) in [("a", &a), ("b", &b), ("c", &c), ("d", &a)] {
        put_block(&world, "x", id, block).await.unwrap();
    }
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobNotFound.code());
    assert_eq!(
        names(&world, "x").await,
        (vec![], vec!["a".into(), "b".into(), "c".into(), "d".into()])
    );
    let list = [(Latest, "c"), (Uncommitted, "b"), (Latest, "a"), (Latest, "b")];
    let record = commit(&world, "x", &list, none()).await.unwrap();
    let whole = [&c[..], &b, &a, &b].concat();
    assert_eq!(record.length(), whole.len() as u64);
    assert_eq!(world.get("x").await.unwrap(), whole);
    let (committed, waiting) = names(&world, "x").await;
    assert_eq!((committed, waiting), (["c", "b", "a", "b"].map(String::from).into(), vec![]));
}

#[tokio::test]
async fn a_list_takes_blocks_from_where_it_says() {
    let world = World::new().await;
    let (old, new) = (bytes(100, 1), bytes(100, 2));
    put_block(&world, "x", "a", &old).await.unwrap();
    commit(&world, "x", &[(Latest, "a")], none()).await.unwrap();
    put_block(&world, "x", "a", &new).await.unwrap();
    let wrong = commit(&world, "x", &[(Uncommitted, "b")], none()).await.unwrap_err();
    assert_eq!(wrong.code(), BlobReason::InvalidBlockList.code());
    assert_eq!(world.get("x").await.unwrap(), old, "blocks that wait are not the blob's");
    let list = [(Committed, "a"), (Uncommitted, "a"), (Latest, "a")];
    commit(&world, "x", &list, none()).await.unwrap();
    assert_eq!(world.get("x").await.unwrap(), [&old[..], &new, &new].concat());
    let wrong = commit(&world, "x", &[(Uncommitted, "a")], none()).await.unwrap_err();
    assert_eq!(wrong.code(), BlobReason::InvalidBlockList.code(), "a commit forgets what waited");
}

#[tokio::test]
async fn ids_of_one_blob_have_one_length() {
    let world = World::new().await;
    put_block(&world, "x", "aa", &bytes(1, 0)).await.unwrap();
    let other = put_block(&world, "x", "b", &bytes(1, 0)).await.unwrap_err();
    assert_eq!(other.code(), BlobReason::InvalidBlockId.code());
    put_block(&world, "x", "bb", &bytes(1, 0)).await.unwrap();
    for id in ["", &"x".repeat(65)] {
        assert_eq!(
            put_block(&world, "y", id, &bytes(1, 0)).await.unwrap_err().code(),
            BlobReason::InvalidBlockId.code()
        );
    }
}

#[tokio::test]
async fn a_lease_keeps_others_from_putting_blocks() {
    let world = World::new().await;
    world.put("x", &bytes(1, 0)).await;
    let action = LeaseAction::Acquire { id: "l".into(), seconds: None };
    world.blobs.lease(&blob("x"), action, &any()).await.unwrap();
    let refused = put_block(&world, "x", "a", &bytes(1, 0)).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::LeaseIdMissing.code());
    let content = world.content(&blob("x"), &bytes(1, 0)).await;
    world.blobs.put_block(&blob("x"), "a".into(), content, Some("l")).await.unwrap();
    let list = vec![(Latest, "a".into())];
    let conditions = Conditions::leased(Some("l".into()));
    let new = NewBlob::default();
    let x = blob("x");
    let committed = world.blobs.commit_block_list(&x, list, new, &conditions, none());
    assert_eq!(committed.await.unwrap().lease.id.as_deref(), Some("l"), "the lease goes on");
}

#[tokio::test]
async fn blocks_that_are_put_again_or_forgotten_leave_no_files() {
    let world = World::new().await;
    put_block(&world, "x", "a", &bytes(BIG, 1)).await.unwrap();
    put_block(&world, "x", "a", &bytes(BIG, 2)).await.unwrap();
    put_block(&world, "x", "b", &bytes(BIG, 3)).await.unwrap();
    commit(&world, "x", &[(Latest, "a")], none()).await.unwrap();
    world.collect().await;
    assert_eq!(world.blocks.count(), 1);
    assert_eq!(world.get("x").await.unwrap(), bytes(BIG, 2));
    world.delete("x", none()).await.unwrap();
    world.collect().await;
    world.assert_empty().await;
}

#[tokio::test]
async fn a_block_that_stays_keeps_its_file_and_one_that_goes_loses_it() {
    for protection in [none(), versions()] {
        let world = World::new().await;
        for (id, seed) in [("a", 1), ("b", 2), ("c", 3)] {
            put_block(&world, "x", id, &bytes(BIG, seed)).await.unwrap();
        }
        let all = [(Latest, "a"), (Latest, "b"), (Latest, "c"), (Latest, "a")];
        commit(&world, "x", &all, protection).await.unwrap();
        put_block(&world, "x", "d", &bytes(BIG, 4)).await.unwrap();
        let list = [(Latest, "d"), (Latest, "c"), (Latest, "a"), (Latest, "c"), (Latest, "c")];
        commit(&world, "x", &list, protection).await.unwrap();
        world.collect().await;
        let kept = if protection.versioning { 4 } else { 3 };
        assert_eq!(world.blocks.count(), kept, "{protection:?}");
        let whole = [4u8, 3, 1, 3, 3].map(|seed| bytes(BIG, seed)).concat();
        assert_eq!(world.get("x").await.unwrap(), whole);
        commit(&world, "x", &[(Latest, "c")], protection).await.unwrap();
        commit(&world, "x", &[], protection).await.unwrap();
        world.collect().await;
        assert_eq!(world.get("x").await.unwrap().len(), 0);
        if !protection.versioning {
            world.delete("x", protection).await.unwrap();
            world.collect().await;
            world.assert_empty().await;
        }
    }
}

#[tokio::test]
async fn many_blocks_are_one_blob_and_any_range_of_it_is_read() {
    let world = World::new().await;
    let mut list = Vec::new();
    let mut whole = Vec::new();
    for n in 0..2500u32 {
        let id = format!("{n:05}");
        let block = bytes(1 + n as usize % 50, n as u8);
        put_block(&world, "x", &id, &block).await.unwrap();
        whole.extend_from_slice(&block);
        list.push(id);
    }
    let list: Vec<_> = list.iter().map(|id| (Latest, id.as_str())).collect();
    commit(&world, "x", &list, none()).await.unwrap();
    assert_eq!(world.get("x").await.unwrap(), whole);
    let first = 40_000;
    let range = Some(lazuli_shapes::blob::ReadRange { first, last: Some(first + 9) });
    let read = world.read(&blob("x"), Which::Current, range).await.unwrap();
    assert_eq!(read, whole[40_000..40_010]);
}
