//! What happens by itself when time passes: retention, expiry, blocks that wait, leases, the way out of the archive.

use bytes::Bytes;
use lazuli_engine::Lsn;
use lazuli_shapes::blob::{
    BlobReason, BlockChoice, LeaseAction, NewBlobContainer, Tier, Which, limits::UNCOMMITTED_MAX_MS,
};

use super::blocks::{commit, put_block};
use super::world::{BIG, World, any, blob, bytes, container, none, retained, versions};

const DAY_MS: u64 = 24 * 3600 * 1000;

#[tokio::test]
async fn what_was_deleted_is_gone_for_good_when_its_days_are_over() {
    let world = World::new().await;
    world.put("x", &bytes(BIG, 1)).await;
    world.try_put("x", &bytes(BIG, 2), &any(), retained()).await.unwrap();
    world.delete("x", retained()).await.unwrap();
    world.pass(7 * DAY_MS - 60_000);
    world.collect().await;
    assert_eq!(world.blocks.count(), 2);
    world.pass(60_000);
    world.blobs.undelete(&blob("x")).await.unwrap();
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobNotFound.code());
    world.collect().await;
    world.assert_empty().await;
}

#[tokio::test]
async fn a_deleted_container_comes_back_within_its_days_and_its_blobs_go_after_them() {
    let world = World::new().await;
    let (blobs, c) = (&world.blobs, container("c"));
    world.put("x", &bytes(BIG, 1)).await;
    blobs.delete_container(&c, &any(), retained()).await.unwrap();
    world.collect().await;
    assert_eq!(world.blocks.count(), 1);
    world.pass(7 * DAY_MS);
    blobs.create_container(&c, NewBlobContainer::default()).await.unwrap();
    world.put("y", &bytes(BIG, 2)).await;
    world.collect().await;
    world.collect().await;
    assert_eq!(world.blocks.count(), 1, "the blob of the new container");
    assert_eq!(world.get("y").await.unwrap(), bytes(BIG, 2));
}

#[tokio::test]
async fn a_blob_that_expires_is_hidden_at_once_and_then_collected() {
    let world = World::new().await;
    world.put("x", &bytes(BIG, 1)).await;
    let after = |_: &_, now_ms| Ok(Some(now_ms + 10_000));
    world.blobs.set_expiry(&blob("x"), after, &any()).await.unwrap();
    world.collect().await;
    assert!(world.get("x").await.is_ok());
    world.pass(10_000);
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobNotFound.code());
    world.collect().await;
    world.assert_empty().await;
}

#[tokio::test]
async fn blocks_that_nobody_commits_are_gone_a_week_after_the_last_of_them() {
    let world = World::new().await;
    put_block(&world, "x", "a", &bytes(BIG, 1)).await.unwrap();
    world.pass(UNCOMMITTED_MAX_MS - 1000);
    put_block(&world, "x", "b", &Bytes::from_static(b"b")).await.unwrap();
    world.pass(UNCOMMITTED_MAX_MS - 1000);
    world.collect().await;
    let list = [(BlockChoice::Latest, "a")];
    assert_eq!(world.blocks.count(), 1, "the second one has not waited that long");
    world.pass(1000);
    world.collect().await;
    assert_eq!(
        commit(&world, "x", &list, none()).await.unwrap_err().code(),
        BlobReason::InvalidBlockList.code()
    );
    world.assert_empty().await;
}

#[tokio::test]
async fn a_lease_ends_and_can_be_renewed_until_somebody_writes() {
    let world = World::new().await;
    world.put("x", &bytes(1, 1)).await;
    let act = |action| {
        let blobs = world.blobs.clone();
        async move { blobs.lease(&blob("x"), action, &any()).await }
    };
    let renew = || LeaseAction::Renew { id: "l".into() };
    act(LeaseAction::Acquire { id: "l".into(), seconds: Some(15) }).await.unwrap();
    world.pass(15_000);
    act(renew()).await.unwrap();
    assert!(world.try_put("x", &bytes(1, 2), &any(), none()).await.is_err());
    world.pass(15_000);
    world.put("x", &bytes(1, 2)).await;
    assert_eq!(act(renew()).await.unwrap_err().code(), BlobReason::LeaseIdMismatchLease.code());
}

