//! How far groups have come.

use lazuli_log::limits::OFFSET_NOTE_BYTES_MAX;
use lazuli_log::{CLAIM_LIFE, Claim, Claimed, CommittedOffset, GroupOffset, LogReason};

use crate::{SPACE, World};

fn at(hub: &lazuli_log::Hub, partition: u32, offset: u64) -> GroupOffset {
    let committed = CommittedOffset { offset, note: format!("note {offset}") };
    GroupOffset { hub: hub.id(), partition, committed }
}

#[tokio::test]
async fn a_group_finds_what_it_committed_and_nothing_of_others_or_of_a_former_hub() {
    let world = World::new().await;
    let hub = world.hub(2).await;
    let logs = &world.logs;
    assert!(logs.committed(SPACE, "g").await.unwrap().is_empty());
    logs.commit_offsets(SPACE, "g", vec![at(&hub, 0, 5), at(&hub, 1, 7)], None).await.unwrap();
    logs.commit_offsets(SPACE, "g", vec![at(&hub, 0, 6)], None).await.unwrap();
    logs.commit_offsets(SPACE, "h", vec![at(&hub, 0, 1)], None).await.unwrap();
    let found = logs.committed(SPACE, "g").await.unwrap();
    let offsets: Vec<_> = found.iter().map(|(key, it)| (key.1, it.offset)).collect();
    assert_eq!(offsets, [(0, 6), (1, 7)]);
    assert_eq!(found[&(hub.id(), 0)].note, "note 6");
    assert_eq!(logs.group_names(SPACE).await.unwrap(), ["g", "h"]);
    logs.delete_hub(SPACE, "Hub").await.unwrap();
    let new = world.hub(2).await;
    assert!(!logs.committed(SPACE, "g").await.unwrap().contains_key(&(new.id(), 0)));
    assert!(logs.forget_group(SPACE, "g").await.unwrap());
    assert!(!logs.forget_group(SPACE, "g").await.unwrap());
    assert_eq!(logs.group_names(SPACE).await.unwrap(), ["h"]);
}

#[tokio::test]
async fn a_commit_that_is_too_large_changes_nothing() {
    let world = World::new().await;
    let hub = world.hub(1).await;
    let mut long = at(&hub, 0, 2);
    long.committed.note = "x".repeat(OFFSET_NOTE_BYTES_MAX + 1);
    assert!(world.logs.commit_offsets(SPACE, "g", vec![at(&hub, 0, 1), long], None).await.is_err());
    assert!(world.logs.commit_offsets(SPACE, "", vec![at(&hub, 0, 1)], None).await.is_err());
    assert!(world.logs.committed(SPACE, "g").await.unwrap().is_empty());
}

fn claim(holder: u64, level: i64) -> Claim {
    Claim { holder, level, note: format!("node {holder}"), until_ms: 0 }
}

#[tokio::test]
async fn a_group_has_one_coordinator_until_its_claim_ends_and_only_that_one_commits() {
    let world = World::new().await;
    let hub = world.hub(1).await;
    let logs = &world.logs;
    let take =
        async |holder| logs.claim(SPACE, "g", Claimed::Coordinator, claim(holder, 0), false).await;
    assert_eq!(take(1).await.unwrap().holder, 1);
    let other = take(2).await.unwrap();
    assert_eq!((other.holder, other.note.as_str()), (1, "node 1"));
    let commit = async |holder| {
        logs.commit_offsets(SPACE, "g", vec![at(&hub, 0, holder)], Some(holder)).await
    };
    commit(1).await.unwrap();
    let refused = commit(2).await.unwrap_err();
    assert!(refused.is(LogReason::NotCoordinator), "{refused:?}");
    world.pass(CLAIM_LIFE.as_millis() as u64 + 1);
    assert_eq!(take(2).await.unwrap().holder, 2);
    commit(2).await.unwrap();
    assert!(commit(1).await.unwrap_err().is(LogReason::NotCoordinator));
    assert_eq!(logs.committed(SPACE, "g").await.unwrap()[&(hub.id(), 0)].offset, 2);
    logs.give_up(SPACE, "g", Claimed::Coordinator, 1).await.unwrap();
    assert!(logs.claimant(SPACE, "g", Claimed::Coordinator).await.unwrap().is_some());
    logs.give_up(SPACE, "g", Claimed::Coordinator, 2).await.unwrap();
    assert_eq!(logs.claimant(SPACE, "g", Claimed::Coordinator).await.unwrap(), None);
}

#[tokio::test]
async fn a_partition_goes_to_the_reader_of_the_highest_level_and_the_others_notice() {
    let world = World::new().await;
    let hub = world.hub(1).await;
    let logs = &world.logs;
    let what = Claimed::Reader { hub: hub.id(), partition: 0 };
    let take = async |holder, level, again| {
        logs.claim(SPACE, "g", what, claim(holder, level), again).await.unwrap().holder
    };
    assert_eq!(take(1, 3, false).await, 1);
    assert_eq!(take(2, 2, false).await, 1);
    assert_eq!(take(2, 3, false).await, 2);
    // The former one renews no claim that it has lost.
    assert_eq!(take(1, 3, true).await, 2);
    assert_eq!(take(2, 3, true).await, 2);
    assert_eq!(logs.claimant(SPACE, "g", what).await.unwrap().unwrap().level, 3);
    world.pass(CLAIM_LIFE.as_millis() as u64 + 1);
    assert_eq!(logs.claimant(SPACE, "g", what).await.unwrap(), None);
    assert_eq!(take(3, 0, false).await, 3);
}
