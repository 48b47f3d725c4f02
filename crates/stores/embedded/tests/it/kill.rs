//! A child process writes, is killed at a random moment, and the next one goes on with what it finds.
//!
//! SIGKILL keeps the page cache: this shows that answers, batches and starts are in order, not that a sync is one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_store::{
    Direction, Dropped, Handover, KeyRange, Packed, PageLimit, Reads, Store, Write,
};
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
/// The one that has what it loads carried to a second store, the rows in which that one counts what has come and what may go
/// again, and the writer that it has to itself.
const CARRIER: usize = WRITERS + 3;
const ARRIVED: &str = "\0\0\0\0arrived";
const LEAVING: &str = "\0\0\0\0leaving";
const WRITER_BESIDE: usize = WRITERS + 4;
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
    let value = store.get(key).await.unwrap();
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
}

fn load_key(number: usize) -> Bytes {
    format!("load-{number:06}").into()
}

/// Which load each item is of, without repetition.
async fn loads(store: &EmbeddedStore) -> Vec<u64> {
    let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
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
    lazuli_env::SplitMix64::new(seed).bytes(4_000).into()
}

fn dropped() -> KeyRange {
    KeyRange::prefix("drop-")
}

async fn note(store: &EmbeddedStore, key: &'static str, number: u64) {
    let write = Write::Put(key.into(), number.to_be_bytes().to_vec().into());
    store.begin(vec![]).await.unwrap().commit(vec![write]).await.unwrap();
}

