//! All connected clients: what each shows of itself to the others, and messages on their way to it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::limits::SUBSCRIBER_BYTES_MAX;
use crate::tracking::Tracking;

/// One client, as others see it.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) began_ms: u64,
    pub(crate) active_ms: AtomicU64,
    /// The place of its last command in the table.
    pub(crate) command: AtomicUsize,
    pub(crate) commands: AtomicU64,
    pub(crate) database: AtomicUsize,
    pub(crate) is_resp3: AtomicBool,
    pub(crate) is_blocked: AtomicBool,
    /// How many commands its transaction has; -1 if there is none.
    pub(crate) queued: AtomicU32,
    pub(crate) subscriptions: AtomicUsize,
    pub(crate) pattern_subscriptions: AtomicUsize,
    pub(crate) shard_subscriptions: AtomicUsize,
    pub(crate) no_evict: AtomicBool,
    pub(crate) texts: Mutex<Texts>,
    tracking: Mutex<Option<Tracking>>,
    is_tracking: AtomicBool,
    outbox: Mutex<Vec<u8>>,
    has_mail: AtomicBool,
    is_killed: AtomicBool,
    wake: Notify,
}

/// What a client has said about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    pub(crate) name: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
    pub(crate) user: String,
}

/// No transaction.
pub(crate) const NOT_QUEUING: u32 = u32::MAX;

impl Client {
    pub(crate) fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it keeps copies of keys and wants to be told of their changes.
    #[inline]
    pub(crate) fn is_tracking(&self) -> bool {
        self.is_tracking.load(Ordering::Relaxed)
    }

    pub(crate) fn tracking(&self) -> MutexGuard<'_, Option<Tracking>> {
        self.tracking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what it wants to be told of; what it was before.
    pub(crate) fn track(&self, tracking: Option<Tracking>) -> Option<Tracking> {
        self.is_tracking.store(tracking.is_some(), Ordering::Relaxed);
        std::mem::replace(&mut *self.tracking(), tracking)
    }

    /// Whether it is subscribed to anything.
    pub(crate) fn listens(&self) -> bool {
        let all = [&self.subscriptions, &self.pattern_subscriptions, &self.shard_subscriptions];
        all.iter().any(|it| it.load(Ordering::Relaxed) > 0)
    }

    /// Sends bytes as soon as what it is being answered is on its way. A client that does not read is disconnected.
    pub(crate) fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        if outbox.len() > SUBSCRIBER_BYTES_MAX {
            drop(outbox);
            return self.kill();
        }
        write(&mut outbox);
        drop(outbox);
        self.has_mail.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Moves messages that wait behind what is already there.
    pub(crate) fn collect(&self, out: &mut Vec<u8>) {
        if self.has_mail.swap(false, Ordering::Acquire) {
            out.append(&mut self.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// Returns when messages wait or the client is to be disconnected.
    pub(crate) async fn woken(&self) {
        while !self.has_mail.load(Ordering::Acquire) && !self.is_killed() {
            self.wake.notified().await;
        }
    }
}

/// The clients by their ids.
#[derive(Default)]
pub(crate) struct Clients {
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    last: AtomicU64,
}

impl Clients {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, peer: SocketAddr, local: SocketAddr, now_ms: u64) -> Arc<Client> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client {
            id,
            peer,
            local,
            began_ms: now_ms,
            active_ms: AtomicU64::new(now_ms),
            command: AtomicUsize::new(usize::MAX),
            commands: AtomicU64::new(0),
            database: AtomicUsize::new(0),
            is_resp3: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            queued: AtomicU32::new(NOT_QUEUING),
            subscriptions: AtomicUsize::new(0),
            pattern_subscriptions: AtomicUsize::new(0),
            shard_subscriptions: AtomicUsize::new(0),
            no_evict: AtomicBool::new(false),
            texts: Mutex::new(Texts { user: "default".into(), ..Texts::default() }),
            tracking: Mutex::default(),
            is_tracking: AtomicBool::new(false),
            outbox: Mutex::new(Vec::new()),
            has_mail: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            wake: Notify::new(),
        });
        self.all().insert(id, client.clone());
        client
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all().remove(&id);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.all().get(&id).cloned()
    }

    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        self.all().values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }
}
