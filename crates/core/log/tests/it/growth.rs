//! More partitions while keys are written.

use std::collections::BTreeMap;

use lazuli_log::{LogReason, partition_of_key};

use crate::{SPACE, World, batch};

#[tokio::test]
async fn keys_stay_in_order_while_partitions_are_added() {
    let world = World::new().await;
    world.hub(2).await;
    let mut writers = Vec::new();
    for key in 0..12 {
        let logs = world.logs.clone();
        writers.push(tokio::spawn(async move {
            let key = format!("key-{key}");
            let mut went = Vec::new();
            for number in 0..60 {
                let text = format!("{key} {number}");
                let sent = logs.append_by_key(SPACE, "Hub", &key, batch(&[&text])).await.unwrap();
                went.push((sent.partition, number));
                tokio::task::yield_now().await;
            }
            (key, went)
        }));
    }
    for count in [3, 5, 8] {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let grown = world.logs.set_partitions(SPACE, "hub", count).await.unwrap();
        assert_eq!(grown.settings.partitions, count);
    }
    let hub = world.logs.hub(SPACE, "hub").await.unwrap();
    let mut found: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
    let mut all = Vec::new();
    for writer in writers {
        all.push(writer.await.unwrap());
    }
    for partition in 0..8 {
        for text in world.texts(&hub, partition).await {
            let (key, number) = text.split_once(' ').unwrap();
            let number = number.parse().unwrap();
            found.entry(key.to_owned()).or_default().push((partition, number));
        }
    }
    for (key, went) in all {
        // Within a partition the numbers grow, and once a key has left a partition for good it is where it now belongs.
        let records = &found[&key];
        assert_eq!(records.len(), 60, "{key}");
        let mut by_number = records.clone();
        by_number.sort_by_key(|(_, number)| *number);
        assert_eq!(by_number, went);
        for partition in 0..8 {
            let here: Vec<_> = records.iter().filter(|(at, _)| *at == partition).collect();
            assert!(here.is_sorted_by_key(|(_, number)| *number), "{key} in {partition}");
        }
        let belongs = partition_of_key(&key, 8);
        let text = format!("{key} last");
        let sent = world.logs.append_by_key(SPACE, "Hub", &key, batch(&[&text])).await.unwrap();
        assert_eq!(sent.partition, belongs);
    }
}

#[tokio::test]
async fn partitions_only_grow() {
    let world = World::new().await;
    world.hub(4).await;
    let same = world.logs.set_partitions(SPACE, "Hub", 4).await.unwrap();
    assert_eq!(same.settings.partitions, 4);
    for count in [0, 3, 5_000] {
        let refused = world.logs.set_partitions(SPACE, "Hub", count).await.unwrap_err();
        assert!(refused.is(LogReason::BadSettings), "{count}");
    }
    let grown = world.logs.set_partitions(SPACE, "Hub", 6).await.unwrap();
    for partition in 0..6 {
        let sent = world.logs.append(&grown, partition, batch(&["x"])).await.unwrap();
        assert_eq!(sent.first, 0);
    }
}
