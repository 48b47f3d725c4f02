//! How far groups have come.

use lazuli_log::limits::OFFSET_NOTE_BYTES_MAX;
use lazuli_log::{CommittedOffset, GroupOffset};

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
    logs.commit_offsets(SPACE, "g", vec![at(&hub, 0, 5), at(&hub, 1, 7)]).await.unwrap();
    logs.commit_offsets(SPACE, "g", vec![at(&hub, 0, 6)]).await.unwrap();
    logs.commit_offsets(SPACE, "h", vec![at(&hub, 0, 1)]).await.unwrap();
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
    assert!(world.logs.commit_offsets(SPACE, "g", vec![at(&hub, 0, 1), long]).await.is_err());
    assert!(world.logs.commit_offsets(SPACE, "", vec![at(&hub, 0, 1)]).await.is_err());
    assert!(world.logs.committed(SPACE, "g").await.unwrap().is_empty());
}
