//! Parcels: what some ranges hold goes to another store as it lies, layer upon layer, and is there what it was here, through
//! starts and whatever becomes of the store that it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fixture::open_again;
use bytes::Bytes;
use lazuli_store::{
    Direction, Dropped, Handover, Item, KeyRange, Kind, Packed, PageLimit, Parcel, Reads, Store,
    Write, after_key,
};
use lazuli_store_embedded::{EmbeddedStore, Settings};

const ITEMS: usize = 24_000;
const CHUNK: usize = 1_200;
const WAIT_MAX: Duration = Duration::from_secs(30);
const DATA_TABLES: &str = "store/keyspaces/1/tables";
const DROPPED: &str = "store/lazuli.dropped";

fn settings() -> Settings {
    // Small memtables and tables, so that there are many, in several layers.
    Settings { memtable_bytes: 256 * 1024, table_bytes: 256 * 1024, ..Settings::default() }
}

fn open(folder: &Path) -> EmbeddedStore {
    EmbeddedStore::open(folder, &settings()).unwrap()
}

fn key(n: usize) -> Bytes {
    format!("key-{n:06}").into()
}

/// Bytes that stay as many when they are compressed.
fn noise(seed: usize) -> Bytes {
    lazuli_env::SplitMix64::new(seed as u64).bytes(1_000).into()
}

/// Two of them, with something before, between and behind.
fn ranges() -> Vec<KeyRange> {
    vec![
        KeyRange::new(key(ITEMS / 8), Some(key(ITEMS / 2))),
        KeyRange::new(key(ITEMS / 2 + 100), Some(key(ITEMS - 100))),
    ]
}

async fn commit(store: &EmbeddedStore, writes: Vec<Write>) {
    store.begin(vec![]).await.unwrap().commit(writes).await.unwrap();
}

/// Loads, then puts and deletes all over it, in an order that the seed gives, and so often that tables are merged.
async fn fill(store: &EmbeddedStore, seed: usize) {
    for start in (0..ITEMS).step_by(CHUNK) {
        let items = (start..start + CHUNK).map(|n| (key(n), noise(n + seed))).collect();
        store.ingest(vec![], items).await.unwrap();
    }
    for round in 0..60 {
        let writes = (0..50).map(|n| {
            let at = (round * 7_919 + n * 104_729 + seed) % ITEMS;
            match (round + n) % 3 {
                0 => Write::Delete(key(at)),
                _ => Write::Put(key(at), noise(at + round + seed)),
            }
        });
        commit(store, writes.collect()).await;
    }
}

async fn read(store: &EmbeddedStore, range: &KeyRange) -> Vec<Item> {
    let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
    let mut range = range.clone();
    let mut items = Vec::new();
    loop {
        let page = snapshot.scan(&range, Direction::Forward, PageLimit::MAX).await.unwrap();
        items.extend(page.items);
        match items.last() {
            Some((last, _)) if page.more => range.start = after_key(last),
            _ => return items,
        }
    }
}

async fn read_all(store: &EmbeddedStore, ranges: &[KeyRange]) -> Vec<Item> {
    let mut items = Vec::new();
    for range in ranges {
        items.extend(read(store, range).await);
    }
    items
}

async fn pack(store: &EmbeddedStore, ranges: &[KeyRange]) -> Parcel {
    let began = Instant::now();
    loop {
        match store.pack(ranges).await.unwrap() {
            Packed::Parcel(parcel) => return parcel,
            Packed::NotNow => tokio::time::sleep(Duration::from_millis(5)).await,
            Packed::Nothing => panic!("there is enough in tables"),
        }
        assert!(began.elapsed() < WAIT_MAX);
    }
}

