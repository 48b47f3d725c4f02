//! Snapshots, versions, deletions for a while, and the way back.

use lazuli_shapes::blob::{
    BlobReason, Conditions, DeleteOptions, Immutability, LeaseAction, LeaseState, Snapshots, Tier,
    Which,
};

use super::world::{BIG, World, any, blob, bytes, none, retained, versions};

const INCLUDE: DeleteOptions = DeleteOptions { snapshots: Snapshots::Include, permanent: false };

#[tokio::test]
async fn a_snapshot_keeps_what_the_blob_was_and_must_go_before_it() {
    let world = World::new().await;
    for length in [10, BIG] {
        world.put("x", &bytes(length, 1)).await;
        let metadata = Some(vec![("a".to_owned(), "b".to_owned())]);
        let (time, record) =
            world.blobs.snapshot(&blob("x"), metadata.clone(), &any(), None, none()).await.unwrap();
        assert_eq!(Some(&record.metadata), metadata.as_ref());
        world.put("x", &bytes(length, 2)).await;
        world.collect().await;
        let then = world.read(&blob("x"), Which::Snapshot(time), None).await.unwrap();
        assert_eq!(then, bytes(length, 1));
        assert_eq!(world.get("x").await.unwrap(), bytes(length, 2));
        let refused = world.delete("x", none()).await.unwrap_err();
        assert_eq!(refused.code(), BlobReason::SnapshotsPresent.code());
        let only = DeleteOptions { snapshots: Snapshots::Only, permanent: false };
        world.delete_state("x", Which::Current, only, none()).await.unwrap();
        assert!(world.read(&blob("x"), Which::Snapshot(time), None).await.is_err());
        world.delete("x", none()).await.unwrap();
        world.collect().await;
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn every_write_makes_a_version_and_each_is_read_and_deleted_by_itself() {
    let world = World::new().await;
    let first = world.try_put("x", &bytes(BIG, 1), &any(), versions()).await.unwrap();
    let second = world.try_put("x", &bytes(10, 2), &any(), versions()).await.unwrap();
    let pairs = vec![("a".to_owned(), "b".to_owned())];
    let third = world
        .blobs
        .set_metadata(&blob("x"), pairs.clone(), &any(), versions(), None)
        .await
        .unwrap();
    let read = |version| world.read(&X, Which::Version(version), None);
    static X: std::sync::LazyLock<lazuli_shapes::blob::BlobAddress> =
        std::sync::LazyLock::new(|| blob("x"));
    let [one, two, three] = [first, second, third].map(|record| record.version.unwrap());
    assert_eq!(read(one).await.unwrap(), bytes(BIG, 1));
    assert_eq!(read(two).await.unwrap(), bytes(10, 2));
    assert_eq!(read(three).await.unwrap(), bytes(10, 2));
    assert_eq!(world.properties("x", Which::Version(two)).await.unwrap().metadata, []);
    assert_eq!(world.properties("x", Which::Version(three)).await.unwrap().metadata, pairs);
    world.delete("x", versions()).await.unwrap();
    assert!(world.get("x").await.is_err());
    assert_eq!(read(three).await.unwrap(), bytes(10, 2), "the last version stays");
    for version in [one, two, three] {
        let which = Which::Version(version);
        world.delete_state("x", which, DeleteOptions::default(), versions()).await.unwrap();
        assert!(read(version).await.is_err());
    }
    world.collect().await;
    world.assert_empty().await;
}

#[tokio::test]
async fn what_was_deleted_for_a_while_comes_back_whole() {
    let world = World::new().await;
    world.try_put("x", &bytes(BIG, 1), &any(), retained()).await.unwrap();
    let (time, _) = world.blobs.snapshot(&blob("x"), None, &any(), None, none()).await.unwrap();
    world.try_put("x", &bytes(BIG, 2), &any(), retained()).await.unwrap();
    let outcome = world.delete_state("x", Which::Current, INCLUDE, retained()).await.unwrap();
    assert!(!outcome.permanent);
    assert!(world.get("x").await.is_err());
    assert!(world.read(&blob("x"), Which::Snapshot(time), None).await.is_err());
    world.collect().await;
    world.blobs.undelete(&blob("x")).await.unwrap();
    assert_eq!(world.get("x").await.unwrap(), bytes(BIG, 2));
    let then = world.read(&blob("x"), Which::Snapshot(time), None).await.unwrap();
    assert_eq!(then, bytes(BIG, 1));
    let missing = world.blobs.undelete(&blob("y")).await.unwrap_err();
    assert_eq!(missing.code(), BlobReason::BlobNotFound.code());
}

#[tokio::test]
async fn a_new_blob_in_the_place_of_a_deleted_one_stays_when_that_is_restored() {
    let world = World::new().await;
    world.put("x", &bytes(10, 1)).await;
    world.delete("x", retained()).await.unwrap();
    world.try_put("x", &bytes(10, 2), &any(), retained()).await.unwrap();
    world.blobs.undelete(&blob("x")).await.unwrap();
    assert_eq!(world.get("x").await.unwrap(), bytes(10, 2));
}

#[tokio::test]
async fn a_leased_blob_is_written_and_deleted_only_with_its_id() {
    let world = World::new().await;
    world.put("x", &bytes(10, 1)).await;
    let action = LeaseAction::Acquire { id: "l".into(), seconds: Some(30) };
    let (record, _) = world.blobs.lease(&blob("x"), action, &any()).await.unwrap();
    assert_eq!(record.lease.state(record.changed.millis()), LeaseState::Leased);
    let refused = world.try_put("x", &bytes(10, 2), &any(), none()).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::LeaseIdMissing.code());
    assert_eq!(
        world.delete("x", none()).await.unwrap_err().code(),
        BlobReason::LeaseIdMissing.code()
    );
    let with = |id: &str| Conditions::leased(Some(id.into()));
    let wrong = world.try_put("x", &bytes(10, 2), &with("m"), none()).await.unwrap_err();
    assert_eq!(wrong.code(), BlobReason::LeaseIdMismatchBlob.code());
    world.try_put("x", &bytes(10, 2), &with("l"), none()).await.unwrap();
    let release = LeaseAction::Release { id: "l".into() };
    world.blobs.lease(&blob("x"), release, &any()).await.unwrap();
    let wrong = world.try_put("x", &bytes(10, 2), &with("l"), none()).await.unwrap_err();
    assert_eq!(wrong.code(), BlobReason::LeaseNotPresentBlob.code());
    world.delete("x", none()).await.unwrap();
}

#[tokio::test]
async fn a_blob_in_the_archive_is_neither_read_nor_written_until_it_is_out() {
    let world = World::new().await;
    world.put("x", &bytes(10, 1)).await;
    let tier = |tier| world.blobs.set_tier(&X, Which::Current, tier, false, &ANY);
    static X: std::sync::LazyLock<lazuli_shapes::blob::BlobAddress> =
        std::sync::LazyLock::new(|| blob("x"));
    static ANY: std::sync::LazyLock<Conditions> = std::sync::LazyLock::new(any);
    tier(Tier::Archive).await.unwrap();
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobArchived.code());
    let refused = world.try_put("x", &bytes(10, 2), &any(), none()).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::BlobArchived.code());
    let record = tier(Tier::Hot).await.unwrap();
    assert_eq!(record.tier.unwrap().rehydration.unwrap().to, Tier::Hot);
    assert_eq!(world.get("x").await.unwrap_err().code(), BlobReason::BlobBeingRehydrated.code());
    assert_eq!(tier(Tier::Cool).await.unwrap_err().code(), BlobReason::BlobBeingRehydrated.code());
    assert_eq!(tier(Tier::Premium(4)).await.unwrap_err().code(), BlobReason::TierNotOfType.code());
}