#[tokio::test]
async fn the_lease_of_a_container_can_be_renewed_whatever_was_written() {
    let world = World::new().await;
    let act = |action| {
        let blobs = world.blobs.clone();
        async move { blobs.lease_container(&container("c"), action, &any()).await }
    };
    act(LeaseAction::Acquire { id: "l".into(), seconds: Some(15) }).await.unwrap();
    world.pass(15_000);
    let pairs = vec![("a".to_owned(), "b".to_owned())];
    world.blobs.set_container_metadata(&container("c"), pairs, &any()).await.unwrap();
    world.put("x", &bytes(1, 1)).await;
    act(LeaseAction::Renew { id: "l".into() }).await.unwrap();
    let refused = world.blobs.delete_container(&container("c"), &any(), none()).await;
    assert_eq!(refused.unwrap_err().code(), BlobReason::LeaseIdMissing.code());
}

#[tokio::test]
async fn a_blob_is_out_of_the_archive_after_a_while() {
    let world = World::new().await;
    world.put("x", &bytes(10, 1)).await;
    for tier in [Tier::Archive, Tier::Cool] {
        world.blobs.set_tier(&blob("x"), Which::Current, tier, false, &any()).await.unwrap();
    }
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobBeingRehydrated.code());
    world.pass(DAY_MS);
    assert_eq!(world.get("x").await.unwrap(), bytes(10, 1));
    let record = world.properties("x", Which::Current).await.unwrap();
    assert_eq!(record.tier_at(world.now_ms()).unwrap().tier, Tier::Cool);
}

#[tokio::test]
async fn a_reader_keeps_what_it_reads_from_being_collected() {
    let world = World::new().await;
    for length in [BIG, 2_000_000] {
        world.put("x", &bytes(length, 1)).await;
        let mut read =
            world.blobs.read(&blob("x"), Which::Current, None, &any(), None).await.unwrap();
        world.delete("x", none()).await.unwrap();
        world.collect().await;
        let mut all = Vec::new();
        while let Some(piece) = read.reader.next().await.unwrap() {
            all.extend_from_slice(&piece);
            world.collect().await;
        }
        assert_eq!(all, bytes(length, 1));
        drop(read);
        world.collect().await;
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn times_that_people_see_follow_a_clock_that_was_set_back_and_order_keeps_growing() {
    const YEARS_MS: u64 = 5 * 365 * DAY_MS;
    const SOON_MS: u64 = 60_000;
    let world = World::new().await;
    let snapshot = async |name: &str| {
        world.blobs.snapshot(&blob(name), None, &any(), None, none()).await.unwrap().0
    };
    world.pass(YEARS_MS);
    let ahead = world.put("ahead", &bytes(BIG, 1)).await;
    let ahead_snapshot = snapshot("ahead").await;
    assert!(ahead_snapshot.millis() > world.now_ms() - SOON_MS);
    world.set_clock_back();
    let now_ms = world.now_ms();
    let is_now = |ms: u64| ms.abs_diff(now_ms) < SOON_MS;

    let new = world.put("new", &bytes(BIG, 2)).await;
    assert!(new.changed > ahead.changed, "ETags must differ from all before");
    assert!(is_now(new.modified_ms()) && is_now(new.created_ms));
    let kept = world.properties("new", Which::Current).await.unwrap();
    assert_eq!((kept.modified_ms(), kept.created_ms), (new.modified_ms(), new.created_ms));
    let mut last = Lsn::ZERO;
    for _ in 0..5 {
        let time = snapshot("new").await;
        assert!(time > last && is_now(time.millis()), "{time:?} after {last:?}");
        assert!(world.properties("new", Which::Snapshot(time)).await.is_ok());
        last = time;
    }
    // Snapshots of one blob keep growing, also over one from the time when the clock was ahead.
    assert!(snapshot("ahead").await > ahead_snapshot);
    let put = async |seed| {
        world.try_put("versions", &bytes(BIG, seed), &any(), versions()).await.unwrap()
    };
    let (first, second) = (put(1).await, put(2).await);
    assert!(is_now(first.version.unwrap().millis()) && second.version > first.version);
    let old = Which::Version(first.version.unwrap());
    assert_eq!(world.properties("versions", old).await.unwrap().changed, first.changed);
}
