//! A partition that is backed up while it is in use, and restored into the same or another container.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::world::{Put, Transfer, World, item_key, number, route};
use bytes::Bytes;
use lazuli_engine::backup::{
    BackupHead, BackupParser, BackupPart, BackupRow, RestoreProgress, RestoreTarget,
};
use lazuli_engine::{Engine, Item, MoveOptions};
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::manager::{Cuts, Known};
use lazuli_shardmap::{Container, MapKind, PartitionId, PartitionState, Policies};
use lazuli_store::{KeyRange, PageLimit, Result};

async fn take(engine: &Engine, partition: PartitionId) -> Vec<u8> {
    let mut backup = engine.backup(partition).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = backup.next().await.unwrap() {
        bytes.extend_from_slice(&piece);
        // Others have their turn before the next piece.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    }
    bytes
}

fn parts(bytes: &[u8]) -> Result<(BackupHead, Vec<BackupPart>)> {
    let mut parser = BackupParser::new();
    let (mut head, mut parts) = (None, Vec::new());
    for piece in bytes.chunks(10_000) {
        parser.push(piece);
        while let Some(part) = parser.next_part()? {
            match part {
                BackupPart::Head(it) => head = Some(*it),
                part => parts.push(part),
            }
        }
    }
    parser.finish()?;
    Ok((head.unwrap(), parts))
}

fn rows(parts: &[BackupPart]) -> Vec<BackupRow> {
    let rows = parts.iter().filter_map(|part| match part {
        BackupPart::Rows(rows) => Some(rows.clone()),
        _ => None,
    });
    rows.flatten().collect()
}

fn into(name: &str, replace: bool) -> RestoreTarget {
    RestoreTarget { name: name.to_owned(), attributes: BTreeMap::new(), replace }
}

async fn restore(
    engine: &Arc<Engine>,
    bytes: &[u8],
    target: &RestoreTarget,
) -> Result<RestoreProgress> {
    let (head, parts) = parts(bytes)?;
    let mut restore = engine.begin_restore(head, target).await?;
    restore.clear().await?;
    for part in parts {
        restore.take(part).await?;
    }
    restore.finish().await
}

fn code<T>(result: Result<T>) -> &'static str {
    result.map(|_| ()).unwrap_err().code()
}

async fn container(world: &World, name: &str) -> Container {
    world.engine.manager().catalog().container_named(name).await.unwrap()
}

/// All items of a container, with their versions.
async fn contents(world: &World, container: &Container) -> BTreeMap<Bytes, Item> {
    let mut all = BTreeMap::new();
    for partition in world.partitions(container).await {
        let view = world.engine.read(container.id, &probe(&partition.routes), 1).await.unwrap();
        let forward = lazuli_store::Direction::Forward;
        let page = view.scan(Space::ITEMS, &KeyRange::all(), forward, PageLimit::MAX).await;
        let page = page.unwrap();
        assert!(page.next.is_none());
        all.extend(page.items.into_iter().map(|(key, item)| (key.slice(5..), item)));
    }
    all
}

/// A route of a partition.
fn probe(routes: &KeyRange) -> Bytes {
    if routes.start.is_empty() { Bytes::from_static(b"\x00\x01") } else { routes.start.clone() }
}

async fn check(world: &World) {
    world.engine.delete_garbage().await.unwrap();
    for shard in world.engine.shards().all() {
        let report = shard.check(world.engine.manager().catalog()).await.unwrap();
        assert!(report.findings.is_empty(), "shard {}: {:?}", shard.id, report.findings);
    }
}

async fn filled(world: &World, items: u32) -> Container {
    let policies = Policies { changes: true, ..Policies::default() };
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), policies).await;
    for n in 0..items {
        let (key, row) = (format!("k{:02}", n % 20), format!("r{n}"));
        world.put(&container, &key, &row, &format!("value {n}")).await.unwrap();
    }
    container
}

