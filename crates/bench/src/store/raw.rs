//! The engine as it is, behind the least that can be called a group commit: no guards, no markers, no trait.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use bytes::Bytes;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use lazuli_store::Write;
use lazuli_store_embedded::Durability;
use tokio::sync::oneshot;

use super::load::Load;

#[derive(Default)]
struct Waiting {
    jobs: Vec<(Vec<Write>, oneshot::Sender<()>)>,
    closed: bool,
}

type Queue = Arc<(Mutex<Waiting>, Condvar)>;

pub(super) struct RawStore {
    keyspace: Keyspace,
    db: Database,
    queue: Queue,
    thread: Option<JoinHandle<()>>,
}

impl RawStore {
    /// The same options as the store's.
    pub(super) fn open(path: &Path) -> Self {
        let settings = super::settings(Durability::Synced);
        let options = KeyspaceCreateOptions::default().max_memtable_size(settings.memtable_bytes);
        let db = Database::builder(path)
            .cache_size(settings.cache_bytes)
            .max_journaling_size(settings.journal_bytes_max)
            .worker_threads(settings.workers)
            .journal_compression(CompressionType::None)
            .open()
            .expect("the engine opens");
        let keyspace = db.keyspace("data", || options).expect("the keyspace opens");
        let queue = Queue::default();
        let thread = {
            let (db, keyspace, queue) = (db.clone(), keyspace.clone(), queue.clone());
            std::thread::spawn(move || run(&db, &keyspace, &queue))
        };
        Self { keyspace, db, queue, thread: Some(thread) }
    }

    pub(super) fn fill(&self, load: &Load) {
        for batch in load.batches() {
            write(&self.db, &self.keyspace, std::iter::once(batch), PersistMode::Buffer);
        }
        self.keyspace.rotate_memtable_and_wait().expect("the engine flushes");
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.keyspace.get(key).expect("the engine reads").map(Bytes::from)
    }

    pub(super) async fn commit(&self, writes: Vec<Write>) {
        let (answer, answered) = oneshot::channel();
        let (waiting, filled) = &*self.queue;
        waiting
            .lock()
            .expect("no thread panics while it holds the lock")
            .jobs
            .push((writes, answer));
        filled.notify_one();
        answered.await.expect("the committer runs");
    }
}

impl Drop for RawStore {
    fn drop(&mut self) {
        let (waiting, filled) = &*self.queue;
        waiting.lock().expect("no thread panics while it holds the lock").closed = true;
        filled.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the committer ends");
        }
    }
}

fn run(db: &Database, keyspace: &Keyspace, queue: &Queue) {
    let (waiting, filled) = &**queue;
    loop {
        let mut state = waiting.lock().expect("no thread panics while it holds the lock");
        while state.jobs.is_empty() {
            if state.closed {
                return;
            }
            state = filled.wait(state).expect("no thread panics while it holds the lock");
        }
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        let (writes, answers): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        write(db, keyspace, writes, PersistMode::SyncData);
        for answer in answers {
            let _ = answer.send(());
        }
    }
}

fn write(
    db: &Database,
    keyspace: &Keyspace,
    group: impl IntoIterator<Item = Vec<Write>>,
    mode: PersistMode,
) {
    let mut batch = db.batch().durability(Some(mode));
    for write in group.into_iter().flatten() {
        match write {
            Write::Put(key, value) => batch.insert(keyspace, key, value),
            Write::Delete(key) => batch.remove(keyspace, key),
        }
    }
    batch.commit().expect("the engine commits");
}
