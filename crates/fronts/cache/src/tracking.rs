//! Clients that keep copies of keys (CLIENT TRACKING), and how they are told that a copy is out of date.
//!
//! Which client has read which key is kept beside the keys (`lazuli_keyspace`), in bounded memory. Here is what each client has
//! asked for, who listens to which prefixes, and the messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_keyspace::{Invalid, Space};
use lazuli_resp::{Args, Reply};

use crate::clients::Client;
use crate::command::{Command, Flags};
use crate::server::Server;
use crate::session::Session;

/// The channel of clients that speak RESP2 and get the messages of others.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// Which keys a client is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Those that it has read.
    Read,
    /// Those that it has read right after CLIENT CACHING YES.
    OptIn,
    /// Those that it has read, but not right after CLIENT CACHING NO.
    OptOut,
    /// All that begin with one of its prefixes.
    Broadcast,
}

/// What a client has asked for.
#[derive(Clone, Debug)]
pub(crate) struct Tracking {
    pub(crate) mode: Mode,
    pub(crate) prefixes: BTreeSet<Box<[u8]>>,
    /// Not told of its own changes.
    pub(crate) skips_own: bool,
    /// Which client gets the messages, if not itself.
    pub(crate) redirect: Option<u64>,
    /// Whether that client is gone.
    pub(crate) is_broken: bool,
    /// What CLIENT CACHING has said about the next command.
    pub(crate) caching: bool,
}

/// Clients by the prefixes that they listen to.
type Prefixes = BTreeMap<Box<[u8]>, BTreeMap<u64, Arc<Client>>>;

#[derive(Default)]
pub(crate) struct Listeners {
    prefixes: Mutex<Prefixes>,
    /// How many clients track, in any mode.
    pub(crate) count: AtomicU64,
}

impl Listeners {
    fn prefixes(&self) -> MutexGuard<'_, Prefixes> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn prefix_count(&self) -> usize {
        self.prefixes().len()
    }
}

