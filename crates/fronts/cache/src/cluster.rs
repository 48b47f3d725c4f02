//! The shards of the map as nodes of a cluster: each has a listener, and a client that asks the wrong one is told the right
//! one.
//!
//! All nodes are this process, and a slot is where the map of partitions says. So slots move at once, when a partition has
//! moved: no client is ever asked to look in two places, and ASK does not occur.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lazuli_engine::ShardId;
use lazuli_keyspace::{SLOTS, Shelf, slot_of};
use lazuli_resp::Args;

use crate::command::{Command, Locks};
use crate::failure::Failure;
use crate::server::Server;
use crate::session::Session;

/// One range of slots and the node that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRange {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) node: usize,
}

pub(crate) struct Cluster {
    shelf: Arc<Shelf>,
    pub(crate) nodes: Vec<Node>,
    /// The slots in their order, as the map was read last.
    ranges: Mutex<Arc<Vec<SlotRange>>>,
    /// Grows with every change of the map.
    pub(crate) epoch: AtomicU64,
}

pub(crate) struct Node {
    /// Forty hexadecimal digits.
    pub(crate) id: String,
    pub(crate) address: SocketAddr,
}

impl Cluster {
    pub(crate) fn new(shelf: Arc<Shelf>, nodes: Vec<SocketAddr>, chance: impl Fn() -> u64) -> Self {
        let id = || (0..5).map(|_| format!("{:08x}", chance() as u32)).collect();
        let nodes: Vec<Node> =
            nodes.into_iter().map(|address| Node { id: id(), address }).collect();
        let whole = vec![SlotRange { first: 0, last: SLOTS - 1, node: 0 }];
        Self { shelf, nodes, ranges: Mutex::new(Arc::new(whole)), epoch: AtomicU64::new(1) }
    }

    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    pub(crate) fn ranges(&self) -> Arc<Vec<SlotRange>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn node_of(&self, slot: u16) -> usize {
        let ranges = self.ranges();
        let at = ranges.partition_point(|it| it.last < slot);
        ranges.get(at).map_or(0, |it| it.node)
    }

    /// Reads the map. Shards are the nodes in the order of their ids; where there are more shards than listeners several
    /// share one.
    pub(crate) async fn refresh(&self) {
        let Ok(map) = self.shelf.map().await else { return };
        let mut shards: Vec<ShardId> = map.iter().map(|it| it.2).collect();
        shards.sort_unstable();
        shards.dedup();
        let node = |shard| {
            let place = shards.iter().position(|it| *it == shard).unwrap_or_default();
            place % self.nodes.len().max(1)
        };
        let mut ranges: Vec<SlotRange> = Vec::new();
        for (first, last, shard) in map {
            let node = node(shard);
            match ranges.last_mut() {
                Some(before) if before.node == node => before.last = last,
                _ => ranges.push(SlotRange { first, last, node }),
            }
        }
        let mut known = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        if **known != ranges {
            *known = Arc::new(ranges);
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The host and port that a client on this connection reaches a node by: the address that it has reached us by, so that
    /// it is one that it can use.
    pub(crate) fn host(&self, session: &Session, node: usize) -> (String, u16) {
        (session.local.ip().to_string(), self.nodes[node].address.port())
    }
}

impl Server {
    /// Refuses a command whose keys are of several slots or of another node.
    pub(crate) fn check_slots(
        &self,
        session: &Session,
        node: usize,
        command: &'static Command,
        args: Args<'_>,
    ) -> Result<(), Failure> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let mut slot = None;
        let mut is_crossing = false;
        let mut note = |key: &[u8]| {
            let its = slot_of(key);
            is_crossing |= slot.is_some_and(|it| it != its);
            slot = Some(its);
        };
        if command.locks != Locks::None || !command.keys.is_empty() {
            crate::keys::visit(command, args, |at, spec| {
                if !spec.has("not_key") || command.name.starts_with('s') {
                    note(args.at(at));
                }
            });
        }
        if command.name == "exec" {
            for (queued, args) in session.queue.iter().flat_map(|it| &it.commands) {
                let args = args.args();
                crate::keys::visit(queued, args, |at, _| note(args.at(at)));
            }
        }
        if is_crossing {
            let text = "CROSSSLOT Keys in request don't hash to the same slot";
            return Err(Failure::of(text));
        }
        let Some(slot) = slot else { return Ok(()) };
        let owner = cluster.node_of(slot);
        if owner == node {
            return Ok(());
        }
        let (host, port) = cluster.host(session, owner);
        Err(Failure::new(format!("MOVED {slot} {host}:{port}")))
    }
}
