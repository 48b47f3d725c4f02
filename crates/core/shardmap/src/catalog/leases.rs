//! Nodes and the leases they hold: which process does which background work, when several share the catalog.
//!
//! A node is one run of a process. It writes a heartbeat to its own row. A lease is a row whose key holds an epoch, and its
//! value is the node that holds it. Another node may take the lease when it has seen no new heartbeat of the holder for a
//! while by its own clock, so clocks need not agree. Taking replaces the row by one of the next epoch. The row is the guard
//! of what its holder writes to the catalog, so a holder that was paused and lost the lease writes nothing.

use bytes::Bytes;
use lazuli_env::Id;
use lazuli_store::{Error, KeyRange, Result, Write};

use super::{Catalog, View, keys};
use crate::record::encode;
use crate::{MapReason, ShardId};

/// The most nodes and leases that are read at once.
const LEASE_ROWS_MAX: usize = 100_000;
/// The holder of a lease that was released.
const VACANT: Id = Id::from_bytes([0; 16]);

/// Work that one node at a time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Going on with multi-step jobs.
    Jobs,
    /// Leading moves of partitions.
    Moves,
    /// Comparing the catalog with the shards.
    Reconcile,
    /// Sweeps, garbage, counts and copies of reference data on one shard.
    Shard(ShardId),
    /// Removing blocks that nothing names any more.
    Collect,
    /// Making the load of all shards even.
    Balance,
}

impl Work {
    fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Jobs => vec![1],
            Self::Moves => vec![2],
            Self::Reconcile => vec![3],
            Self::Shard(id) => [&[4][..], &id.0.to_be_bytes()].concat(),
            Self::Collect => vec![5],
            Self::Balance => vec![6],
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [1] => Some(Self::Jobs),
            [2] => Some(Self::Moves),
            [3] => Some(Self::Reconcile),
            [4, id @ ..] => Some(Self::Shard(ShardId(u32::from_be_bytes(id.try_into().ok()?)))),
            [5] => Some(Self::Collect),
            [6] => Some(Self::Balance),
            _ => None,
        }
    }
}

/// A lease as one node has seen or taken it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub work: Work,
    /// Grows whenever the lease changes hands.
    pub epoch: u64,
    holder: Id,
}

impl Lease {
    /// The node that holds it; none if it was released.
    pub fn holder(&self) -> Option<Id> {
        (self.holder != VACANT).then_some(self.holder)
    }

    /// The row that exists for as long as nobody else has taken the lease.
    pub(super) fn guard(&self) -> Bytes {
        keys::lease(&self.work.to_bytes(), self.epoch)
    }

    fn from_row((key, holder): (Bytes, Id)) -> Result<Self> {
        let corrupt = || Error::corrupt("row-corrupt", "a lease has a key of another form");
        let (work, epoch) = keys::lease_parts(&key).ok_or_else(corrupt)?;
        Ok(Self { work: Work::from_bytes(work).ok_or_else(corrupt)?, epoch, holder })
    }
}

impl Catalog {
    /// Adds a node, with its first heartbeat.
    pub async fn add_node(&self, node: Id) -> Result<()> {
        let txn = self.store.begin(vec![keys::space(keys::IDENTITY)]).await?;
        txn.commit(vec![Write::Put(keys::node(node), encode(&0u64))]).await
    }

    /// Writes the node's next heartbeat. Fails with [`MapReason::NodeRemoved`] if others have removed the node.
    pub async fn beat(&self, node: Id, beat: u64) -> Result<()> {
        let key = keys::node(node);
        let outcome = match self.store.begin(vec![key.clone()]).await {
            Ok(txn) => txn.commit(vec![Write::Put(key, encode(&beat))]).await,
            Err(error) => Err(error),
        };
        outcome.map_err(|error| match error.is_moved() {
            true => Error::precondition(MapReason::NodeRemoved, format!("node {node} was removed")),
            false => error,
        })
    }

