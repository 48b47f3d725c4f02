//! Appending, reading, finding, and what the retention leaves.

use std::time::Duration;

use lazuli_engine::Kind;
use lazuli_log::{HubSettings, LogReason, NewBatch, Producer, ReadLimit, Start};

use crate::{SPACE, World, batch};

#[tokio::test]
async fn records_are_read_in_the_order_of_their_offsets_from_any_of_them() {
    let world = World::new().await;
    let hub = world.hub(2).await;
    assert_eq!(world.append(&hub, &["a", "b", "c"]).await.first, 0);
    assert_eq!(world.append(&hub, &["d"]).await.first, 3);
    assert_eq!(world.append(&hub, &["e", "f"]).await.first, 4);
    assert_eq!(world.texts(&hub, 0).await, ["a", "b", "c", "d", "e", "f"]);
    assert!(world.texts(&hub, 1).await.is_empty());
    for (offset, first) in [(0, 0), (1, 0), (2, 0), (3, 3), (5, 4)] {
        let page = world.read(&hub, 0, offset).await;
        assert_eq!(page.batches[0].first, first, "{offset}");
        assert_eq!(page.batches.last().unwrap().end(), 6);
    }
    assert!(world.read(&hub, 0, 6).await.batches.is_empty());
    let one = ReadLimit { bytes: 1, batches: 10 };
    let page = world.logs.read(&hub, 0, 1, one).await.unwrap();
    assert_eq!(page.batches.len(), 1);
    let error = world.logs.read(&hub, 2, 0, one).await.unwrap_err();
    assert!(error.is(LogReason::NoSuchPartition));
}

#[tokio::test]
async fn many_appends_at_once_leave_no_gap() {
    let world = World::new().await;
    let hub = world.hub(1).await;
    let mut tasks = Vec::new();
    for number in 0..100 {
        let (logs, hub) = (world.logs.clone(), hub.clone());
        let text = number.to_string();
        tasks.push(tokio::spawn(async move { logs.append(&hub, 0, batch(&[&text, "x"])).await }));
    }
    let mut offsets = Vec::new();
    for task in tasks {
        offsets.push(task.await.unwrap().unwrap().first);
    }
    offsets.sort_unstable();
    assert_eq!(offsets, (0..100).map(|number| 2 * number).collect::<Vec<_>>());
    assert_eq!(world.texts(&hub, 0).await.len(), 200);
}

#[tokio::test]
async fn a_time_leads_to_the_first_record_that_came_then_or_later() {
    let world = World::new().await;
    let hub = world.hub(1).await;
    let start_ms = 1_800_000_000_000;
    let find = async |time| world.logs.find(&hub, 0, Start::Time(time)).await.unwrap();
    assert_eq!(find(0).await, (0, None));
    for _ in 0..20 {
        world.append(&hub, &["a", "b", "c"]).await;
        world.pass(10);
    }
    assert_eq!(find(0).await, (0, Some(start_ms)));
    for number in 0..20 {
        let at = start_ms + 10 * number;
        assert_eq!(find(at).await, (3 * number, Some(at)), "{number}");
        if number > 0 {
            assert_eq!(find(at - 5).await, (3 * number, Some(at)), "{number}");
        }
    }
    assert_eq!(find(start_ms + 191).await, (60, None));
    assert_eq!(world.logs.find(&hub, 0, Start::First).await.unwrap().0, 0);
    assert_eq!(world.logs.find(&hub, 0, Start::End).await.unwrap().0, 60);
}

#[tokio::test]
async fn what_an_idempotent_producer_repeats_is_appended_once() {
    let world = World::new().await;
    let hub = world.hub(1).await;
    let send = async |epoch, sequence| {
        let producer = Some(Producer { id: 7, epoch, sequence });
        let batch = NewBatch::amqp(vec!["x".into(), "y".into()], producer);
        world.logs.append(&hub, 0, batch).await
    };
    let first = send(0, 0).await.unwrap();
    let again = send(0, 0).await.unwrap();
    assert_eq!((first.first, first.is_repeat), (0, false));
    assert_eq!((again.first, again.is_repeat), (0, true));
    assert_eq!(send(0, 2).await.unwrap().first, 2);
    assert!(send(0, 6).await.unwrap_err().is(LogReason::OutOfSequence));
    assert_eq!(send(1, 0).await.unwrap().first, 4);
    assert!(send(0, 4).await.unwrap_err().is(LogReason::ProducerFenced));
    assert_eq!(world.texts(&hub, 0).await.len(), 6);
}

