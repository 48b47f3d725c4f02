//! What is known of one client.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lazuli_resp::OwnedArgs;

use crate::acl::User;
use crate::clients::Client;
use crate::command::Command;

/// A client's state that commands see and change.
pub(crate) struct Session {
    /// What other clients see of it.
    pub(crate) client: Arc<Client>,
    pub(crate) database: usize,
    pub(crate) is_resp3: bool,
    /// Whom it has shown to be, if it has.
    pub(crate) user: Option<Arc<User>>,
    /// The commands of its transaction, from MULTI on.
    pub(crate) queue: Option<Queue>,
    pub(crate) watches: Watches,
    pub(crate) channels: BTreeSet<Box<[u8]>>,
    pub(crate) patterns: BTreeSet<Box<[u8]>>,
    pub(crate) shard_channels: BTreeSet<Box<[u8]>>,
    pub(crate) replies: Replies,
    /// Which of the cluster's listeners it has come to, if this is one.
    pub(crate) cluster_node: Option<usize>,
    pub(crate) is_asking: bool,
    pub(crate) is_monitor: bool,
    /// Whether this is no client but the server that this one follows.
    pub(crate) is_source: bool,
    pub(crate) local: SocketAddr,
    /// Whether replies that wait to be sent show anything of keys, so that they wait for the store.
    pub(crate) shows_keys: bool,
    /// The last change of users that it has made: its replies wait until that is in the store.
    pub(crate) users_until: u64,
}

/// A transaction that is being queued up.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<(&'static Command, OwnedArgs)>,
    pub(crate) bytes: usize,
    /// A command was refused: EXEC will be too.
    pub(crate) is_broken: bool,
}

/// Keys that a client watches.
#[derive(Default)]
pub(crate) struct Watches {
    pub(crate) keys: Vec<(usize, Box<[u8]>)>,
    /// Set when one of them changes.
    pub(crate) flag: Arc<AtomicBool>,
}

/// Which replies a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replies {
    #[default]
    On,
    Off,
    /// Not that of the next command.
    SkipNext,
    /// Not that of this command.
    Skip,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, local: SocketAddr) -> Self {
        Self {
            client,
            database: 0,
            is_resp3: false,
            user: None,
            queue: None,
            watches: Watches::default(),
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            shard_channels: BTreeSet::new(),
            replies: Replies::On,
            cluster_node: None,
            is_asking: false,
            is_monitor: false,
            is_source: false,
            local,
            shows_keys: false,
            users_until: 0,
        }
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    pub(crate) fn is_subscriber(&self) -> bool {
        self.subscriptions() + self.shard_channels.len() > 0
    }
}
