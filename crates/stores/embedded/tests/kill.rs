//! A child process writes, is killed at a random moment, and the next one goes on with what it finds.
//!
//! SIGKILL keeps the page cache: this shows that answers, batches and starts are in order, not that a sync is one.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_store::{Direction, Dropped, KeyRange, PageLimit, Store, Write};
use lazuli_store_embedded::{EmbeddedStore, Settings};
use tokio::sync::RwLock;

const WRITERS: usize = 16;
/// The number of the one that loads, among those who are answered, and what each of its loads replaces.
const LOADER: usize = WRITERS;
const LOAD_ITEMS: usize = 1_500;
/// The one that drops what it has loaded, and the rows in which it counts what it has begun to load and what it has dropped.
const DROPPER: usize = WRITERS + 1;
const LOADED: &str = "\0\0\0\0loaded";
const DROPPED: &str = "\0\0\0\0dropped";
/// How often it asks a store that is busy.
const ASKS_MAX: usize = 100;
/// As who it says that tables went, and not only what was deleted key by key.
const TABLES_DROPPER: usize = WRITERS + 2;
/// More rounds than a test run has time for: set `LAZULI_KILL_ROUNDS`.
const ROUNDS: u64 = 10;

/// Small memtables, so that flushes, compactions and what they delete are killed too.
fn settings() -> Settings {
    Settings { memtable_bytes: 512 * 1024, ..Settings::default() }
}

/// Every other one lies among the shard's own rows, in another keyspace than the items that it counts.
fn counter_key(writer: usize) -> Bytes {
    let prefix = if writer.is_multiple_of(2) { "\0\0\0\0" } else { "" };
    format!("{prefix}counter-{writer:02}").into()
}

fn item_key(writer: usize, number: u64) -> Bytes {
    format!("item-{writer:02}-{number:08}").into()
}

/// Says which item it is of, and has a length of its own.
fn item_value(writer: usize, number: u64) -> Bytes {
    let line = format!("writer {writer} number {number};");
    line.repeat((number as usize * 7 + writer) % 60 + 1).into()
}

async fn counter(store: &EmbeddedStore, writer: usize) -> u64 {
    count_in(store, &counter_key(writer)).await
}

async fn count_in(store: &EmbeddedStore, key: &[u8]) -> u64 {
    let value = store.snapshot().get(key).await.unwrap();
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
}

fn load_key(number: usize) -> Bytes {
    format!("load-{number:06}").into()
}

/// Which load each item is of, without repetition.
async fn loads(store: &EmbeddedStore) -> Vec<u64> {
    let snapshot = store.snapshot();
    let range = KeyRange::prefix("load-");
    let page = snapshot.scan(&range, Direction::Forward, PageLimit::MAX).await.unwrap();
    assert!(page.items.is_empty() || page.items.len() == LOAD_ITEMS, "{}", page.items.len());
    let number = |value: &Bytes| u64::from_be_bytes(value[..8].try_into().unwrap());
    let mut found: Vec<u64> = page.items.iter().map(|(_, value)| number(value)).collect();
    found.dedup();
    found
}

/// Replaces all items of the load by those of the next, over and over.
async fn keep_loading(store: Arc<EmbeddedStore>, quiet: Arc<RwLock<()>>) {
    for number in loads(&store).await.first().copied().unwrap_or(0) + 1.. {
        let mut value = number.to_be_bytes().to_vec();
        value.resize(1_000, 0);
        let value = Bytes::from(value);
        let items = (0..LOAD_ITEMS).map(|n| (load_key(n), value.clone())).collect();
        let _writing = quiet.read().await;
        store.ingest(vec![], items).await.unwrap();
        tell(LOADER, number);
    }
}

/// Four kilobytes that stay as many when they are compressed: what takes up little is not dropped.
fn noise(seed: u64) -> Bytes {
    let mut state = seed + 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(4_000).collect::<Vec<u8>>().into()
}

fn dropped() -> KeyRange {
    KeyRange::prefix("drop-")
}