#[tokio::test]
async fn old_batches_go_whole_and_what_is_left_is_read_from_where_it_begins() {
    let world = World::new().await;
    let mut settings = HubSettings::new(1);
    settings.retention = Some(Duration::from_secs(60));
    let hub = world.logs.create_hub(SPACE, "old", &settings).await.unwrap();
    for number in 0..600 {
        world.append(&hub, &[&number.to_string(), "x"]).await;
        world.pass(100);
    }
    world.logs.retain_all().await.unwrap();
    assert_eq!(world.texts(&hub, 0).await.len(), 1_200);
    world.pass(30_000);
    world.logs.retain_all().await.unwrap();
    let left = world.texts(&hub, 0).await;
    assert_eq!((left[0].as_str(), left.len()), ("300", 600));
    let state = world.logs.state(&hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.batches), (600, 1_200, 300));
    world.pass(100_000);
    world.logs.retain_all().await.unwrap();
    let state = world.logs.state(&hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.bytes, state.batches), (1_200, 1_200, 0, 0));
    assert_eq!(world.append(&hub, &["new"]).await.first, 1_200);
    assert_eq!(world.texts(&hub, 0).await, ["new"]);
}

#[tokio::test]
async fn a_log_keeps_as_many_bytes_as_it_may_and_always_its_last_batch() {
    let world = World::new().await;
    let mut settings = HubSettings::new(1);
    settings.retention_bytes = Some(1_000);
    let hub = world.logs.create_hub(SPACE, "small", &settings).await.unwrap();
    for _ in 0..50 {
        world.append(&hub, &[&"x".repeat(78)]).await;
    }
    world.logs.retain_all().await.unwrap();
    let state = world.logs.state(&hub, 0).await.unwrap();
    assert_eq!((state.bytes, state.batches, state.first), (1_000, 10, 40));
    world.append(&hub, &[&"x".repeat(5_000)]).await;
    world.logs.retain_all().await.unwrap();
    assert_eq!(world.logs.state(&hub, 0).await.unwrap().first, 50);
}

#[tokio::test]
async fn hubs_are_created_listed_changed_and_deleted_in_any_case_of_their_names() {
    let world = World::new().await;
    let hub = world.hub(3).await;
    assert_eq!((hub.name.as_str(), hub.settings.partitions), ("Hub", 3));
    let again = world.logs.create_hub(SPACE, "HUB", &HubSettings::new(1)).await.unwrap_err();
    assert_eq!(again.kind(), Kind::Exists);
    world.logs.create_hub(SPACE, "other", &HubSettings::new(1)).await.unwrap();
    world.logs.create_hub("elsewhere", "third", &HubSettings::new(1)).await.unwrap();
    let listed = world.logs.hubs(SPACE, None, 10).await.unwrap();
    let names: Vec<_> = listed.iter().map(|hub| hub.name.as_str()).collect();
    assert_eq!(names, ["Hub", "other"]);
    let changed = world.logs.add_group(SPACE, "hub", "readers").await.unwrap();
    assert!(changed.has_group("Readers") && changed.has_group("$default"));
    assert!(!changed.has_group("others"));
    assert_eq!(changed.settings.partitions, 3);
    world.append(&hub, &["a"]).await;
    world.logs.delete_hub(SPACE, "hUb").await.unwrap();
    let gone = world.logs.hub(SPACE, "Hub").await.unwrap_err();
    assert!(gone.is(LogReason::HubNotFound));
    let new = world.hub(1).await;
    assert!(world.texts(&new, 0).await.is_empty());
    for name in ["", "a/b"] {
        let refused = world.logs.create_hub(SPACE, name, &HubSettings::new(1)).await.unwrap_err();
        assert!(refused.is(LogReason::BadName));
    }
    let none = world.logs.create_hub(SPACE, "none", &HubSettings::new(0)).await.unwrap_err();
    assert!(none.is(LogReason::BadSettings));
}

#[tokio::test]
async fn a_waiting_reader_is_woken_by_the_append() {
    let world = World::new().await;
    let hub = world.hub(2).await;
    let mut waiter = world.logs.waiter();
    waiter.watch(hub.id(), 0);
    let waiting = tokio::spawn(async move { waiter.woken().await });
    world.logs.append(&hub, 1, batch(&["elsewhere"])).await.unwrap();
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    world.append(&hub, &["here"]).await;
    tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
}
