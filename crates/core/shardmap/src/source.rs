//! Where routers get their maps from: the catalog, as far as they need it.

use lazuli_env::BoxFuture;
use lazuli_store::Result;

use crate::{Container, ContainerId, Partition, PartitionId};

/// How a map differs from what it was at an earlier version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapDelta {
    /// What was removed goes first, then what is new or changed takes its place. `put` holds only
    /// what is there at `version`; an id that is not known is removed without complaint.
    Changes { version: u64, removed: Vec<PartitionId>, put: Vec<Partition> },
    /// Too old, from before a restore, or too different: read all of it.
    Reload,
}

/// Answers `NotFound` for a container that does not exist, and `Unavailable` when it cannot be
/// asked.
pub trait MapSource: Send + Sync {
    fn container(&self, id: ContainerId) -> BoxFuture<'_, Result<Container>>;

    fn container_named<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Container>>;

    /// The catalog's version and all partitions of a container at that version.
    fn partitions(&self, id: ContainerId) -> BoxFuture<'_, Result<(u64, Vec<Partition>)>>;

    /// What changed in a container since the catalog had this version.
    fn changes_since(&self, id: ContainerId, version: u64) -> BoxFuture<'_, Result<MapDelta>>;
}
