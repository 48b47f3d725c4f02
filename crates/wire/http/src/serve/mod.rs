//! Listening: connections come in through a [`Door`] with limits, requests go to a handler, a stop lets them finish.
//!
//! Invariants: nothing a client sends, or fails to send, holds a connection longer than the limits say; a handler's panic
//! costs the one request it happened in.

mod connection;
pub(crate) mod framing;
mod phase;
mod refusal;

use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::budget::Budget;
use crate::limits::Limits;
use crate::message::{Request, RequestId, Response};
use crate::stop::Stop;
use crate::tls::Tls;

/// How long to wait after the system refused to hand out a connection, so that a lack of descriptors is no busy loop.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What the listeners of a front share: the limits, the room for connections, and counts.
pub struct Door {
    limits: Limits,
    room: Arc<Semaphore>,
    /// The room for connections that are told that there is none.
    refusals: Arc<Semaphore>,
    budget: Arc<Budget>,
    counters: Counters,
    id_high: u64,
    id_next: AtomicU64,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    requests: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    accept_failures: AtomicU64,
}

/// What went through a door since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are open now.
    pub connections_open: u64,
    pub connections: u64,
    /// Connections that were closed because too many were open.
    pub refused: u64,
    pub requests: u64,
    /// Handlers that panicked: each one is a fault of ours.
    pub panics: u64,
    /// Handlers that ran into the request time-out.
    pub timeouts: u64,
    /// Connections that the system refused to hand out.
    pub accept_failures: u64,
}

impl Door {
    /// A door whose bodies and answers take their memory from a budget that other doors may share.
    pub fn new(limits: Limits, budget: Arc<Budget>) -> Arc<Self> {
        // Request ids need to be unique, not secret: a random start and a counter do.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let room = limits.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            limits,
            room: Arc::new(Semaphore::new(room)),
            refusals: Arc::new(Semaphore::new(refusal::AT_ONCE_MAX)),
            budget,
            counters: Counters::default(),
            id_high: hasher.finish(),
            id_next: AtomicU64::new(0),
        })
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read first, because each connection is counted before it is closed.
        let closed = read(&self.counters.closed);
        let connections = read(&self.counters.connections);
        Counts {
            connections_open: connections.saturating_sub(closed),
            connections,
            refused: read(&self.counters.refused),
            requests: read(&self.counters.requests),
            panics: read(&self.counters.panics),
            timeouts: read(&self.counters.timeouts),
            accept_failures: read(&self.counters.accept_failures),
        }
    }

    fn next_id(&self) -> RequestId {
        let low = self.id_next.fetch_add(1, Ordering::Relaxed);
        RequestId(u128::from(self.id_high) << 64 | u128::from(low))
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A connection that is open, however it ends.
struct Inside {
    door: Arc<Door>,
    _room: OwnedSemaphorePermit,
}

impl Inside {
    fn enter(door: Arc<Door>, room: OwnedSemaphorePermit) -> Self {
        count(&door.counters.connections);
        Self { door, _room: room }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        count(&self.door.counters.closed);
    }
}

/// Serves a listener until `stop`, then lets requests in progress finish for the drain time-out and drops the rest.
pub async fn serve<H, F>(
    listener: TcpListener,
    tls: Option<Tls>,
    door: Arc<Door>,
    handler: H,
    mut stop: Stop,
) where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let handler = Arc::new(handler);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.stopped() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            count(&door.counters.accept_failures);
            tokio::time::sleep(ACCEPT_RETRY).await;
            continue;
        };
        let Ok(permit) = door.room.clone().try_acquire_owned() else {
            count(&door.counters.refused);
            match door.refusals.clone().try_acquire_owned() {
                Ok(room) => {
                    let tls = tls.clone();
                    connections.spawn(async move {
                        refusal::refuse(stream, tls).await;
                        drop(room);
                    });
                }
                Err(_) => refusal::refuse_at_once(&stream, tls.as_ref()),
            }
            continue;
        };
        let inside = Inside::enter(door.clone(), permit);
        let (door, handler) = (door.clone(), handler.clone());
        let (tls, stop) = (tls.clone(), stop.clone());
        connections.spawn(async move {
            connection::run(stream, peer, tls, door, handler, stop).await;
            drop(inside);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(door.limits.drain_timeout, drained).await.is_err() {
        connections.shutdown().await;
    }
}
