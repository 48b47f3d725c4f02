//! Changing the number of partitions of an index that is in use.

use std::time::Duration;

use lazuli_engine::ShardId;
use lazuli_index::{Positions, Scale};

use crate::{ACCOUNT, World, delete};

#[tokio::test]
async fn slices_move_to_as_many_shards_as_there_are_partitions_while_documents_are_written() {
    let world = World::new().await;
    let index = world.index("wide").await;
    world.upload(&index, 0..200, "before").await;
    let mut naive = world.follow(&index, Positions::default());
    naive.catch_up().await;
    let shards = |figures: Vec<lazuli_index::SliceFigures>| {
        let mut shards: Vec<ShardId> = figures.into_iter().map(|one| one.shard).collect();
        shards.dedup();
        shards
    };
    assert_eq!(shards(world.indexes.figures(&index).await.unwrap()).len(), 1);
    let wide = Scale { partitions: 3, replicas: 1 };
    let mut index = world.indexes.scale_index(ACCOUNT, "wide", wide).await.unwrap();
    assert!(index.is_spreading);
    let mut round = 0;
    while index.is_spreading {
        world.indexes.spread(ACCOUNT, &index).await.unwrap();
        world.upload(&index, 200 + round..210 + round, "during").await;
        world.write(&index, vec![delete(&round.to_string())]).await;
        naive.catch_up().await;
        round += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
        index = world.indexes.index(ACCOUNT, "wide").await.unwrap();
        assert!(round < 500, "the slices do not arrive");
    }
    assert_eq!(shards(world.indexes.figures(&index).await.unwrap()).len(), 3);
    naive.catch_up().await;
    let count = world.indexes.count(&index).await.unwrap();
    assert_eq!(naive.documents.len() as u64, count);
    assert_eq!(count, u64::from(209 + round - round));
}
