//! What partitions of blobs hold: also the bytes of contents, which lie in files beside the store, each once.

use lazuli_engine::{
    ContainerId, Counts, Engine, KeyRange, Middle, MoveOptions, Partition, PartitionId, ShardId,
    Space,
};
use lazuli_shapes::blob::BlockChoice::{Committed, Latest};
use lazuli_shapes::blob::{NewBlob, SequenceConditions};
use lazuli_shardmap::layout;
use lazuli_shardmap::manager::Known;
use lazuli_store::Write;
use lazuli_store::blocks::Blocks;

use super::blocks::{commit, put_block};
use super::copies::{copy, options, source};
use super::world::{BIG, World, any, blob, bytes, none, versions};

async fn partitions(world: &World) -> Vec<Partition> {
    let catalog = world.blobs.engine().manager().catalog().clone();
    let container = catalog.container_named("blobs/a").await.unwrap();
    let found = catalog.partitions_in(container.id, &KeyRange::all(), 100).await.unwrap();
    found.into_iter().map(|entry| entry.partition).collect()
}

async fn counts(world: &World, partition: &Partition) -> Counts {
    let engine = world.blobs.engine();
    engine.partition_stats(partition.id, partition.shard).await.unwrap().counts
}

/// What all partitions of the account hold, as their figures say, once all of them are exact.
async fn held(world: &World) -> Counts {
    world.blobs.engine().recount_all().await.unwrap();
    let mut sum = Counts::default();
    for partition in partitions(world).await {
        let counts = counts(world, &partition).await;
        assert!(counts.exact, "{counts:?}");
        sum.items += counts.items;
        sum.bytes += counts.bytes;
        sum.outside += counts.outside;
    }
    sum
}

async fn bytes_of_files(world: &World) -> u64 {
    let found = world.blocks.list(None, usize::MAX).await.unwrap();
    found.into_iter().map(|found| found.file.length).sum()
}

/// Figures count what lies on disk, and whoever counts again comes to the same.
async fn assert_right(world: &World, when: &str) {
    world.collect().await;
    let said = held(world).await;
    assert_eq!(said.outside, bytes_of_files(world).await, "{when}");
    let engine = world.blobs.engine();
    let catalog = engine.manager().catalog();
    for shard in engine.shards().all() {
        let report = shard.check(catalog).await.unwrap();
        assert_eq!(report.findings, [], "{when}");
    }
    for partition in partitions(world).await {
        engine.count_soon(partition.id, partition.shard);
    }
    assert_eq!(held(world).await, said, "{when}");
}

#[tokio::test]
async fn the_content_of_a_blob_counts_in_the_bytes_of_its_partition() {
    let world = World::new().await;
    let content = bytes(6_000_000, 1);
    world.put("large", &content).await;
    let counts = held(&world).await;
    assert_eq!(counts.outside, 6_000_000);
    assert!((6_000_000..6_001_000).contains(&counts.bytes), "{counts:?}");
    world.put("small", &bytes(1_000, 1)).await;
    let more = held(&world).await;
    assert_eq!(more.outside, 6_000_000, "small contents are rows");
    assert!(more.bytes > counts.bytes + 1_000);
    world.delete("large", none()).await.unwrap();
    world.collect().await;
    assert_eq!(held(&world).await.outside, 0);
}

#[tokio::test]
async fn every_file_counts_once_however_many_states_blocks_and_pages_name_it() {
    for world in World::plain_and_hashed().await {
        let snapshot = async |name: &str| {
            world.blobs.snapshot(&blob(name), None, &any(), None, none()).await.unwrap();
        };
        world.put("whole", &bytes(BIG, 1)).await;
        snapshot("whole").await;
        snapshot("whole").await;
        assert_right(&world, "snapshots share a content").await;
        world.put("whole", &bytes(BIG * 2, 2)).await;
        assert_right(&world, "the snapshots have the old one").await;
        for seed in 3..6 {
            world.try_put("kept", &bytes(BIG, seed), &any(), versions()).await.unwrap();
        }
        assert_right(&world, "versions").await;
        for (id, length) in [("aa", BIG), ("bb", 100), ("cc", BIG)] {
            put_block(&world, "blocks", id, &bytes(length, 4)).await.unwrap();
        }
        assert_right(&world, "blocks wait").await;
        put_block(&world, "blocks", "cc", &bytes(BIG + 9, 4)).await.unwrap();
        assert_right(&world, "a block was put again").await;
        let list = [(Latest, "aa"), (Latest, "bb"), (Latest, "aa"), (Latest, "aa")];
        commit(&world, "blocks", &list, none()).await.unwrap();
        assert_right(&world, "one block is named three times, one by none").await;
        snapshot("blocks").await;
        put_block(&world, "blocks", "dd", &bytes(BIG, 5)).await.unwrap();
        let again = [(Committed, "aa"), (Committed, "bb"), (Latest, "dd")];
        commit(&world, "blocks", &again, none()).await.unwrap();
        assert_right(&world, "two contents name one file").await;
        let new = NewBlob::default();
        world.blobs.put_page_blob(&blob("pages"), 1 << 20, 0, new, &any(), none()).await.unwrap();
        for (page, seed) in [(0, 7), (100, 8), (50, 9), (700, 10)] {
            let content = world.content(&blob("pages"), &bytes(300 * 512, seed)).await;
            let free = SequenceConditions::default();
            let at = page * 512;
            world.blobs.put_pages(&blob("pages"), at, content, free, &any()).await.unwrap();
            snapshot("pages").await;
            assert_right(&world, "pages over pages").await;
        }
        copy(&world, &source("blocks"), "copy", options()).await.unwrap();
        assert_right(&world, "a copy has files of its own").await;
    }
}