/// Whether the store holds just this in the ranges, however it is asked.
async fn assert_holds(store: &EmbeddedStore, expected: &[Item]) {
    assert!(read_all(store, &ranges()).await == expected, "others than those of the parcel");
    let expected: BTreeMap<_, _> = expected.iter().cloned().collect();
    let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
    for n in (0..ITEMS).filter(|n| ranges().iter().any(|range| range.contains(&key(*n)))) {
        assert_eq!(snapshot.get(&key(n)).await.unwrap().as_ref(), expected.get(&key(n)), "{n}");
    }
    assert_eq!(store.verify().unwrap().damages, []);
}

fn tables(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder.join(DATA_TABLES)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[cfg(unix)]
fn shared(folder: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    tables(folder).iter().filter(|path| path.metadata().unwrap().nlink() > 1).count()
}

/// Deletes what was packed: tables first, then whatever is left. Says how many items that were.
async fn let_go(store: &EmbeddedStore) -> usize {
    let mut left = 0;
    for range in ranges() {
        let began = Instant::now();
        while store.drop_range(vec![], &range).await.unwrap() != Dropped::All {
            assert!(began.elapsed() < WAIT_MAX);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        loop {
            let deleted = store.delete_range(&range, 1_000).await.unwrap();
            left += deleted;
            if deleted < 1_000 {
                break;
            }
        }
    }
    left
}

#[tokio::test]
async fn a_parcel_is_there_what_it_was_here_and_stays_so() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        let (source, target) = (open(&here), open(&there));
        fill(&source, seed).await;
        let expected = read_all(&source, &ranges()).await;
        let parcel = pack(&source, &ranges()).await;
        // What comes later is not in it.
        commit(&source, vec![Write::Put(key(ITEMS / 4), "late".into())]).await;
        commit(&source, vec![Write::Delete(expected[7].0.clone())]).await;
        assert!(target.unpack(vec![], parcel).await.unwrap());
        assert_holds(&target, &expected).await;
        let outside = KeyRange::new(key(0), Some(key(ITEMS / 8)));
        assert!(read(&target, &outside).await.is_empty(), "rows of others came along");
        #[cfg(unix)]
        assert!(shared(&there) > 0, "no table went as it is");
        // Of the source nothing is left, neither names nor bytes.
        let left = let_go(&source).await;
        assert!(left < expected.len() / 2, "{left} items were left where tables went");
        source.close().await.unwrap();
        drop(source);
        let source = open_again(&here, &settings()).await;
        let began = Instant::now();
        while std::fs::read_dir(here.join(DROPPED)).is_ok_and(|mut folder| folder.next().is_some())
        {
            assert!(began.elapsed() < WAIT_MAX, "the source keeps names");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(read_all(&source, &ranges()).await.is_empty());
        drop(source);
        std::fs::remove_dir_all(&here).unwrap();
        assert_holds(&target, &expected).await;
        drop(target);
        let target = open_again(&there, &settings()).await;
        assert_holds(&target, &expected).await;
        // What is written here is newer than all of it.
        let (put, deleted) = (expected[100].0.clone(), expected[200].0.clone());
        commit(&target, vec![Write::Put(put.clone(), "new".into()), Write::Delete(deleted)]).await;
        let mut expected = expected;
        expected[100].1 = "new".into();
        expected.remove(200);
        assert_holds(&target, &expected).await;
        target.close().await.unwrap();
        drop(target);
        assert_holds(&open_again(&there, &settings()).await, &expected).await;
    }
}

/// Neighbours on all sides, on all levels, some of them not yet in tables, and a store that has counted further than the
/// source, or less far.
#[tokio::test]
async fn a_parcel_comes_among_what_is_there_and_changes_none_of_it() {
    for commits in [1, 1_600, 1_700, 1_800] {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (open(&folder.path().join("here")), open(&folder.path().join("t")));
        fill(&source, 5).await;
        let others =
            |n: usize| [key(n % (ITEMS / 8)), key(ITEMS / 2 + n % 100), format!("z{n}").into()];
        for n in 0..commits {
            let puts = others(n).map(|key| Write::Put(key, noise(n)));
            commit(&target, puts.to_vec()).await;
        }
        let all = KeyRange::all();
        let before: Vec<_> = read(&target, &all).await;
        let expected = read_all(&source, &ranges()).await;
        assert!(target.unpack(vec![], pack(&source, &ranges()).await).await.unwrap());
        assert_holds(&target, &expected).await;
        let mut together: Vec<_> = before.into_iter().chain(expected.clone()).collect();
        together.sort_unstable();
        assert!(read(&target, &all).await == together);
        // One by one they are looked for from the uppermost layer down.
        for (key, value) in &together {
            assert_eq!(target.get(key).await.unwrap().as_ref(), Some(value));
        }
        commit(&target, vec![Write::Put("z-after".into(), "x".into())]).await;
        drop(target);
        let target = open_again(&folder.path().join("t"), &settings()).await;
        together.push(("z-after".into(), "x".into()));
        together.sort_unstable();
        assert!(read(&target, &all).await == together);
        assert_holds(&target, &expected).await;
    }
}

#[tokio::test]
async fn what_is_in_the_way_is_never_covered_nor_covers() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (open(&folder.path().join("here")), open(&folder.path().join("there")));
    fill(&source, 9).await;
    let in_the_way = key(ITEMS / 4);
    commit(&target, vec![Write::Put(in_the_way.clone(), "mine".into())]).await;
    assert!(!target.unpack(vec![], pack(&source, &ranges()).await).await.unwrap());
    assert_eq!(read_all(&target, &ranges()).await, [(in_the_way.clone(), "mine".into())]);
    // That a key is gone is something too: it would be newer than what comes.
    commit(&target, vec![Write::Delete(in_the_way)]).await;
    assert!(!target.unpack(vec![], pack(&source, &ranges()).await).await.unwrap());
    assert!(read_all(&target, &ranges()).await.is_empty());
    // Nor may it come twice.
    let third = open(&folder.path().join("third"));
    assert!(third.unpack(vec![], pack(&source, &ranges()).await).await.unwrap());
    assert!(!third.unpack(vec![], pack(&source, &ranges()).await).await.unwrap());
    assert_holds(&third, &read_all(&source, &ranges()).await).await;
    // Another kind of store's is none of ours.
    assert!(!third.unpack(vec![], Parcel::new("something else")).await.unwrap());
}

