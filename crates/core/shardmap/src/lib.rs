//! Shard maps: which partition of which container lives on which shard, and how catalog, shards and routers come to agree on it.
//!
//! The words are those of `ARCHITECTURE.md`: a *container* has a *map* that cuts its routing space into *partitions*,
//! each on one *shard*, each with an *epoch* that grows with every change. The *catalog* is the durable record of it all;
//! each shard's *local map* is its own record of what it holds, and has the last word on every request.

pub mod catalog;
pub mod container;
pub mod drained;
#[cfg(test)]
mod draw;
pub mod epk;
pub mod figures;
pub mod ids;
pub mod key;
pub mod layout;
pub mod lineage;
pub mod local;
pub mod manager;
pub mod map;
pub mod mirror;
pub mod moves;
mod murmur;
pub mod partition;
pub mod placement;
pub mod reason;
pub mod reconcile;
pub mod record;
pub mod recovery;
pub mod route;
pub mod router;
pub mod shard;
pub mod source;

pub use catalog::Catalog;
pub use container::{Container, MapKind, Policies};
pub use ids::{ContainerId, Epoch, PartitionId, ShardId};
pub use key::{KeyPart, KeySchema, KeyType};
pub use local::{Access, Arrival, Garbage, Held, Identity, LocalChange, LocalMap};
pub use manager::Manager;
pub use map::Placed;
pub use moves::{Move, MoveStage};
pub use partition::{Partition, PartitionState};
pub use reason::MapReason;
pub use router::{Router, RouterSettings};
pub use shard::Shard;
pub use source::{MapDelta, MapSource};