/// Loads items, writes some more of them, and lets all of them go, over and over. All others wait meanwhile: what
/// is merged with rows of others lies in no table of its own, and nothing is dropped while the engine merges.
async fn keep_dropping(store: Arc<EmbeddedStore>, quiet: Arc<RwLock<()>>) {
    let note = async |key: &'static str, number: u64| {
        let write = Write::Put(key.into(), number.to_be_bytes().to_vec().into());
        store.begin(vec![]).await.unwrap().commit(vec![write]).await.unwrap();
    };
    for number in count_in(&store, LOADED.as_bytes()).await + 1.. {
        note(LOADED, number).await;
        let others_wait = quiet.write().await;
        let key = |n: usize| Bytes::from(format!("drop-{n:06}"));
        let items = (0..LOAD_ITEMS).map(|n| (key(n), noise(n as u64))).collect();
        store.ingest(vec![], items).await.unwrap();
        for n in 0..20 {
            let put = Write::Put(key(n * 50), vec![1; 100].into());
            store.begin(vec![]).await.unwrap().commit(vec![put]).await.unwrap();
        }
        for _ in 0..ASKS_MAX {
            if store.drop_range(vec![LOADED.into()], &dropped()).await.unwrap() == Dropped::All {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        drop(others_wait);
        let mut left = 0;
        loop {
            let deleted = store.delete_range(&dropped(), 1_000).await.unwrap();
            left += deleted;
            if deleted < 1_000 {
                break;
            }
        }
        note(DROPPED, number).await;
        tell(DROPPER, number);
        if left < LOAD_ITEMS {
            tell(TABLES_DROPPER, number);
        }
    }
}

/// One write per line: a pipe takes it whole or not at all.
fn tell(writer: usize, number: u64) {
    let line = format!("answered {writer} {number}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

/// Not a test of its own: the process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the test below"]
async fn child() {
    let Ok(folder) = std::env::var("LAZULI_KILL_FOLDER") else { return };
    let store = Arc::new(EmbeddedStore::open(folder, &settings()).unwrap());
    let quiet = Arc::new(RwLock::new(()));
    for writer in 0..WRITERS {
        let (store, quiet) = (store.clone(), quiet.clone());
        tokio::spawn(async move {
            for number in counter(&store, writer).await + 1.. {
                let _writing = quiet.read().await;
                let txn = store.begin(vec![]).await.unwrap();
                let writes = vec![
                    Write::Put(item_key(writer, number), item_value(writer, number)),
                    Write::Put(counter_key(writer), number.to_be_bytes().to_vec().into()),
                ];
                txn.commit(writes).await.unwrap();
                tell(writer, number);
            }
        });
    }
    tokio::spawn(keep_loading(store.clone(), quiet.clone()));
    tokio::spawn(keep_dropping(store, quiet));
    std::future::pending::<()>().await;
}

/// Runs the child for a while, kills it, and says what it was answered.
fn run_and_kill(folder: &Path, run: Duration) -> BTreeMap<usize, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child", "--nocapture", "--test-threads=1"])
        .env("LAZULI_KILL_FOLDER", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut answered = BTreeMap::new();
        for line in lines.split(b'\n').map(Result::unwrap) {
            let line = String::from_utf8_lossy(&line);
            let mut words = line.split(' ');
            if let (Some("answered"), Some(writer), Some(number), None) =
                (words.next(), words.next(), words.next(), words.next())
            {
                answered.insert(writer.parse().unwrap(), number.parse().unwrap());
            }
        }
        answered
    });
    std::thread::sleep(run);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// Everything that was answered is there, and nothing is there by half.
async fn check(folder: &Path, answered: &BTreeMap<usize, u64>) -> u64 {
    let store = EmbeddedStore::open(folder, &settings()).unwrap();
    let loaded = loads(&store).await;
    assert!(loaded.len() <= 1, "a load is there by half: {loaded:?}");
    let promised = answered.get(&LOADER).copied().unwrap_or(0);
    assert!(loaded.first().copied().unwrap_or(0) >= promised, "{loaded:?} of {promised}");
    let begun = count_in(&store, LOADED.as_bytes()).await;
    let gone = count_in(&store, DROPPED.as_bytes()).await;
    assert!(gone >= answered.get(&DROPPER).copied().unwrap_or(0));
    if begun == gone {
        let page =
            store.snapshot().scan(&dropped(), Direction::Forward, PageLimit::MAX).await.unwrap();
        assert_eq!(page.items.len(), 0, "what was dropped came back");
    }
    let mut total = 0;
    for writer in 0..WRITERS {
        let last = counter(&store, writer).await;
        let promised = answered.get(&writer).copied().unwrap_or(0);
        assert!(last >= promised, "writer {writer} was answered {promised}, {last} is left");
        let mut range = KeyRange::prefix(format!("item-{writer:02}-"));
        let mut number = 0;
        loop {
            let snapshot = store.snapshot();
            let page = snapshot.scan(&range, Direction::Forward, PageLimit::MAX).await.unwrap();
            for (key, value) in &page.items {
                number += 1;
                assert_eq!((key, value), (&item_key(writer, number), &item_value(writer, number)));
            }
            match page.items.last() {
                Some((key, _)) if page.more => range.start = lazuli_store::after_key(key),
                _ => break,
            }
        }
        assert_eq!(number, last, "writer {writer}: counter and items differ");
        total += last;
    }
    total
}

#[tokio::test]
async fn no_kill_loses_an_answered_commit() {
    let rounds =
        std::env::var("LAZULI_KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut answered = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        // From a moment that hits the start to one that lets tables pile up.
        let run =
            Duration::from_millis([30, 400, 60, 150, 700][round as usize % 5] + round * 13 % 40);
        answered.append(&mut run_and_kill(folder.path(), run));
        if round % 4 == 3 {
            // Every now and then the next child must recover by itself what this one left.
            continue;
        }
        let start = Instant::now();
        let total = check(folder.path(), &answered).await;
        slowest = slowest.max(start.elapsed());
        println!("round {round}: {total} commits, checked in {:?}", start.elapsed());
    }
    let total = check(folder.path(), &answered).await;
    assert!(answered.contains_key(&TABLES_DROPPER), "no table was ever dropped");
    assert!(total > rounds * 10, "only {total} commits in {rounds} rounds");
}