#[tokio::test]
async fn a_backup_under_writers_is_the_state_of_one_moment() {
    let world = Arc::new(World::new(1).await);
    let container = world.range("c", &[]).await;
    world.put(&container, "a", "r", "1000").await.unwrap();
    world.put(&container, "z", "r", "1000").await.unwrap();
    // So much that the two are never read at once.
    let long = "x".repeat(10_000);
    for n in 0..300 {
        world.put(&container, "m", &n.to_string(), &long).await.unwrap();
    }
    let partition = world.partitions(&container).await[0].clone();
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for turn in 0..4 {
        let (world, container, stop) = (world.clone(), container.clone(), stop.clone());
        writers.push(tokio::spawn(async move {
            let (a, z) = (item_key(&container, "a", "r"), item_key(&container, "z", "r"));
            let (from, to) = if turn % 2 == 0 { (a, z) } else { (z, a) };
            while !stop.load(Ordering::Relaxed) {
                let amount = turn + 1;
                let transfer = Transfer { from: from.clone(), to: to.clone(), amount };
                let route = from.route().to_vec();
                let _ = world.engine.write(container.id, &route, transfer).await;
            }
        }));
    }
    let mut last = 0;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let (head, parts) = parts(&take(&world.engine, partition.id).await).unwrap();
        let all = rows(&parts).into_iter().map(|row| Item::decode(row.value).unwrap());
        let items: Vec<Item> = all.filter(|item| item.payload.len() < 10_000).collect();
        let numbers: Vec<i64> = items.iter().map(|item| number(Some(item))).collect();
        assert_eq!(numbers.len(), 2);
        assert_eq!(numbers.iter().sum::<i64>(), 2000, "both keys are of one moment");
        assert!(items.iter().all(|item| item.version <= head.lsn));
        assert!(head.lsn.0 >= last, "later backups are of later moments");
        last = head.lsn.0;
        seen.insert(numbers[0]);
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(seen.len() > 1, "nobody wrote meanwhile");
}

#[tokio::test]
async fn a_new_container_has_items_versions_expiry_changes_and_counts() {
    let world = World::new(2).await;
    let source = filled(&world, 500).await;
    let expiring = item_key(&source, "k00", "short");
    let expires_ms = Some(world.env.clock.now_ms() + 60_000);
    let put = Put { key: expiring.clone(), value: "x".into(), expires_ms };
    world.engine.write(source.id, expiring.route(), put).await.unwrap();
    let before = contents(&world, &source).await;
    let bytes = take(&world.engine, world.partitions(&source).await[0].id).await;
    world.put(&source, "k00", "later", "not in the backup").await.unwrap();

    let progress = restore(&world.engine, &bytes, &into("d", false)).await.unwrap();
    // Every item, and for each the record of its change.
    assert_eq!(progress.rows, 2 * 501);
    let copy = container(&world, "d").await;
    assert_eq!((copy.kind, &copy.schema, &copy.key), (source.kind, &source.schema, &source.key));
    assert_eq!(contents(&world, &copy).await, before);
    let feed = |of: Container| {
        let engine = world.engine.clone();
        async move {
            let (start, all) = (Bytes::new(), PageLimit::MAX);
            let page = engine.changes(of.id, &route(&of, "k00"), &start, all).await.unwrap();
            page.changes.into_iter().map(|it| (it.lsn, it.operation)).collect::<Vec<_>>()
        }
    };
    assert_eq!(feed(copy.clone()).await, feed(source.clone()).await[..501]);
    let partition = world.partitions(&copy).await[0].clone();
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert!(stats.counts.exact && stats.counts.items == 501);
    check(&world).await;
    world.pass(Duration::from_secs(120));
    assert_eq!(world.engine.sweep_all().await.unwrap(), 2, "it expires in both");
    check(&world).await;
}

#[tokio::test]
async fn exactly_the_routes_of_the_backup_come_back_wherever_they_live_now() {
    let world = World::new(2).await;
    let table = world.range("c", &["h"]).await;
    for key in ["a", "d", "g", "h", "z"] {
        world.put(&table, key, "r", "before").await.unwrap();
    }
    let left = world.partition_of(&table, "a").await;
    let before = contents(&world, &table).await;
    let bytes = take(&world.engine, left.id).await;
    // The left one is split, its right half goes to another shard, and what is left is merged with nothing.
    world.split_at(&table, "d").await;
    let moved = world.partition_of(&table, "d").await;
    let target = *world.shard_stores.keys().find(|id| **id != moved.shard).unwrap();
    world.engine.move_partition(moved.id, target, MoveOptions::default()).await.unwrap();
    while !world.engine.manager().catalog().moves().await.unwrap().is_empty() {
        world.engine.run_moves().await.unwrap();
    }
    for key in ["a", "b", "g", "h"] {
        world.put(&table, key, "r", "after").await.unwrap();
    }
    let newer = world.item(&table, "a", "r").await.unwrap().version;

    assert_eq!(code(restore(&world.engine, &bytes, &into("c", false)).await), "routes-not-empty");
    assert_eq!(world.get(&table, "b", "r").await.unwrap().as_deref(), Some("after"));
    restore(&world.engine, &bytes, &into("c", true)).await.unwrap();

    let now = contents(&world, &table).await;
    for key in ["a", "d", "g"] {
        let stored = item_key(&table, key, "r").bytes().slice(5..);
        assert_eq!(now.get(&stored), before.get(&stored), "{key} is what it was, version and all");
    }
    assert_eq!(world.get(&table, "b", "r").await.unwrap(), None, "it came after the backup");
    assert_eq!(world.get(&table, "h", "r").await.unwrap().as_deref(), Some("after"));
    world.put(&table, "a", "r", "again").await.unwrap();
    let newest = world.item(&table, "a", "r").await.unwrap().version;
    assert!(newest > newer, "no version is used again");
    check(&world).await;
}