#[tokio::test]
async fn what_a_policy_or_a_hold_keeps_is_neither_replaced_nor_deleted() {
    let world = World::new().await;
    world.put("x", &bytes(10, 1)).await;
    let (x, which) = (blob("x"), Which::Current);
    let policy = |until_ms, is_locked| Some(Immutability { until_ms, is_locked });
    world.blobs.set_immutability(&x, which, policy(u64::MAX, false), &any()).await.unwrap();
    assert_eq!(
        world.delete("x", none()).await.unwrap_err().code(),
        BlobReason::BlobImmutable.code()
    );
    let refused = world.try_put("x", &bytes(10, 2), &any(), none()).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::BlobImmutable.code());
    world.blobs.set_immutability(&x, which, policy(1 << 50, true), &any()).await.unwrap();
    let shorter = world.blobs.set_immutability(&x, which, policy(1 << 49, true), &any()).await;
    assert_eq!(shorter.unwrap_err().code(), BlobReason::ImmutabilityLocked.code());
    let none_any_more = world.blobs.set_immutability(&x, which, None, &any()).await;
    assert_eq!(none_any_more.unwrap_err().code(), BlobReason::ImmutabilityLocked.code());
    world.put("y", &bytes(10, 1)).await;
    world.blobs.set_legal_hold(&blob("y"), which, true).await.unwrap();
    assert_eq!(world.delete("y", none()).await.unwrap_err().code(), BlobReason::LegalHold.code());
    world.blobs.set_legal_hold(&blob("y"), which, false).await.unwrap();
    world.delete("y", none()).await.unwrap();
}
