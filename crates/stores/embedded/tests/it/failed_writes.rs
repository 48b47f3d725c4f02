//! What a store does while the disk takes no writes, and when it takes them again.
//!
//! The limit of the system on the size of files stands in for a disk that fails: every write beyond it is refused, and
//! it can be lifted again. It holds for the whole process, so each case runs in a process of its own.

use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_store::{
    Direction, KeyRange, Kind, PageLimit, Reads, Result, Store, StoreHealth, Write,
};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Says to a process that it is the one that the case runs in.
const INSIDE: &str = "LAZULI_FAILED_WRITES_INSIDE";
/// Where writes begin to fail: inside a commit. Then nothing of any size can be written, as on a disk that is broken.
const LIMIT_BYTES: u64 = 1024 * 1024;
const BROKEN_BYTES: u64 = 4 * 1024;
/// For how long a store may stay away after the disk takes writes again.
const BACK_MAX: Duration = Duration::from_secs(20);
/// At once, on a machine that does much else.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Runs a test again in a process that is not killed for writing beyond the limit. Says whether this is that process.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let exe = std::env::current_exe().unwrap();
    let test = format!("failed_writes::{test}");
    let ignoring = "trap '' XFSZ; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", ignoring, exe.to_str().unwrap(), "--exact", &test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let cried = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{cried}");
    false
}

fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum }).unwrap();
}

fn key(number: usize, half: char) -> Bytes {
    format!("item-{number:05}-{half}").into()
}

fn value(number: usize) -> Bytes {
    vec![number as u8; 5_000].into()
}

/// Two items and a row of the shard's own, which are all there or none of them.
async fn put(store: &EmbeddedStore, number: usize) -> Result<()> {
    let own = Write::Put("\0\0\0\0newest".into(), number.to_string().into());
    let halves = ['a', 'b'].map(|half| Write::Put(key(number, half), value(number)));
    store.begin(vec![]).await?.commit(halves.into_iter().chain([own]).collect()).await
}

/// The numbers of the items that are there, each as a whole.
async fn numbers(store: &EmbeddedStore) -> Vec<usize> {
    let view = store.snapshot(&[], Reads::Long).await.unwrap();
    let page = view.scan(&KeyRange::prefix("item-"), Direction::Forward, PageLimit::MAX).await;
    let items = page.unwrap().items;
    let number = |key: &Bytes| std::str::from_utf8(&key[5..10]).unwrap().parse().unwrap();
    let numbers: Vec<usize> = items.chunks(2).map(|pair| number(&pair[0].0)).collect();
    let whole: Vec<_> = numbers
        .iter()
        .flat_map(|&number| ['a', 'b'].map(|half| (key(number, half), value(number))))
        .collect();
    assert!(items == whole, "half a commit");
    for &number in &numbers {
        assert_eq!(view.get(&key(number, 'b')).await.unwrap(), Some(value(number)));
    }
    numbers
}

/// Writes until the disk refuses. Gives the numbers that were answered.
async fn write_until_refused(store: &EmbeddedStore, first: usize) -> Vec<usize> {
    let mut answered = Vec::new();
    for number in first..first + 1_000 {
        match put(store, number).await {
            Ok(()) => answered.push(number),
            Err(error) => {
                assert!(matches!(error.kind(), Kind::Unavailable { .. }), "{error}");
                assert_eq!(error.code(), "disk-failed", "{error}");
                return answered;
            }
        }
    }
    panic!("nothing was refused");
}

async fn write_when_back(store: &EmbeddedStore, number: usize) -> Duration {
    let began = Instant::now();
    while let Err(error) = put(store, number).await {
        assert!(began.elapsed() < BACK_MAX, "it does not come back: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

async fn fails_and_comes_back(durability: Durability) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { durability, ..Settings::default() };
    let store = EmbeddedStore::open(folder.path(), &settings).unwrap();
    let mut expected = Vec::new();
    // A second failure finds a store that has been opened behind its handle before.
    for round in 1..=2 {
        put(&store, round * 10_000).await.unwrap();
        expected.push(round * 10_000);
        let old = store.snapshot(&[], Reads::Long).await.unwrap();
        limit_files(Some(round as u64 * LIMIT_BYTES));
        expected.extend(write_until_refused(&store, round * 10_000 + 1).await);
        limit_files(Some(BROKEN_BYTES));
        assert!(expected.len() > round * 10, "{}", expected.len());
        assert!(matches!(store.health(), StoreHealth::Failed(_)), "{:?}", store.health());
        for _ in 0..100 {
            assert_eq!(numbers(&store).await, expected);
            let key = key(round * 10_000, 'a');
            assert!(old.get(&key).await.unwrap().is_some(), "an older view");
            let began = Instant::now();
            let refused = put(&store, 99_999).await.unwrap_err();
            assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
            assert_eq!(refused.code(), "disk-failed", "{refused}");
        }
        limit_files(None);
        let back = write_when_back(&store, round * 10_000 + 5_000).await;
        println!("round {round}: back after {back:?}");
        expected.push(round * 10_000 + 5_000);
        assert_eq!(numbers(&store).await, expected);
        assert!(matches!(store.health(), StoreHealth::Well), "{:?}", store.health());
    }
    store.close().await.unwrap();
    drop(store);
    let store = EmbeddedStore::open(folder.path(), &settings).unwrap();
    assert_eq!(numbers(&store).await, expected);
    assert!(store.verify().unwrap().damages.is_empty());
}

#[test]
fn reads_go_on_after_a_failed_write_and_writes_come_back() {
    if is_inside("reads_go_on_after_a_failed_write_and_writes_come_back") {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(fails_and_comes_back(Durability::Synced));
    }
}

#[test]
fn relaxed_writes_come_back_too() {
    if is_inside("relaxed_writes_come_back_too") {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(fails_and_comes_back(Durability::Relaxed));
    }
}
