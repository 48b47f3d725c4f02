//! The cache as a replica of a Redis server, so that programs can move over while they run (`REPLICAOF`).
//!
//! Only servers that the operator has named are followed: the setting `cache-source-hosts`. `link` connects and speaks
//! PSYNC, `load` takes the whole of the other server's keys, `apply` what changes after that. While this server follows
//! another one clients may read, and keys expire when that one says so.

mod apply;
mod link;
mod load;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lazuli_http::client::Sources;
use tokio::sync::watch;

use crate::command::{Command, Flags};
use crate::failure::Failure;
use crate::server::Server;
use crate::session::Session;
use link::Replica;

const PRIMARY: u8 = 0;
const REPLICA: u8 = 1;
const LOADING: u8 = 2;

const READONLY: Failure = Failure::of("READONLY You can't write against a read only replica.");

/// The server that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// How far the connection to it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Connect,
    Connecting,
    Sync,
    Connected,
}

impl Stage {
    /// As ROLE names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Connecting => "connecting",
            Self::Sync => "sync",
            Self::Connected => "connected",
        }
    }
}

/// What INFO tells about a replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) stage: Stage,
    /// The history of changes that is followed, and how far.
    pub(crate) id: String,
    pub(crate) offset: u64,
    /// When something came from the source last.
    pub(crate) heard_ms: u64,
    /// What a whole copy has taken so far, and what it will be if the source says so.
    pub(crate) copied_bytes: u64,
    pub(crate) copy_bytes: Option<u64>,
    /// How many commands of the source were refused here.
    pub(crate) refused: u64,
    /// Why there is no connection.
    pub(crate) trouble: Option<String>,
}

pub(crate) struct Replication {
    sources: Sources,
    mode: AtomicU8,
    source: watch::Sender<Option<Source>>,
    status: Mutex<Status>,
}

impl Replication {
    /// With the hosts that may be followed.
    pub(crate) fn new(hosts: Vec<String>) -> Self {
        Self {
            sources: Sources { hosts, ..Sources::default() },
            mode: AtomicU8::new(PRIMARY),
            source: watch::Sender::new(None),
            status: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn is_replica(&self) -> bool {
        self.mode.load(Ordering::Relaxed) != PRIMARY
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == LOADING
    }

    pub(crate) fn source(&self) -> Option<Source> {
        self.source.borrow().clone()
    }

    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what INFO tells.
    fn note(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Server {
    /// Begins to follow a server, or to be one of its own again.
    pub(crate) fn set_source(&self, source: Option<Source>) -> Result<(), Failure> {
        let replication = &self.replication;
        if let Some(source) = &source
            && !replication.sources.may_allow(&source.host, source.port)
        {
            return Err(Failure::new(format!(
                "ERR this server may not connect to {}:{}: the setting cache-source-hosts names the \
                 hosts that it may follow",
                source.host, source.port
            )));
        }
        replication.note(|status| *status = Status::default());
        let mode = if source.is_some() { REPLICA } else { PRIMARY };
        replication.mode.store(mode, Ordering::Relaxed);
        self.keyspace.set_replica(source.is_some());
        if source.is_some() {
            self.waiters.interrupt();
        }
        replication.source.send_replace(source);
        Ok(())
    }

    fn set_loading(&self, is_loading: bool) {
        let mode = if is_loading { LOADING } else { REPLICA };
        // Nothing, if it follows nobody any more.
        let set = |now| (now != PRIMARY).then_some(mode);
        let _ = self.replication.mode.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
    }

    /// What a client may not do because this server follows another one.
    #[inline]
    pub(crate) fn check_following(
        &self,
        session: &Session,
        command: &'static Command,
    ) -> Result<(), Failure> {
        if !self.replication.is_replica() {
            return Ok(());
        }
        if self.replication.is_loading() && !command.has(Flags::LOADING) {
            return Err(Failure::of("LOADING Redis is loading the dataset in memory"));
        }
        let queued = session.queue.iter().flat_map(|it| &it.commands);
        let is_write = command.has(Flags::WRITE)
            || (command.name == "exec" && queued.map(|it| it.0).any(|it| it.has(Flags::WRITE)));
        if is_write { Err(READONLY) } else { Ok(()) }
    }

    /// Refuses what a script would write.
    pub(crate) fn check_replica(&self, session: &Session) -> Result<(), Failure> {
        match self.replication.is_replica() && !session.is_source {
            true => Err(READONLY),
            false => Ok(()),
        }
    }

    /// Follows whatever server is to be followed; never ends.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut changes = self.replication.source.subscribe();
        loop {
            let source = changes.borrow_and_update().clone();
            let Some(source) = source else {
                // The sender lives as long as this server.
                let _ = changes.changed().await;
                continue;
            };
            let mut replica = Replica::new(self.clone(), source);
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = replica.run() => {}
            }
            replica.forget();
        }
    }
}