    /// Removes a node that has stopped, with what it told. Its leases stay until others take them.
    pub async fn remove_node(&self, node: Id) -> Result<()> {
        let key = keys::node(node);
        let txn = match self.store.begin(vec![key.clone()]).await {
            Err(error) if error.is_moved() => return Ok(()),
            begun => begun?,
        };
        let told: Vec<(Bytes, Bytes)> =
            View::of(&*txn).rows(keys::told_by(node), LEASE_ROWS_MAX).await?;
        let told = told.into_iter().map(|(key, _)| Write::Delete(key));
        txn.commit(told.chain([Write::Delete(key)]).collect()).await
    }

    /// All nodes with their last heartbeats, and all leases.
    pub async fn nodes_and_leases(&self) -> Result<(Vec<(Id, u64)>, Vec<Lease>)> {
        let snapshot = self.snapshot().await?;
        let view = View::of(&*snapshot);
        let nodes = KeyRange::prefix(keys::space(keys::NODE));
        let nodes: Vec<(Bytes, u64)> = view.rows(nodes, LEASE_ROWS_MAX).await?;
        let corrupt = || Error::corrupt("row-corrupt", "a node has a key of another form");
        let id_of = |key: &Bytes| keys::node_id(key).ok_or_else(corrupt);
        let nodes: Result<Vec<_>> =
            nodes.iter().map(|(key, beat)| Ok((id_of(key)?, *beat))).collect();
        let leases = KeyRange::prefix(keys::space(keys::LEASE));
        let leases = view.rows(leases, LEASE_ROWS_MAX).await?;
        Ok((nodes?, leases.into_iter().map(Lease::from_row).collect::<Result<_>>()?))
    }

    /// Takes a lease that was `seen` with a holder that has stopped, or that nobody held. None if another node took it first.
    pub async fn take_lease(
        &self,
        work: Work,
        seen: Option<&Lease>,
        node: Id,
    ) -> Result<Option<Lease>> {
        // The identity row is never deleted. As a guard it lets one node at a time decide here.
        let guards = vec![keys::space(keys::IDENTITY), keys::node(node)];
        let txn = match self.store.begin(guards).await {
            Err(error) if error.is_moved() => return Ok(None),
            begun => begun?,
        };
        let rows = KeyRange::prefix(keys::lease_prefix(&work.to_bytes()));
        let found: Vec<(Bytes, Id)> = View::of(&*txn).rows(rows, 1).await?;
        let found = found.into_iter().next().map(Lease::from_row).transpose()?;
        if found.as_ref() != seen {
            return Ok(None);
        }
        let lease = Lease { work, epoch: seen.map_or(1, |seen| seen.epoch + 1), holder: node };
        let mut writes: Vec<Write> =
            seen.map(|seen| Write::Delete(seen.guard())).into_iter().collect();
        writes.push(Write::Put(lease.guard(), encode(&node)));
        match txn.commit(writes).await {
            Ok(()) => Ok(Some(lease)),
            Err(error) if error.is_moved() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a lease up, so that another node need not wait for heartbeats to stop. The epoch still grows.
    pub async fn release_lease(&self, lease: &Lease) -> Result<()> {
        let released = Lease { epoch: lease.epoch + 1, holder: VACANT, ..*lease };
        match self.store.begin(vec![lease.guard()]).await {
            Ok(txn) => {
                let put = Write::Put(released.guard(), encode(&VACANT));
                txn.commit(vec![Write::Delete(lease.guard()), put]).await
            }
            Err(error) if error.is_moved() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Refuses with [`MapReason::LeaseLost`] unless the lease is still held at its epoch.
    pub(super) async fn check_lease(&self, lease: &Lease) -> Result<()> {
        match self.snapshot().await?.get(&lease.guard()).await? {
            Some(_) => Ok(()),
            None => {
                let message = format!("another node has taken the lease for {:?}", lease.work);
                Err(Error::precondition(MapReason::LeaseLost, message))
            }
        }
    }
}