/// Figures of a former release know nothing of files. Whoever opens the shard counts anew where there may be some.
#[tokio::test]
async fn figures_from_before_files_were_counted_become_right_by_themselves() {
    let world = World::new().await;
    world.put("large", &bytes(BIG, 1)).await;
    world.put("small", &bytes(10, 1)).await;
    let before = held(&world).await;
    let engine = world.blobs.engine();
    let partition = partitions(&world).await.remove(0);
    let shard = engine.shards().get(partition.shard).unwrap();
    let store = shard.store().clone();
    let id = partition.id.0.to_be_bytes();
    let key = layout::key(ContainerId::SYSTEM, Space::STATS, &id);
    let row = store.get(&key).await.unwrap().unwrap();
    // Format 1 had neither the files nor their column.
    let mut former = row[..26].to_vec();
    former[0] = 1;
    former[10..18].copy_from_slice(&(before.bytes - before.outside).to_be_bytes());
    let txn = store.begin(vec![]).await.unwrap();
    txn.commit(vec![Write::Put(key, former.into())]).await.unwrap();
    let known = engine.manager().catalog().shard(partition.shard).await.unwrap();
    engine.attach(&known, store).await.unwrap();
    assert!(!counts(&world, &partition).await.exact, "they are estimates until counted");
    let after = held(&world).await;
    assert_eq!(
        (after.items, after.bytes, after.outside),
        (before.items, before.bytes, before.outside)
    );
    assert_right(&world, "and stay right").await;
}

async fn move_to(world: &World, partition: PartitionId, shard: ShardId) {
    let engine = world.blobs.engine();
    let options = MoveOptions::default();
    let number = engine.move_partition(partition, shard, options).await.unwrap().number;
    engine.run_moves().await.unwrap();
    let finished = engine.move_finished(number).await.unwrap();
    // Block files stay where they are.
    assert!(finished.bytes < 10_000, "{finished:?}");
}

fn other(engine: &Engine, shard: ShardId) -> ShardId {
    engine.shards().all().iter().map(|it| it.id).find(|id| *id != shard).unwrap()
}

#[tokio::test]
async fn figures_stay_right_through_splits_moves_and_merges() {
    let world = World::new().await;
    for name in ["a", "b", "c", "d"] {
        world.put(name, &bytes(BIG, 1)).await;
    }
    world.put("z", &bytes(4 * BIG, 2)).await;
    let before = held(&world).await;
    assert_eq!(before.outside, 8 * BIG as u64);
    let engine = world.blobs.engine();
    let whole = partitions(&world).await.remove(0);
    let at = engine.middle(&whole, Middle::Size).await.unwrap();
    let (left, right) = engine.split(Known::from(&whole), at).await.unwrap();
    engine.recount_all().await.unwrap();
    for half in [&left, &right] {
        let counts = counts(&world, half).await;
        assert_eq!(counts.outside, 4 * BIG as u64, "the middle is that of the contents");
    }
    let target = other(engine, right.shard);
    move_to(&world, right.id, target).await;
    assert_eq!(held(&world).await, Counts { last_lsn: before.last_lsn, ..before });
    assert_right(&world, "after a move").await;
    move_to(&world, right.id, whole.shard).await;
    let [left, right] = <[Partition; 2]>::try_from(partitions(&world).await).unwrap();
    engine.merge(Known::from(&left), Known::from(&right)).await.unwrap();
    assert_eq!(held(&world).await.outside, 8 * BIG as u64);
    assert_right(&world, "after a merge").await;
}