impl Server {
    /// Begins to track for a client, or goes on with other options.
    pub(crate) fn track(&self, client: &Arc<Client>, tracking: Tracking) {
        let mut prefixes = self.tracking.prefixes();
        for prefix in &tracking.prefixes {
            prefixes.entry(prefix.clone()).or_default().insert(client.id, client.clone());
        }
        self.keyspace.tell_all_changes(!prefixes.is_empty());
        drop(prefixes);
        if client.track(Some(tracking)).is_none() {
            self.tracking.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn track_no_more(&self, client: &Client) {
        let Some(before) = client.track(None) else { return };
        self.tracking.count.fetch_sub(1, Ordering::Relaxed);
        let mut prefixes = self.tracking.prefixes();
        for prefix in &before.prefixes {
            if let Some(clients) = prefixes.get_mut(prefix) {
                clients.remove(&client.id);
                if clients.is_empty() {
                    prefixes.remove(prefix);
                }
            }
        }
        self.keyspace.tell_all_changes(!prefixes.is_empty());
    }

    /// Takes note of the keys that a command of a tracking client has read. Their locks are held.
    pub(crate) fn remember_reads(
        &self,
        session: &Session,
        command: &'static Command,
        args: Args<'_>,
        space: &mut Space<'_>,
    ) {
        if !session.client.is_tracking() || !command.has(Flags::READONLY) {
            return;
        }
        let remembers = session.client.tracking().as_ref().is_some_and(|it| match it.mode {
            Mode::Read => true,
            Mode::OptIn => it.caching,
            Mode::OptOut => !it.caching,
            Mode::Broadcast => false,
        });
        if remembers {
            let id = session.client.id;
            crate::keys::visit(command, args, |at, spec| {
                if !spec.has("not_key") {
                    space.track(args.at(at), id);
                }
            });
        }
    }

    /// What CLIENT CACHING has said holds for one command, or for a transaction.
    pub(crate) fn forget_caching(&self, session: &Session, command: Option<&str>) {
        let keeps = command.is_some_and(|it| it.starts_with("client|"));
        if session.client.is_tracking()
            && !keeps
            && session.queue.is_none()
            && let Some(tracking) = &mut *session.client.tracking()
        {
            tracking.caching = false;
        }
    }

    /// Tells clients that keys have changed.
    pub(crate) fn invalidate(&self, changed: &[Invalid], is_cleared: bool) {
        if is_cleared && self.tracking.count.load(Ordering::Relaxed) > 0 {
            for client in self.clients.list().iter().filter(|it| it.is_tracking()) {
                self.send_invalid(client, None);
            }
        }
        // A client that listens to prefixes gets the keys of a command together.
        let mut by_client: BTreeMap<u64, (Arc<Client>, Vec<&[u8]>)> = BTreeMap::new();
        for Invalid { key, by, clients } in changed {
            for id in clients {
                let client = self.clients.get(*id);
                let Some(client) = client.filter(|it| wants(it, *by, false)) else { continue };
                self.send_invalid(&client, Some(&[key]));
            }
            if self.keyspace.tells_all_changes() {
                for (id, client) in self.tracking.listening(key) {
                    if wants(&client, *by, true) {
                        by_client.entry(id).or_insert((client, Vec::new())).1.push(key);
                    }
                }
            }
        }
        for (client, keys) in by_client.values() {
            self.send_invalid(client, Some(keys));
        }
    }

    /// Sends the message to a client or to whom it has named: with keys, or with none for all.
    fn send_invalid(&self, client: &Arc<Client>, keys: Option<&[&[u8]]>) {
        let redirect = client.tracking().as_ref().and_then(|it| it.redirect);
        let target = match redirect {
            None => Some(client.clone()),
            Some(id) => self.clients.get(id),
        };
        let Some(target) = target else {
            if let Some(tracking) = &mut *client.tracking() {
                tracking.is_broken = true;
            }
            if client.is_resp3.load(Ordering::Relaxed) {
                push(client, |reply| {
                    reply.push(2);
                    reply.bulk(b"tracking-redir-broken");
                    reply.integer(redirect.map_or(-1, |it| it as i64));
                });
            }
            return;
        };
        let write_keys = |reply: &mut Reply| match keys {
            None => reply.null_array(),
            Some(keys) => {
                reply.array(keys.len());
                keys.iter().for_each(|key| reply.bulk(key));
            }
        };
        if target.is_resp3.load(Ordering::Relaxed) {
            push(&target, |reply| {
                reply.push(2);
                reply.bulk(b"invalidate");
                write_keys(reply);
            });
        } else if redirect.is_some() && target.listens() {
            push(&target, |reply| {
                reply.push(3);
                reply.bulk(b"message");
                reply.bulk(CHANNEL);
                write_keys(reply);
            });
        }
    }
}

impl Listeners {
    /// Who listens to a prefix of a key.
    fn listening(&self, key: &[u8]) -> Vec<(u64, Arc<Client>)> {
        let prefixes = self.prefixes();
        let fitting = prefixes.iter().filter(|(prefix, _)| key.starts_with(prefix));
        let clients = fitting.flat_map(|(_, clients)| clients);
        clients.map(|(id, client)| (*id, client.clone())).collect()
    }
}

/// Whether a client still tracks in this way, and wants to know of a change by this client.
fn wants(client: &Client, by: u64, is_broadcast: bool) -> bool {
    client.tracking().as_ref().is_some_and(|it| {
        (it.mode == Mode::Broadcast) == is_broadcast && !(it.skips_own && by == client.id)
    })
}

fn push(client: &Client, write: impl FnOnce(&mut Reply)) {
    let is_resp3 = client.is_resp3.load(Ordering::Relaxed);
    client.send(|outbox| {
        let mut reply = Reply { bytes: std::mem::take(outbox), is_resp3 };
        write(&mut reply);
        *outbox = reply.bytes;
    });
}
