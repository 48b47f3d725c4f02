//! Clients of the endpoint that write at a fixed rate, whether or not earlier writes are answered.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio_postgres::{Client, Config, NoTls};

use super::super::Result;
use super::world::{LOGIN, PASSWORD};
use crate::figures::Latency;

/// Connections that take turns. Writes of one connection wait for each other, as those of a real client do.
const CONNECTIONS: usize = 32;
/// How long the thread sleeps between two looks at what is due.
const STEP: Duration = Duration::from_micros(250);

#[derive(Default)]
struct Seen {
    writes: Mutex<Vec<(Instant, Duration)>>,
    /// How many were refused, and why the last one was.
    refused: Mutex<(u64, String)>,
    done: AtomicBool,
}

pub(super) struct Writers {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<Result>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writers {
    /// Begins to write `statement`, whose parameter is one of the keys from 1 to `keys`.
    pub(super) fn start(
        address: SocketAddr,
        database: &str,
        statement: &str,
        keys: u64,
        per_second: u64,
    ) -> Self {
        let seen = Arc::new(Seen::default());
        let mut config = Config::new();
        config.user(LOGIN).password(PASSWORD).dbname(database);
        let (shared, statement) = (seen.clone(), statement.to_owned());
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(send(&shared, (address, &config), &statement, keys, per_second))
        };
        Self { seen, thread: Some(std::thread::spawn(work)) }
    }

    /// Of those sent between the two moments.
    pub(super) fn between(&self, from: Instant, until: Instant) -> Latency {
        let writes = lock(&self.seen.writes);
        let within = writes.iter().filter(|(at, _)| (from..until).contains(at));
        Latency::of(within.map(|(_, took)| *took).collect())
    }

    /// Ends them. Says how many were refused, and why the last one was.
    pub(super) fn stop(mut self) -> Result<(u64, String)> {
        self.seen.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| "the writers panicked")??;
        }
        Ok(std::mem::take(&mut *lock(&self.seen.refused)))
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.seen.done.store(true, Ordering::Relaxed);
    }
}

async fn send(
    seen: &Arc<Seen>,
    (address, config): (SocketAddr, &Config),
    statement: &str,
    keys: u64,
    per_second: u64,
) -> Result {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| format!("connect: {error}"))?;
        stream.set_nodelay(true).map_err(|error| format!("connect: {error}"))?;
        let connected = config.connect_raw(stream, NoTls).await;
        let (client, connection) = connected.map_err(|error| format!("connect: {error}"))?;
        tokio::spawn(async move { drop(connection.await) });
        let prepared = client.prepare(statement).await;
        let prepared = prepared.map_err(|error| format!("prepare: {error:?}"))?;
        clients.push((Arc::new(client), prepared));
    }
    let (began, mut sent) = (Instant::now(), 0_u64);
    while !seen.done.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * per_second as f64) as u64;
        while sent < due {
            // Far apart, so that writes come to all of the range.
            let key = (sent.wrapping_mul(0x9E37_79B9) % keys) as i64 + 1;
            let (client, prepared) = &clients[sent as usize % clients.len()];
            let at = began + Duration::from_secs_f64(sent as f64 / per_second as f64);
            tokio::spawn(write(seen.clone(), client.clone(), prepared.clone(), key, at));
            sent += 1;
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}

async fn write(
    seen: Arc<Seen>,
    client: Arc<Client>,
    statement: tokio_postgres::Statement,
    key: i64,
    at: Instant,
) {
    match client.execute(&statement, &[&key]).await {
        Ok(1) => lock(&seen.writes).push((at, at.elapsed())),
        other => {
            let mut refused = lock(&seen.refused);
            *refused = (refused.0 + 1, format!("{other:?}"));
        }
    }
}
