//! The thread that has tables written out lives as long as its store, and is in nobody's way.
//!
//! One test in a process of its own: it counts threads.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_store::{Reads, Store};
use lazuli_store_embedded::{EmbeddedStore, Settings};

/// Linux keeps the first fifteen bytes of a thread's name.
const NAME: &str = "lazuli:writebac";
/// A thread is listed for a moment after it has ended.
const LISTED_MAX: Duration = Duration::from_secs(10);

fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One that ends while this looks has no name any more.
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(|task| name(task.unwrap())).filter(|name| name.trim_end() == NAME).count()
}

#[track_caller]
fn assert_threads(count: usize) {
    let start = Instant::now();
    while threads() != count && start.elapsed() < LISTED_MAX {
        std::thread::yield_now();
    }
    assert_eq!(threads(), count);
}

#[tokio::test]
async fn the_thread_ends_with_its_store_which_can_be_opened_again_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let settings = Settings::default();
    let load = || (0..4_000).map(|n| (format!("key-{n:05}").into(), Bytes::from(vec![7; 1_000])));
    let other = EmbeddedStore::open(&second, &settings).unwrap();
    for _ in 0..10 {
        let store = EmbeddedStore::open(&first, &settings).unwrap();
        assert_threads(2);
        store.ingest(vec![], load().collect()).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        assert_threads(1);
    }
    // A view keeps the engine open, and with it what may write tables.
    let view = other.snapshot(&[], Reads::Long).await.unwrap();
    drop(other);
    assert_threads(1);
    drop(view);
    assert_threads(0);
    std::fs::remove_dir_all(&first).unwrap();
    std::fs::remove_dir_all(&second).unwrap();
}