#[tokio::test]
async fn a_backup_is_smaller_than_the_partition_that_holds_its_routes_now() {
    let world = World::new(1).await;
    let table = world.range("c", &["h"]).await;
    world.put(&table, "a", "r", "before").await.unwrap();
    world.put(&table, "z", "r", "stays").await.unwrap();
    let (left, right) =
        (world.partition_of(&table, "a").await, world.partition_of(&table, "z").await);
    let bytes = take(&world.engine, left.id).await;
    world.engine.merge(Known::from(&left), Known::from(&right)).await.unwrap();
    world.put(&table, "a", "r", "after").await.unwrap();
    restore(&world.engine, &bytes, &into("c", true)).await.unwrap();
    assert_eq!(world.get(&table, "a", "r").await.unwrap().as_deref(), Some("before"));
    assert_eq!(world.get(&table, "z", "r").await.unwrap().as_deref(), Some("stays"));
    check(&world).await;
}

#[tokio::test]
async fn numbers_go_on_behind_those_of_the_backup() {
    let world = World::new(1).await;
    let source = world.range("c", &[]).await;
    world.pass(Duration::from_secs(3600));
    world.put(&source, "a", "r", "from the future").await.unwrap();
    let bytes = take(&world.engine, world.partitions(&source).await[0].id).await;
    let (head, _) = parts(&bytes).unwrap();

    let mut other = World::new(1).await;
    restore(&other.engine, &bytes, &into("c", false)).await.unwrap();
    other.restart().await;
    let copy = container(&other, "c").await;
    other.put(&copy, "a", "r", "newer").await.unwrap();
    assert!(other.item(&copy, "a", "r").await.unwrap().version > head.lsn);

    world.pass(Duration::from_secs(30 * 24 * 3600));
    world.put(&source, "a", "r", "far ahead").await.unwrap();
    let far = take(&world.engine, world.partitions(&source).await[0].id).await;
    assert_eq!(code(restore(&other.engine, &far, &into("d", false)).await), "backup-ahead");
}

#[tokio::test]
async fn what_is_half_restored_stays_shut_until_it_is_restored_again() {
    let world = World::new(1).await;
    let table = filled(&world, 200).await;
    let before = contents(&world, &table).await;
    let partition = world.partitions(&table).await[0].clone();
    let bytes = take(&world.engine, partition.id).await;
    let (head, mut loose) = parts(&bytes).unwrap();

    let mut first = world.engine.begin_restore(head.clone(), &into("c", true)).await.unwrap();
    first.clear().await.unwrap();
    let rest = loose.split_off(1);
    for part in loose {
        first.take(part).await.unwrap();
    }
    assert_eq!(code(world.get(&table, "k00", "r0").await), "partition-offline");
    let now = world.partitions(&table).await[0].clone();
    let manager = world.engine.manager();
    let opened = manager.set_state(Known::from(&now), PartitionState::Online).await;
    assert_eq!(code(opened), "partition-restoring");
    assert_eq!(code(world.engine.backup(now.id).await), "partition-restoring");
    check(&world).await;

    // Nobody has to say that what the first one left may go.
    restore(&world.engine, &bytes, &into("c", false)).await.unwrap();
    assert_eq!(contents(&world, &table).await, before);
    // The first one wakes up late, and does no harm.
    let late = async {
        for part in rest {
            first.take(part).await?;
        }
        first.finish().await
    };
    assert!(matches!(code(late.await), "restore-overtaken" | "lock-not-held"));
    assert_eq!(contents(&world, &table).await, before);
    check(&world).await;
}