#[tokio::test]
async fn a_parcel_is_guarded_and_leaves_nothing_where_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    let (source, target) = (open(&folder.path().join("here")), open(&there));
    fill(&source, 1).await;
    let guard = Bytes::from("\0\0\0\0guard");
    let refused = target.unpack(vec![guard.clone()], pack(&source, &ranges()).await).await;
    assert_eq!(refused.unwrap_err().kind(), Kind::Moved);
    // One that goes while the parcel is on its way.
    commit(&target, vec![Write::Put(guard.clone(), "".into())]).await;
    let parcel = pack(&source, &ranges()).await;
    let (unpacked, ()) = tokio::join!(
        biased;
        target.unpack(vec![guard.clone()], parcel),
        commit(&target, vec![Write::Delete(guard.clone())]),
    );
    assert_eq!(unpacked.unwrap_err().kind(), Kind::Moved);
    assert!(read_all(&target, &ranges()).await.is_empty());
    assert!(tables(&there).is_empty(), "tables that nothing names");
    // One whom nobody waits for any more.
    drop(target.unpack(vec![], pack(&source, &ranges()).await));
    commit(&target, vec![Write::Put(guard.clone(), "".into())]).await;
    assert!(target.unpack(vec![guard], pack(&source, &ranges()).await).await.unwrap());
    assert_holds(&target, &read_all(&source, &ranges()).await).await;
}

