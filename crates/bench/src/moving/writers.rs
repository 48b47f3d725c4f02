//! Clients that write at a fixed rate, whether or not they are answered, and how long each of them waits.
//!
//! A thread of its own sends them off, so that nothing that happens to the runtime makes it send fewer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lazuli_store::Error;

use super::world::World;
use crate::figures::Latency;

/// How long the thread sleeps between two looks at what is due.
const STEP: Duration = Duration::from_micros(250);

/// When a write was sent, and how long it took.
type Write = (Instant, Duration);

#[derive(Default)]
struct Seen {
    writes: Mutex<Vec<Write>>,
    /// How many were refused, and the last refusal.
    refused: Mutex<(u64, Option<Error>)>,
    done: AtomicBool,
}

pub(super) struct Writers {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writers {
    /// Must be called inside the runtime that is to run them.
    pub(super) fn start(world: &Arc<World>, per_second: u64) -> Self {
        let seen = Arc::new(Seen::default());
        let runtime = tokio::runtime::Handle::current();
        let (world, shared) = (world.clone(), seen.clone());
        let send = move || {
            let (began, mut sent) = (Instant::now(), 0);
            while !shared.done.load(Ordering::Relaxed) {
                let due = (began.elapsed().as_secs_f64() * per_second as f64) as u64;
                while sent < due {
                    runtime.spawn(write(world.clone(), shared.clone(), sent, Instant::now()));
                    sent += 1;
                }
                std::thread::sleep(STEP);
            }
        };
        Self { seen, thread: Some(std::thread::spawn(send)) }
    }

    /// Of those sent since then and answered by now.
    pub(super) fn since(&self, start: Instant) -> Latency {
        let mut writes = lock(&self.seen.writes);
        let of = writes.iter().filter(|(at, _)| *at >= start).map(|(_, took)| *took);
        let latency = Latency::of(of.collect());
        // Earlier ones are not asked for again.
        writes.retain(|(at, _)| *at >= start);
        latency
    }

    /// Ends them. Says how many were refused, and why the last one was.
    pub(super) fn stop(mut self) -> (u64, Option<Error>) {
        self.end();
        std::mem::take(&mut *lock(&self.seen.refused))
    }

    fn end(&mut self) {
        self.seen.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread that sends does not panic");
        }
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.end();
    }
}

async fn write(world: Arc<World>, seen: Arc<Seen>, number: u64, start: Instant) {
    match world.write(number).await {
        Ok(()) => lock(&seen.writes).push((start, start.elapsed())),
        Err(error) => {
            let mut refused = lock(&seen.refused);
            *refused = (refused.0 + 1, Some(error));
        }
    }
}
