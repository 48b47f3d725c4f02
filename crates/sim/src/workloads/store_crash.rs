//! Tests the simulated disk itself: writers commit pairs of keys while their process is killed again and again.
//!
//! Every transaction writes the same number under two keys; both must always be equal. After a crash the number is
//! the last answered one or, if a commit was running, the one after it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazuli_store::{KeyRange, Store, Write};

use crate::ClockFaults;
use crate::disk::{DECIDED_MAX, Disk};
use crate::ensure;
use crate::executor::World;
use crate::faults::StoreFaults;
use crate::lock;
use crate::scenario::Found;
use crate::store::SimStore;

/// A writer's state: the last answered number, and the last one tried.
#[derive(Clone, Copy, Default)]
struct Progress {
    answered: u64,
    tried: u64,
}

type AllProgress = Arc<Mutex<Vec<Progress>>>;

pub async fn run(world: World) -> Found {
    let random = world.random("store_crash");
    let writers = random.between(1, 6);
    let progress: AllProgress = Arc::default();
    lock(&progress).resize(writers as usize, Progress::default());
    let disk = Disk::new(&world, "disk");
    let zeros = (0..writers as usize).flat_map(pair);
    disk.put(zeros.map(|key| (key, Bytes::copy_from_slice(&0u64.to_be_bytes()))));
    for _ in 0..random.between(1, 6) {
        let process = world.process("writers", ClockFaults::default());
        let store = SimStore::open(&disk, &process, StoreFaults::draw(&random));
        for writer in 0..writers as usize {
            let task = write(store.clone(), writer, progress.clone());
            process.spawn("writer", Box::pin(task));
        }
        world.sleep(Duration::from_micros(random.between(0, 50_000))).await;
        process.kill();
        world.sleep(DECIDED_MAX).await;
        check(&disk, &progress)?;
    }
    Ok(())
}

fn pair(writer: usize) -> [Bytes; 2] {
    [format!("a{writer}").into(), format!("b{writer}").into()]
}

fn number(value: Option<&Bytes>) -> u64 {
    let bytes = value.and_then(|value| value[..].try_into().ok());
    bytes.map_or(0, u64::from_be_bytes)
}

/// Continues from the state on disk until a commit fails, then reads again: the failed one may have happened.
async fn write(store: SimStore, writer: usize, progress: AllProgress) {
    loop {
        let [a, b] = pair(writer);
        let Ok(txn) = store.begin(vec![a.clone()]).await else { continue };
        let Ok(value) = txn.get(&a).await else { continue };
        let next = number(value.as_ref()) + 1;
        lock(&progress)[writer].tried = next;
        let value = Bytes::copy_from_slice(&next.to_be_bytes());
        let writes = vec![Write::Put(a, value.clone()), Write::Put(b, value)];
        if txn.commit(writes).await.is_ok() {
            lock(&progress)[writer].answered = next;
        }
    }
}

fn check(disk: &Disk, progress: &AllProgress) -> Found {
    let items = disk.items(&KeyRange::all());
    let find = |key: &Bytes| number(items.iter().find(|(k, _)| k == key).map(|(_, v)| v));
    for (writer, Progress { answered, tried }) in lock(progress).iter().enumerate() {
        let [a, b] = pair(writer).map(|key| find(&key));
        ensure!(a == b, "writer {writer}: half a transaction, {a} and {b}");
        ensure!(a >= *answered, "writer {writer}: {answered} was answered, {a} is there");
        ensure!(a <= *tried, "writer {writer}: {tried} was the last try, {a} is there");
    }
    Ok(())
}