#[tokio::test]
async fn a_restore_that_fails_at_any_commit_can_be_made_again() {
    let mut at = 1;
    loop {
        let mut world = World::new(2).await;
        let table = world.range("c", &["k05", "k10"]).await;
        for n in 0..60 {
            let key = format!("k{:02}", n % 20);
            world.put(&table, &key, &format!("r{n}"), "before").await.unwrap();
        }
        let before = contents(&world, &table).await;
        let middle = world.partition_of(&table, "k07").await;
        let bytes = take(&world.engine, middle.id).await;
        world.split_at(&table, "k08").await;
        world.put(&table, "k07", "r7", "after").await.unwrap();
        let so_far = world.faults.seen.load(Ordering::SeqCst);
        world.faults.at.store(so_far + at, Ordering::SeqCst);
        *world.faults.after.lock().unwrap() = at % 2 == 0;
        let first = restore(&world.engine, &bytes, &into("c", true)).await;
        let failed = *world.faults.dead.lock().unwrap();
        world.restart().await;
        check(&world).await;
        let is_open = world.get(&table, "k07", "r7").await;
        if let Err(error) = &is_open {
            assert_eq!(error.code(), "partition-offline", "commit {at}");
        }
        restore(&world.engine, &bytes, &into("c", true)).await.unwrap();
        assert_eq!(contents(&world, &table).await, before, "commit {at}");
        check(&world).await;
        if !failed {
            first.unwrap();
            break;
        }
        at += 1;
    }
    assert!(at > 8, "only {at} commits");
}

#[tokio::test]
async fn hash_and_list_maps_are_restored_too() {
    let world = World::new(2).await;
    let hash = world.hash("h", 4).await;
    for n in 0..100 {
        world.put(&hash, &format!("k{n}"), "r", &n.to_string()).await.unwrap();
    }
    let before = contents(&world, &hash).await;
    for (n, partition) in world.partitions(&hash).await.iter().enumerate() {
        let bytes = take(&world.engine, partition.id).await;
        restore(&world.engine, &bytes, &into("h2", false)).await.unwrap();
        if n == 0 {
            let again = restore(&world.engine, &bytes, &into("h2", false)).await;
            assert_eq!(code(again), "routes-not-empty");
        }
    }
    let copy = container(&world, "h2").await;
    assert_eq!(world.partitions(&copy).await.len(), 16);
    let mut found = BTreeMap::new();
    for n in 0..100 {
        let key = format!("k{n}");
        let stored = item_key(&copy, &key, "r").bytes().slice(5..);
        found.insert(stored, world.item(&copy, &key, "r").await.unwrap());
    }
    assert_eq!(found, before);

    let list = world.create("l", MapKind::List, Cuts::Empty, Policies::default()).await;
    let shard = *world.shard_stores.keys().next().unwrap();
    let point = world.add_point(&list, "one", shard).await;
    world.put(&list, "one", "r", "1").await.unwrap();
    let bytes = take(&world.engine, point.id).await;
    restore(&world.engine, &bytes, &into("l2", false)).await.unwrap();
    let copy = container(&world, "l2").await;
    assert_eq!(world.get(&copy, "one", "r").await.unwrap().as_deref(), Some("1"));
    // A list map without the key has no place for it.
    world.create("l3", MapKind::List, Cuts::Empty, Policies::default()).await;
    assert_eq!(code(restore(&world.engine, &bytes, &into("l3", false)).await), "routes-unmapped");
    assert_eq!(code(restore(&world.engine, &bytes, &into("h2", true)).await), "container-differs");
    check(&world).await;
}

#[tokio::test]
async fn a_backup_that_is_cut_or_changed_anywhere_is_refused() {
    let world = World::new(1).await;
    let table = filled(&world, 30).await;
    let bytes = take(&world.engine, world.partitions(&table).await[0].id).await;
    parts(&bytes).unwrap();
    for length in 0..bytes.len() {
        let refused = parts(&bytes[..length]);
        assert_eq!(code(refused), "backup-truncated", "cut at {length}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(parts(&changed).is_err(), "changed at {at}");
    }
    let doubled = [&bytes[..], &bytes[..1]].concat();
    assert_eq!(code(parts(&doubled)), "backup-damaged");
}

#[tokio::test]
async fn an_offline_partition_is_backed_up_and_one_with_nothing_in_it_too() {
    let world = World::new(1).await;
    let table = world.range("c", &[]).await;
    let partition = world.partitions(&table).await[0].clone();
    let empty = take(&world.engine, partition.id).await;
    assert!(rows(&parts(&empty).unwrap().1).is_empty());
    world.put(&table, "a", "r", "1").await.unwrap();
    let manager = world.engine.manager();
    manager.set_state(Known::from(&partition), PartitionState::Offline).await.unwrap();
    let bytes = take(&world.engine, partition.id).await;
    assert_eq!(rows(&parts(&bytes).unwrap().1).len(), 1);
    restore(&world.engine, &empty, &into("c", true)).await.unwrap();
    assert_eq!(world.get(&table, "a", "r").await.unwrap(), None);
    restore(&world.engine, &bytes, &into("c", false)).await.unwrap();
    assert_eq!(world.get(&table, "a", "r").await.unwrap().as_deref(), Some("1"));
    check(&world).await;
}