async fn drop_tables(store: &EmbeddedStore, range: &KeyRange) {
    for _ in 0..ASKS_MAX {
        if store.drop_range(vec![], range).await.unwrap() == Dropped::All {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Deletes what is left of a range, and says how much that was.
async fn delete(store: &EmbeddedStore, range: &KeyRange) -> usize {
    let mut left = 0;
    loop {
        let deleted = store.delete_range(range, 1_000).await.unwrap();
        left += deleted;
        if deleted < 1_000 {
            return left;
        }
    }
}

/// What is carried the time with this number, each time to a place where nothing was before.
fn carried(number: u64) -> KeyRange {
    KeyRange::prefix(format!("carry-{number:06}-"))
}

fn carried_key(number: u64, n: usize) -> Bytes {
    format!("carry-{number:06}-{n:06}").into()
}

/// Loads items, writes one more of them, has all of them carried to the second store, and lets them go in both, over and
/// over.
async fn keep_carrying(
    store: Arc<EmbeddedStore>,
    beside: Arc<EmbeddedStore>,
    quiet: Arc<RwLock<()>>,
) {
    let arrived = count_in(&beside, ARRIVED.as_bytes()).await;
    note(&beside, LEAVING, arrived).await;
    for number in arrived.. {
        let range = carried(number);
        // What an earlier one left may be in the way, and then the next one is not.
        delete(&store, &range).await;
        delete(&beside, &range).await;
        let others_wait = quiet.write().await;
        let items = (0..LOAD_ITEMS).map(|n| (carried_key(number, n), noise(number + n as u64)));
        store.ingest(vec![], items.collect()).await.unwrap();
        let last = Write::Put(carried_key(number, LOAD_ITEMS), noise(number + LOAD_ITEMS as u64));
        store.begin(vec![]).await.unwrap().commit(vec![last]).await.unwrap();
        let mut taken = false;
        for _ in 0..ASKS_MAX {
            match store.pack(std::slice::from_ref(&range)).await.unwrap() {
                Packed::Parcel(parcel) => {
                    taken = beside.unpack(vec![], parcel).await.unwrap();
                    break;
                }
                Packed::NotNow => tokio::time::sleep(Duration::from_millis(2)).await,
                Packed::Nothing => break,
            }
        }
        if taken {
            note(&beside, ARRIVED, number).await;
            tell(CARRIER, number);
        }
        drop_tables(&store, &range).await;
        drop(others_wait);
        delete(&store, &range).await;
        if taken {
            note(&beside, LEAVING, number).await;
        }
        drop_tables(&beside, &range).await;
        delete(&beside, &range).await;
    }
}

/// Loads items, writes some more of them, and lets all of them go, over and over. All others wait meanwhile: what
/// is merged with rows of others lies in no table of its own, and nothing is dropped while the engine merges.
async fn keep_dropping(store: Arc<EmbeddedStore>, quiet: Arc<RwLock<()>>) {
    for number in count_in(&store, LOADED.as_bytes()).await + 1.. {
        note(&store, LOADED, number).await;
        let others_wait = quiet.write().await;
        let key = |n: usize| Bytes::from(format!("drop-{n:06}"));
        let items = (0..LOAD_ITEMS).map(|n| (key(n), noise(n as u64))).collect();
        store.ingest(vec![], items).await.unwrap();
        for n in 0..20 {
            let put = Write::Put(key(n * 50), vec![1; 100].into());
            store.begin(vec![]).await.unwrap().commit(vec![put]).await.unwrap();
        }
        drop_tables(&store, &dropped()).await;
        drop(others_wait);
        let left = delete(&store, &dropped()).await;
        note(&store, DROPPED, number).await;
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
    let [store, beside] = open(Path::new(&folder)).map(Arc::new);
    let quiet = Arc::new(RwLock::new(()));
    for writer in 0..WRITERS {
        tokio::spawn(keep_writing(store.clone(), writer, quiet.clone()));
    }
    tokio::spawn(keep_writing(beside.clone(), WRITER_BESIDE, Arc::default()));
    tokio::spawn(keep_loading(store.clone(), quiet.clone()));
    tokio::spawn(keep_dropping(store.clone(), quiet.clone()));
    tokio::spawn(keep_carrying(store, beside, quiet));
    std::future::pending::<()>().await;
}

/// The store that nearly all happens in, and a second one.
fn open(folder: &Path) -> [EmbeddedStore; 2] {
    ["first", "second"].map(|name| EmbeddedStore::open(folder.join(name), &settings()).unwrap())
}

async fn keep_writing(store: Arc<EmbeddedStore>, writer: usize, quiet: Arc<RwLock<()>>) {
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
}

/// Runs the child for a while, kills it, and says what it was answered.
fn run_and_kill(folder: &Path, run: Duration) -> BTreeMap<usize, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "kill::child", "--nocapture", "--test-threads=1"])
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
    let [store, beside] = open(folder);
    check_carried(&beside, answered).await;
    let loaded = loads(&store).await;
    assert!(loaded.len() <= 1, "a load is there by half: {loaded:?}");
    let promised = answered.get(&LOADER).copied().unwrap_or(0);
    assert!(loaded.first().copied().unwrap_or(0) >= promised, "{loaded:?} of {promised}");
    let begun = count_in(&store, LOADED.as_bytes()).await;
    let gone = count_in(&store, DROPPED.as_bytes()).await;
    assert!(gone >= answered.get(&DROPPER).copied().unwrap_or(0));
    if begun == gone {
        let page = store.scan(&dropped(), Direction::Forward, PageLimit::MAX).await.unwrap();
        assert_eq!(page.items.len(), 0, "what was dropped came back");
    }
    let mut total = check_written(&beside, WRITER_BESIDE, answered).await;
    for writer in 0..WRITERS {
        total += check_written(&store, writer, answered).await;
    }
    total
}

/// What has come to the second store is there until it was to go.
async fn check_carried(beside: &EmbeddedStore, answered: &BTreeMap<usize, u64>) {
    let arrived = count_in(beside, ARRIVED.as_bytes()).await;
    assert!(arrived >= answered.get(&CARRIER).copied().unwrap_or(0));
    if arrived > count_in(beside, LEAVING.as_bytes()).await {
        let snapshot = beside.snapshot(&[], Reads::Long).await.unwrap();
        for n in 0..=LOAD_ITEMS {
            let found = snapshot.get(&carried_key(arrived, n)).await.unwrap();
            assert_eq!(found, Some(noise(arrived + n as u64)), "{n} of {arrived}");
        }
    }
    assert_eq!(beside.verify().unwrap().damages, []);
}

/// Items that are there without a gap, as many as were counted: at least those that were answered.
async fn check_written(
    store: &EmbeddedStore,
    writer: usize,
    answered: &BTreeMap<usize, u64>,
) -> u64 {
    let last = counter(store, writer).await;
    let promised = answered.get(&writer).copied().unwrap_or(0);
    assert!(last >= promised, "writer {writer} was answered {promised}, {last} is left");
    let mut range = KeyRange::prefix(format!("item-{writer:02}-"));
    let mut number = 0;
    loop {
        let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
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
    last
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
    assert!(answered.contains_key(&CARRIER), "nothing was ever carried");
    assert!(total > rounds * 10, "only {total} commits in {rounds} rounds");
}