/// As on two file systems.
#[tokio::test]
async fn what_cannot_be_shared_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    let apart = Settings { shares_tables: false, ..settings() };
    let source = open(&folder.path().join("here"));
    let target = EmbeddedStore::open(&there, &apart).unwrap();
    fill(&source, 2).await;
    assert!(target.unpack(vec![], pack(&source, &ranges()).await).await.unwrap());
    #[cfg(unix)]
    assert_eq!(shared(&there), 0);
    let expected = read_all(&source, &ranges()).await;
    assert_holds(&target, &expected).await;
    drop(target);
    assert_holds(&open_again(&there, &apart).await, &expected).await;
}

/// A table of the same name is still read here when it comes back.
#[tokio::test]
async fn what_has_not_gone_yet_keeps_its_name_when_it_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    let (source, target) = (open(&folder.path().join("here")), open(&there));
    let items = |n: usize| (n * CHUNK..(n + 1) * CHUNK).map(|n| (key(n), noise(n))).collect();
    for n in 0..ITEMS / CHUNK {
        source.ingest(vec![], items(n)).await.unwrap();
    }
    let expected = read_all(&source, &ranges()).await;
    let all = [KeyRange::new(key(0), Some(key(ITEMS)))];
    assert!(target.unpack(vec![], pack(&source, &all).await).await.unwrap());
    let reader = target.snapshot(&[], Reads::Long).await.unwrap();
    let names = tables(&there);
    let began = Instant::now();
    while target.drop_range(vec![], &all[0]).await.unwrap() != Dropped::All {
        assert!(began.elapsed() < WAIT_MAX);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(read_all(&target, &all).await.is_empty(), "all of it lay in tables of its own");
    assert!(names.iter().all(|name| name.exists()), "somebody reads them");
    assert!(target.unpack(vec![], pack(&source, &all).await).await.unwrap());
    drop(reader);
    // The engine lets go of the first ones now.
    for n in 0..400 {
        commit(&target, vec![Write::Put(format!("z{n}").into(), noise(n))]).await;
    }
    assert_holds(&target, &expected).await;
    drop(target);
    assert_holds(&open_again(&there, &settings()).await, &expected).await;
}

/// What comes lies as deep as it did, so that nothing of it is merged with what lies on top of it.
#[cfg(unix)]
#[tokio::test]
async fn the_engine_rewrites_nothing_of_what_has_come() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let of_the_usual_size = Settings { table_bytes: 64 * 1024 * 1024, ..settings() };
    let source = EmbeddedStore::open(&here, &of_the_usual_size).unwrap();
    let target = EmbeddedStore::open(&there, &of_the_usual_size).unwrap();
    for start in (0..ITEMS).step_by(CHUNK) {
        let items = (start..start + CHUNK).map(|n| (key(n), noise(n))).collect();
        source.ingest(vec![], items).await.unwrap();
    }
    commit(&source, vec![Write::Put(key(7), "in the memtable".into())]).await;
    let all = [KeyRange::new(key(0), Some(key(ITEMS)))];
    assert!(target.unpack(vec![], pack(&source, &all).await).await.unwrap());
    assert_eq!(shared(&there), ITEMS / CHUNK);
    // Flushes make the engine look for something to merge.
    for n in 0..600 {
        commit(&target, vec![Write::Put(key(n * 7), noise(n))]).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let is_own = |path: &&PathBuf| path.metadata().is_ok_and(|file| file.nlink() == 1);
    let own = tables(&there)
        .iter()
        .filter(is_own)
        .map(|path| path.metadata().unwrap().len())
        .sum::<u64>();
    assert!((1..5_000_000).contains(&own), "of what has come something was written anew: {own}");
}

#[tokio::test]
async fn little_is_not_worth_a_parcel() {
    let folder = tempfile::tempdir().unwrap();
    let source = open(folder.path());
    commit(&source, (0..100).map(|n| Write::Put(key(n), noise(n))).collect()).await;
    for range in [KeyRange::all(), KeyRange::new(key(0), Some(key(50))), KeyRange::prefix("\0")] {
        assert!(matches!(source.pack(&[range]).await.unwrap(), Packed::Nothing));
    }
}
